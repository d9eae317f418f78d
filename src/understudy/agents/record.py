"""What happened on a route, event for event, and who keeps it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import StrEnum

import msgspec

from understudy.agents.envelope import IntentEnvelope
from understudy.agents.failure import ErrorInfo
from understudy.agents.registry import Ranked
from understudy.agents.response import AgentResponse


class EventKind(StrEnum):
    """The six things that can happen."""

    RECEIVED = "RECEIVED"  # the envelope came in
    START = "START"  # an agent is asked
    END = "END"  # it answered, failed or was cancelled
    TRIGGERED = "TRIGGERED"  # its failure leads to the next
    DECISION = "DECISION"  # whose answer counts, and why
    FINAL = "FINAL"  # what the caller got


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a record."""

    seq: int  # from 1
    kind: EventKind
    agent: str = ""
    status: str = ""  # END and FINAL: "success", "error" or "cancelled"
    error: ErrorInfo | None = None
    to: str = ""  # TRIGGERED: who is next
    note: str = ""  # RECEIVED: the strategy asked for; DECISION: the reason
    ms: float = 0.0  # END: how long it took

    def __str__(self) -> str:
        said = f"{self.error.code}: {self.error.message}" if self.error else ""
        arrow = f"-> {self.to}" if self.to else ""
        words = (self.seq, self.kind, self.agent, arrow, self.status, said, self.note)
        return " ".join(str(word) for word in words if word)


class Record(msgspec.Struct, frozen=True):
    """One route: what came in, who stood in line, what happened, what went out."""

    envelope: IntentEnvelope
    candidates: tuple[Ranked, ...]  # in order; empty when it never came to that
    events: tuple[Event, ...]
    response: AgentResponse | None  # None: the route was cancelled
    require_determinism: bool = True

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(event.agent for event in self.events if event.kind is EventKind.START)

    def __str__(self) -> str:
        return "\n".join(map(str, self.events))


KeepRecord = Callable[[Record], None]


class Recorder:
    """Keeps the last records in memory."""

    def __init__(self, limit: int = 1000) -> None:
        self._kept: deque[Record] = deque(maxlen=limit)

    def __call__(self, record: Record) -> None:
        self._kept.append(record)

    @property
    def records(self) -> tuple[Record, ...]:
        return tuple(self._kept)
