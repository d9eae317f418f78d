"""What is asked of agents, and how it is to be routed. Values only; an envelope never changes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from enum import StrEnum

import msgspec
from msgspec.structs import force_setattr, replace

from understudy.agents.payload import copied

VERSION = "1.0"  # of the envelope and the response, not of an intent

Clock = Callable[[], float]


def wall_clock() -> float:
    """Seconds since 1970."""
    return time.time_ns() / 1e9


def new_id() -> str:
    return os.urandom(16).hex()


class RoutingStrategy(StrEnum):
    """Who is asked, and whose answer counts."""

    DIRECT = "direct"  # one agent, the named or the first; no fallback
    FALLBACK = "fallback"  # one after another until one succeeds
    BROADCAST = "broadcast"  # all in order; the last success
    PARALLEL = "parallel"  # all at once, plain functions in threads; the first success


class Priority(StrEnum):
    """How urgent the caller finds it. For agents to read; it does not change a route."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


class Intent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be done."""

    name: str
    version: str = "1.0"

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


class IntentContext(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where it comes from."""

    source: str = ""
    timestamp: float = 0.0  # seconds since 1970
    priority: Priority = Priority.NORMAL
    tags: tuple[str, ...] = ()


class IntentMetadata(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which request this is, which it belongs to, and through whom it came."""

    request_id: str = ""
    trace_id: str = ""
    identity_chain: tuple[str, ...] = ()


class Routing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to route. `strategy` is kept as it was asked for, known or not, as a text."""

    strategy: str | None = None
    target_agent: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.strategy, str):
            force_setattr(self, "strategy", str(self.strategy) if self.strategy else None)

    def chosen(self) -> tuple[RoutingStrategy, str | None]:
        """The strategy in force, and the text asked for if no strategy has that name.

        Nothing asked for means DIRECT, something unknown means FALLBACK.
        """
        text = self.strategy or ""
        named = _BY_TEXT.get(text) or _BY_TEXT.get(text.lower())
        return (named, None) if named else (RoutingStrategy.FALLBACK, text)


_BY_TEXT = {"": RoutingStrategy.DIRECT, **{str(s): s for s in RoutingStrategy}}

_CONTEXT, _METADATA, _ROUTING = IntentContext(), IntentMetadata(), Routing()


class IntentEnvelope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An intent with its payload and everything around it."""

    version: str = VERSION
    intent: Intent
    payload: object = None
    context: IntentContext = _CONTEXT
    metadata: IntentMetadata = _METADATA
    routing: Routing = _ROUTING

    def __post_init__(self) -> None:
        if self.routing is None:  # nothing asked for
            force_setattr(self, "routing", _ROUTING)

    @classmethod
    def new(  # noqa: PLR0913 - one call says all that a caller usually has to say
        cls,
        name: str,
        payload: object = None,
        *,
        version: str = "1.0",
        strategy: str | None = None,
        target_agent: str | None = None,
        trace_id: str | None = None,
        context: IntentContext = _CONTEXT,
        now: Clock = wall_clock,
    ) -> IntentEnvelope:
        """A fresh envelope: ids and the time are filled in where they are not given."""
        request_id = new_id()
        if not context.timestamp:
            context = replace(context, timestamp=now())
        return cls(
            intent=Intent(name, version),
            payload=payload,
            context=context,
            metadata=IntentMetadata(request_id, trace_id or request_id),
            routing=Routing(strategy, target_agent),
        )

    def having(self, **fields: object) -> IntentEnvelope:
        """A copy with other fields."""
        return replace(self, **fields)

    def child(self, name: str, payload: object, *, by: str, strategy: str = "") -> IntentEnvelope:
        """An intent that the agent `by` raises: the same trace, a longer identity chain."""
        fresh = IntentEnvelope.new(name, payload, strategy=strategy, context=self.context)
        chain = (*self.metadata.identity_chain, by)
        ours = replace(fresh.metadata, trace_id=self.metadata.trace_id, identity_chain=chain)
        return replace(fresh, metadata=ours)

    def traced(self, new_id: Callable[[], str] = new_id) -> IntentEnvelope:
        """With a trace id; its own if it has one."""
        if self.metadata.trace_id:
            return self
        return replace(self, metadata=replace(self.metadata, trace_id=new_id()))

    def copy(self) -> IntentEnvelope:
        """The same envelope with a payload of its own; all else in a router's cannot be edited."""
        return replace(self, payload=copied(self.payload))
