"""A scripted provider: outcomes in, calls out. No network, no sleeping.

Give it a `ManualClock` and scripted delays move that clock, so a minute of silence takes no time
and the watchdog fires where it would.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import NoReturn, Protocol

from understudy.core.classify import classify
from understudy.core.errors import ProviderError
from understudy.messages.capabilities import ANYTHING, Capabilities
from understudy.messages.request import Request
from understudy.messages.response import (
    Beat,
    Event,
    ReasoningDelta,
    Response,
    TextDelta,
    Usage,
)
from understudy.providers.base import Call, Patience


class Moving(Protocol):
    """A clock that scripted delays can move: `ManualClock`."""

    def step(self, most: float) -> float: ...


@dataclass(frozen=True, slots=True)
class Http:
    """An HTTP failure with headers and body, classified as if it came over the wire."""

    status: int
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pause:
    """Silence of so many seconds, before an outcome or within a stream."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Chunks:
    """A stream piece by piece: texts, events, pauses; an exception breaks it off there."""

    pieces: tuple[str | Event | Beat | Pause | BaseException, ...]

    def __init__(self, *pieces: str | Event | Beat | Pause | BaseException) -> None:
        object.__setattr__(self, "pieces", pieces)


HANG = Pause(math.inf)  # never comes back

_Failure = int | BaseException | type[BaseException] | Http
_Told = _Failure | Response | Chunks
Outcome = _Told | str | Pause
KINDS = (int, str, BaseException, Response, Http, Pause, Chunks)  # and classes of exceptions


class Fake:
    """A provider that does what it is told, model by model, and remembers every call."""

    def __init__(
        self,
        name: str = "fake",
        *,
        clock: Moving | None = None,
        capabilities: Capabilities = ANYTHING,
        credentials: tuple[str, ...] = ("default",),
        patience: Patience = Patience(),  # noqa: B008 - frozen
    ) -> None:
        self.name = name
        self.clock = clock
        self.credentials = credentials
        self.patience = patience
        self.calls: list[tuple[str, Request]] = []  # (model, request)
        self.used: list[str] = []  # the credential label of each call
        self._default = capabilities
        self._capabilities: dict[str, Capabilities] = {}
        self._queues: dict[str, deque[Outcome]] = {}
        self._lock = Lock()

    def script(self, model: str, *outcomes: Outcome) -> Fake:
        """Queue outcomes: a status, a text, an exception, a Response, Http, Pause or Chunks."""
        for outcome in outcomes:
            if not isinstance(outcome, KINDS) and not _raisable(outcome):
                raise TypeError(
                    f"cannot script {outcome!r}; give a status, a text, an exception, "
                    "a Response, Http, Pause or Chunks"
                )
        with self._lock:
            self._queues.setdefault(model, deque()).extend(outcomes)
        return self

    def describe(self, model: str, capabilities: Capabilities) -> Fake:
        """Say what one model can take."""
        self._capabilities[model] = capabilities
        return self

    def capabilities(self, model: str) -> Capabilities:
        return self._capabilities.get(model, self._default)

    def count(self, model: str) -> int:
        return sum(called == model for called, _ in self.calls)

    async def generate(self, call: Call) -> Response:
        outcome = await self._next(call)
        if isinstance(outcome, Response):
            return outcome
        if isinstance(outcome, Chunks):
            return await self._whole(outcome)
        self._fail(outcome, call, stream=False)

    async def stream(self, call: Call) -> AsyncGenerator[Event | Beat, None]:
        outcome = await self._next(call)
        if isinstance(outcome, Chunks):
            async for event in self._pieces(outcome):
                yield event
        elif isinstance(outcome, Response):
            for event in events_of(outcome):
                yield event
        else:
            self._fail(outcome, call, stream=True)

    async def _next(self, call: Call) -> _Told:
        """The next outcome for this model, after the pauses scripted before it."""
        with self._lock:
            self.calls.append((call.model, call.request))
            self.used.append(call.credential)
        while True:
            with self._lock:
                queue = self._queues.get(call.model)
                outcome = queue.popleft() if queue else f"hello from {self.name}/{call.model}"
            if isinstance(outcome, Pause):
                await self._silence(outcome)
            elif isinstance(outcome, str):
                return Response(text=outcome, usage=Usage(1, 1))
            else:
                return outcome

    async def _whole(self, chunks: Chunks) -> Response:
        async for event in self._pieces(chunks):
            if isinstance(event, Response):
                return event
        raise AssertionError("pieces always end in a response or an error")

    async def _pieces(self, chunks: Chunks) -> AsyncGenerator[Event | Beat, None]:
        heard: list[Event] = []
        for piece in chunks.pieces:
            if isinstance(piece, Pause):
                await self._silence(piece)
            elif isinstance(piece, BaseException):
                raise piece
            elif isinstance(piece, Beat):
                yield piece
            else:
                event = TextDelta(piece) if isinstance(piece, str) else piece
                heard.append(event)
                yield event
        if not (heard and isinstance(heard[-1], Response)):
            yield _total(heard)

    async def _silence(self, pause: Pause) -> None:
        left = pause.seconds
        while self.clock is not None and left > 0:
            moved = self.clock.step(left)
            left -= moved
            await asyncio.sleep(0)  # a watchdog that fired cancels us here
            if moved == 0 and left == math.inf:
                break  # nothing is due any more: hang for good
        if left == math.inf:
            await asyncio.Event().wait()
        elif left > 0:
            await asyncio.sleep(left)

    def _fail(self, outcome: _Failure, call: Call, *, stream: bool) -> NoReturn:
        if isinstance(outcome, BaseException | type):
            raise outcome
        http = Http(outcome) if isinstance(outcome, int) else outcome
        verdict = classify(
            status=http.status,
            headers=http.headers,
            body=http.body,
            provider=self.name,
            stream=stream,
        )
        error = ProviderError(
            verdict.fault,
            f"{self.name}/{call.model}",
            http.status,
            verdict.retry_after,
            message=http.body[:200] or f"scripted status {http.status}",
            billing="refused",
        )
        error.retry_source = verdict.source
        raise error


def _raisable(outcome: object) -> bool:
    return isinstance(outcome, type) and issubclass(outcome, BaseException)


def events_of(response: Response) -> list[Event]:
    """A whole answer told as a stream: its deltas, its tool calls, itself."""
    events: list[Event] = []
    if response.reasoning:
        events.append(ReasoningDelta(response.reasoning))
    if response.text:
        events.append(TextDelta(response.text))
    return [*events, *response.tool_calls, response]


def _total(events: list[Event]) -> Response:
    text = "".join(e.text for e in events if isinstance(e, TextDelta))
    thinking = "".join(e.text for e in events if isinstance(e, ReasoningDelta))
    calls = tuple(e for e in events if not isinstance(e, TextDelta | ReasoningDelta | Response))
    finish = "tool_calls" if calls else "stop"
    return Response(text, calls, thinking, finish, Usage(1, len(events)))  # type: ignore[arg-type]
