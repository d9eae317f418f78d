"""Agents: an intent goes to those who can handle it, one after another, in a fixed order."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from understudy.agents.agent import Agent
from understudy.agents.capability import Capability
from understudy.agents.codec import Unreadable, read_envelope, read_record, read_response, write
from understudy.agents.envelope import (
    Intent,
    IntentContext,
    IntentEnvelope,
    IntentMetadata,
    Priority,
    Routing,
    RoutingStrategy,
)
from understudy.agents.failure import ErrorCode, ErrorInfo
from understudy.agents.middleware import Middleware, Mishap
from understudy.agents.model_agent import ModelAgent
from understudy.agents.otel import OpenTelemetrySink
from understudy.agents.record import Ended, Event, EventKind, Record, Recorder
from understudy.agents.registry import AgentRegistry
from understudy.agents.replay import Difference, Replay, replay
from understudy.agents.response import AgentResponse
from understudy.agents.router import Instruments, Router
from understudy.agents.spans import JsonLines, MemorySink, Span

if TYPE_CHECKING:
    from understudy.agents.inbound import Bounds
    from understudy.agents.remote import Line, RemoteAgent, RemoteRouter
    from understudy.agents.serve import AgentServer

__all__ = [
    "Agent",
    "AgentRegistry",
    "AgentResponse",
    "AgentServer",
    "Bounds",
    "Capability",
    "Difference",
    "Ended",
    "ErrorCode",
    "ErrorInfo",
    "Event",
    "EventKind",
    "Instruments",
    "Intent",
    "IntentContext",
    "IntentEnvelope",
    "IntentMetadata",
    "JsonLines",
    "Line",
    "MemorySink",
    "Middleware",
    "Mishap",
    "ModelAgent",
    "OpenTelemetrySink",
    "Priority",
    "Record",
    "Recorder",
    "RemoteAgent",
    "RemoteRouter",
    "Replay",
    "Router",
    "Routing",
    "RoutingStrategy",
    "Span",
    "Unreadable",
    "read_envelope",
    "read_record",
    "read_response",
    "replay",
    "write",
]

# Sockets and TLS are only for programs that talk to other machines.
_LATER = {
    "AgentServer": "understudy.agents.serve",
    "Bounds": "understudy.agents.inbound",
    "Line": "understudy.agents.remote",
    "RemoteAgent": "understudy.agents.remote",
    "RemoteRouter": "understudy.agents.remote",
}


def __getattr__(name: str) -> object:
    if name in _LATER:
        found: object = getattr(import_module(_LATER[name]), name)
        return found
    raise AttributeError(f"module 'understudy.agents' has no attribute {name!r}")
