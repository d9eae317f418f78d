"""One line a route for whoever watches: the span, and the places it can go."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from os import PathLike

import msgspec

from understudy.agents.codec import write


class Span(msgspec.Struct, frozen=True, gc=False):
    """How one route went. `agent` is who had the last word, or `router` when nobody was asked."""

    agent: str
    intent: str
    status: str  # "ok" or "error"
    latency_ms: float  # all attempts together
    error: str | None  # the final error's message
    trace_id: str
    strategy: str  # the one in force
    attempts: int
    path: tuple[str, ...] = ()
    requested_strategy: str | None = None  # what was asked for, if no strategy has that name
    timestamp: float = 0.0  # seconds since 1970, at the end


Sink = Callable[[Span], None]


class MemorySink:
    """Keeps the last spans."""

    def __init__(self, limit: int = 1000) -> None:
        self._kept: deque[Span] = deque(maxlen=limit)

    def __call__(self, span: Span) -> None:
        self._kept.append(span)

    @property
    def spans(self) -> tuple[Span, ...]:
        return tuple(self._kept)


class JsonLines:
    """Appends spans or records to a file, a line each: a sink and a recorder."""

    def __init__(self, path: str | PathLike[str]) -> None:
        # Unbuffered: a line is one write at the end of the file, whole or not at all, also when
        # several threads or processes share it.
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 - closed by `close`

    def __call__(self, value: msgspec.Struct) -> None:
        self._file.write(write(value) + b"\n")

    def __enter__(self) -> JsonLines:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
