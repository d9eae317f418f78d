"""Failover for language models: name targets in order, the first that can answer does.

The public names, nothing else. `HttpProvider` is loaded when first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.core.classify import classify
from understudy.core.errors import (
    AliasCycle,
    ChainExhausted,
    EmptySpec,
    InvalidDSN,
    InvalidRequest,
    ProviderError,
    SpecError,
    Stall,
    UnderstudyError,
    UnknownAlias,
    UnknownProvider,
)
from understudy.core.faults import Fault, Verdict
from understudy.core.health import Bench, Cooldown, HealthTracker
from understudy.core.plan import Plan
from understudy.core.policy import AVAILABILITY, DETERMINISTIC, FAIL_FAST, Policy, Rule
from understudy.core.target import Attempt, Target
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
from understudy.registry import Registry, default_registry, parse

if TYPE_CHECKING:
    from understudy.providers.http import HttpProvider

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


def __getattr__(name: str) -> object:
    if name == "HttpProvider":  # its transport and dialects are only for programs that need them
        from understudy.providers.http import HttpProvider

        return HttpProvider
    raise AttributeError(f"module 'understudy' has no attribute {name!r}")
