"""What happened to one client request. Logs, metrics, traces, journal and dashboard read this.

Values that are made for every request, and packed when they are remembered: without the names of
their fields.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import msgspec

from understudy.core.target import Attempt
from understudy.messages.response import Usage


class Opening(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What is known when a request comes in."""

    id: str
    surface: str  # the client's dialect, or "embeddings", "count_tokens"
    model: str  # as the client named it
    stream: bool
    key: str  # label of the client's key
    at: float  # wall clock, epoch seconds
    trace: str = ""  # the client's `traceparent`, if anybody traces
    began: float = 0.0  # clock seconds
    strict: bool = False  # the client asked for the stricter table
    within: float | None = None  # seconds, if the client set itself a limit


class Record(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One finished request."""

    opening: Opening
    status: int  # as the client saw it; 499 if it left
    outcome: str  # "ok", "failed", "broken" (after the first content), "left" or "refused" (by us)
    seconds: float
    attempts: tuple[Attempt, ...] = ()
    usage: Usage | None = None
    target: str = ""  # who served, "" if nobody
    sent: int = 0  # bytes of body
    reason: str = ""
    failures: int = 0  # calls that failed or were broken off


class Failure(msgspec.Struct, frozen=True, gc=False):
    """An attempt that failed, or was broken off, while its request goes on."""

    opening: Opening
    attempt: Attempt
    number: int  # of the request's calls so far


class Reader(Protocol):
    """Something that is told of requests as they end."""

    def finished(self, record: Record) -> None: ...


@runtime_checkable
class Hearer(Protocol):
    """A reader that is also told at once of attempts that failed, or were broken off.

    Others may feel that though its request goes on for minutes. Of those who answered or were
    passed over the record tells.
    """

    def attempt(self, opening: Opening, attempt: Attempt, number: int) -> None: ...
