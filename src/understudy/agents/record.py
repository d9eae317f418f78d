"""What happened on a route, and who keeps it. The events are read from the record, not stored."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from enum import StrEnum
from itertools import chain, pairwise

import msgspec

from understudy.agents.envelope import IntentEnvelope, RoutingStrategy
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


def one_line(text: str) -> str:
    """Agents choose their words: line ends and what steers a terminal are shown as escapes."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a record. How long things took is not in it, so equal routes compare equal."""

    seq: int  # from 1
    kind: EventKind
    agent: str = ""
    status: str = ""  # END and FINAL: "success", "error" or "cancelled"
    error: ErrorInfo | None = None
    to: str = ""  # TRIGGERED: who is next
    note: str = ""  # RECEIVED: the strategy asked for; DECISION: the reason

    def __str__(self) -> str:
        said = f"{self.error.code}: {self.error.message}" if self.error else ""
        arrow = f"-> {self.to}" if self.to else ""
        words = (self.seq, self.kind, self.agent, arrow, self.status, said, self.note)
        return one_line(" ".join(str(word) for word in words if word))


class Ended(msgspec.Struct, frozen=True):
    """How it went with one agent."""

    agent: str
    status: str  # "success", "error" or "cancelled"
    error: ErrorInfo | None = None
    ms: float = 0.0


class Record(msgspec.Struct, frozen=True):
    """One route: what came in, who stood in line, who was asked, what went out.

    Copies, all of it. Where an agent said something that cannot be copied, a success with a live
    connection in it, say, that stands as `{"not_copied": why}`; the caller has got the thing.
    """

    envelope: IntentEnvelope
    candidates: tuple[Ranked, ...]  # in order; empty when it never came to that
    strategy: RoutingStrategy  # the one in force
    path: tuple[str, ...]  # who was asked, in order
    ends: tuple[Ended, ...]  # in the order in which they came
    agent: str  # who had the last word
    reason: str
    response: AgentResponse | None  # None: the route was cancelled
    require_determinism: bool = True

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened, in order, numbered from 1."""
        parts = chain(self._opening(), self._attempts(), self._closing())
        return tuple(msgspec.structs.replace(e, seq=n) for n, e in enumerate(parts, 1))

    def __str__(self) -> str:
        return "\n".join(map(str, self.events))

    def _opening(self) -> Iterator[Event]:
        yield Event(0, EventKind.RECEIVED, note=str(self.envelope.routing.strategy or ""))

    def _attempts(self) -> Iterator[Event]:
        starts = [Event(0, EventKind.START, name) for name in self.path]
        ends = [Event(0, EventKind.END, e.agent, e.status, e.error) for e in self.ends]
        if self.strategy is RoutingStrategy.PARALLEL:
            return chain(starts, ends)
        triggered: list[list[Event]] = [[] for _ in self.path]
        if self.strategy is RoutingStrategy.FALLBACK:
            for n, (failed, following) in enumerate(pairwise(self.path)):
                triggered[n] = [Event(0, EventKind.TRIGGERED, failed, to=following)]
        rounds = zip(starts, ends, triggered, strict=True)
        return chain.from_iterable((start, end, *then) for start, end, then in rounds)

    def _closing(self) -> Iterator[Event]:
        response = self.response
        if response is None:
            yield Event(0, EventKind.FINAL, self.agent, "cancelled")
        else:
            yield Event(0, EventKind.DECISION, self.agent, note=self.reason)
            yield Event(0, EventKind.FINAL, self.agent, response.status, response.error)


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
