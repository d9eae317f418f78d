"""Failover for language models: name targets in order, the first that can answer does.

The public names, nothing else. Each is loaded when first asked for: a program that only parses
specs does not pay for HTTP, and one that only classifies does not pay for asyncio.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from understudy.core.errors import (
        AliasCycle,
        ChainExhausted,
        EmptySpec,
        InvalidDSN,
        InvalidRequest,
        ProviderError,
        SpecError,
        Stall,
        StructuredError,
        UnderstudyError,
        UnknownAlias,
        UnknownProvider,
    )
    from understudy.core.faults import Fault, Verdict
    from understudy.core.health import Bench, Cooldown, HealthTracker
    from understudy.core.plan import Plan
    from understudy.core.policy import AVAILABILITY, DETERMINISTIC, FAIL_FAST, Policy, Rule
    from understudy.core.target import Attempt, Target
    from understudy.judge import classify
    from understudy.messages.capabilities import Capabilities
    from understudy.messages.parts import File, Image, Reasoning, Text, ToolCall, ToolResult
    from understudy.messages.request import (
        Message,
        Request,
        Schema,
        Tool,
        ToolChoice,
        assistant,
        system,
        tool_result,
        user,
    )
    from understudy.messages.response import Event, ReasoningDelta, Response, TextDelta, Usage
    from understudy.model import Model
    from understudy.providers.http import HttpProvider
    from understudy.registry import Registry, default_registry, parse

__all__ = [
    "AVAILABILITY",
    "DETERMINISTIC",
    "FAIL_FAST",
    "AliasCycle",
    "Attempt",
    "Bench",
    "Capabilities",
    "ChainExhausted",
    "Cooldown",
    "EmptySpec",
    "Event",
    "Fault",
    "File",
    "HealthTracker",
    "HttpProvider",
    "Image",
    "InvalidDSN",
    "InvalidRequest",
    "Message",
    "Model",
    "Plan",
    "Policy",
    "ProviderError",
    "Reasoning",
    "ReasoningDelta",
    "Registry",
    "Request",
    "Response",
    "Rule",
    "Schema",
    "SpecError",
    "Stall",
    "StructuredError",
    "Target",
    "Text",
    "TextDelta",
    "Tool",
    "ToolCall",
    "ToolChoice",
    "ToolResult",
    "UnderstudyError",
    "UnknownAlias",
    "UnknownProvider",
    "Usage",
    "Verdict",
    "assistant",
    "classify",
    "default_registry",
    "parse",
    "system",
    "tool_result",
    "user",
]

_HOMES = {
    "core.errors": (
        "AliasCycle ChainExhausted EmptySpec InvalidDSN InvalidRequest ProviderError "
        "SpecError Stall StructuredError UnderstudyError UnknownAlias UnknownProvider"
    ),
    "core.faults": "Fault Verdict",
    "core.health": "Bench Cooldown HealthTracker",
    "core.plan": "Plan",
    "core.policy": "AVAILABILITY DETERMINISTIC FAIL_FAST Policy Rule",
    "core.target": "Attempt Target",
    "judge": "classify",
    "messages.capabilities": "Capabilities",
    "messages.parts": "File Image Reasoning Text ToolCall ToolResult",
    "messages.request": "Message Request Schema Tool ToolChoice assistant system tool_result user",
    "messages.response": "Event ReasoningDelta Response TextDelta Usage",
    "model": "Model",
    "registry": "Registry default_registry parse",
    "providers.http": "HttpProvider",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'understudy' has no attribute {name!r}")
    value = vars(import_module(f"understudy.{home}"))[name]
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
