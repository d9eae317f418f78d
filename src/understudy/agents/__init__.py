"""Agents: an intent goes to those who can handle it, one after another, in a fixed order."""

from __future__ import annotations

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
from understudy.agents.middleware import Middleware
from understudy.agents.record import Event, EventKind, Record, Recorder
from understudy.agents.registry import AgentRegistry
from understudy.agents.response import AgentResponse
from understudy.agents.router import Instruments, Router
from understudy.agents.spans import JsonLines, MemorySink, Span
