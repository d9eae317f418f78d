"""How a stream gets from a target to a client: as bytes where both speak alike, else as events.

A carrier first reads up to the first content and holds it back; until then the chain may go on
to somebody else. Once carried, it brings the stream to its end, watching for silence.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Protocol

from understudy.core.errors import OutOfTime, ProviderError, Stall
from understudy.core.faults import Fault
from understudy.core.health import Clock
from understudy.core.walk import Try
from understudy.dialects.base import (
    Garbled,
    StreamReader,
    StreamWriter,
    Truncated,
    WireError,
)
from understudy.driver import guard
from understudy.gateway.http import Reply
from understudy.gateway.scan import Scan
from understudy.messages.response import BEAT, Beat, Event, Response, Usage
from understudy.providers.answer import Answer
from understudy.providers.http import HttpProvider
from understudy.stream import is_content
from understudy.timers import call_later

BITE = 512  # bytes read at a time while looking for the first content
HELD_MAX = 4 * 1024 * 1024  # bytes a target may send before its first content


class Carrier(Protocol):
    """One stream on its way."""

    first: bytes  # what was held back, ready for the client
    usage: Usage | None

    async def establish(self) -> None: ...
    async def carry(self, reply: Reply, watch: Watch) -> None: ...
    async def close(self) -> None: ...
    def parting(self, status: int, message: str, kind: str) -> bytes: ...


class Watch:
    """Silence and the deadline of one stream: one timer, looked at when it rings."""

    def __init__(self, clock: Clock, step: Try, idle: float) -> None:
        self.clock = clock
        self.step = step
        self.idle = idle if idle > 0 else float("inf")
        self.heard = clock()
        self._ring: Callable[[Exception], None] | None = None
        self._handle: object = None

    def begin(self, ring: Callable[[Exception], None]) -> None:
        self._ring = ring
        self.heard = self.clock()
        self._arm()

    def _arm(self) -> None:
        due = min(self.heard + self.idle, self.step.deadline)
        if due != float("inf"):
            self._handle = call_later(self.clock, max(0.0, due - self.clock()), self._look)

    def _look(self) -> None:
        now = self.clock()
        if self._ring is None:
            return
        if now >= self.step.deadline:
            self._ring(OutOfTime("the request's own time was up"))
        elif now >= self.heard + self.idle:
            self._ring(Stall("mid_stream", self.step.target.provider, self.idle))
        else:
            self._arm()

    def end(self) -> None:
        self._ring = None
        if self._handle is not None:
            self._handle.cancel()  # type: ignore[attr-defined]


class RawCarrier:
    """Bytes through: the client speaks the target's dialect."""

    def __init__(self, provider: HttpProvider, step: Try, body: bytes) -> None:
        self.first = b""
        self.usage: Usage | None = None
        self._provider = provider
        self._step = step
        self._body = body
        self._answer: Answer | None = None
        self._scan = Scan(provider.dialect.name)
        self._all_here = False

    async def establish(self) -> None:
        step, provider = self._step, self._provider
        answer = await provider.open(step.target.model, self._body, step.credential, stream=True)
        self._answer = answer
        held: list[bytes] = []
        try:
            await self._until_content(answer, held)
        except (WireError, Garbled, Truncated) as error:
            raise provider.not_an_answer(error, stream=True) from error
        self.first = self.first or b"".join(held)
        self._scan.feed(self.first)
        if self._scan.error:
            self.first = self._provider.clear_body(self.first)

    async def _until_content(self, answer: Answer, held: list[bytes]) -> None:
        reader = self._provider.dialect.reader()
        size = 0
        async for data in answer:
            held.append(data)
            size += len(data)
            if _fed(reader, data):
                return
            if reader.failure is not None:
                raise reader.failure
            if size > HELD_MAX:
                raise Garbled(f"more than {HELD_MAX} bytes without content")
        events = reader.end()
        if reader.failure is not None:
            raise reader.failure
        if not _commits(events):
            raise Truncated("the stream ended before any content")
        self._all_here = True
        if held and held[0].lstrip()[:1] == b"{":  # a plain answer to a streaming request
            writer = self._provider.dialect.writer(self._step.target.model)
            self.first = b"".join(writer.write_event(event) for event in events)

    async def carry(self, reply: Reply, watch: Watch) -> None:
        answer, scan = self._answer, self._scan
        assert answer is not None
        if not self._all_here:
            await _pushed(answer, reply, watch, scan, self._provider.clear_body)
        if scan.error:
            raise self._provider.not_an_answer(WireError(scan.error), stream=True, begun=True)
        if not scan.complete:
            error = Truncated("the stream ended without its end mark")
            raise self._provider.not_an_answer(error, stream=True, begun=True)

    async def close(self) -> None:
        if self._answer is not None:
            self._answer.close()

    def parting(self, status: int, message: str, kind: str) -> bytes:
        """The last words of a broken stream; none if the upstream's own already went through."""
        if self._scan.error:
            return b""
        dialect = self._provider.dialect
        return dialect.writer(self._step.target.model).write_error(status, message, kind)


def _fed(reader: StreamReader, data: bytes) -> bool:
    """Read on until the first content, and no further: the rest is not for us to read."""
    for at in range(0, len(data), BITE):
        before = reader.beats
        events = reader.feed(data[at : at + BITE])
        # More beats than events: pieces of a tool call. Blank text beats too, but commits nobody.
        if _commits(events) or reader.beats - before > len(events):
            return True
        if reader.failure is not None:
            return False
    return False


async def _pushed(
    answer: Answer, reply: Reply, watch: Watch, scan: Scan, clear: Callable[[bytes], bytes]
) -> None:
    """Hand chunks over from the event loop, without a task switch for each."""
    end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def stop(error: Exception | None) -> None:
        if not end.done():
            end.set_result(None) if error is None else end.set_exception(error)

    def sink(data: bytes | None, last: bool) -> None:
        if data:
            if scan.feed(data):
                watch.heard = watch.clock()
            # An upstream's last words go through as they came, but never with our key in them.
            reply.write(clear(data) if scan.error else data)
            if reply.paused and not last:
                answer.pause()
                reply.when_flowing(answer.resume)
        if last:
            stop(None if data is not None else _cut(answer.error))

    watch.begin(stop)
    try:
        answer.push(sink)
        await end
    finally:
        watch.end()


def _cut(error: ProviderError | None) -> ProviderError:
    """A socket that dies after content was handed out is a broken stream, not a blip."""
    told = error or ProviderError(Fault.TRANSIENT, message="the stream broke off")
    if told.fault is Fault.TRANSIENT:
        told.fault = Fault.STALL_MID_STREAM
    return told


class EventCarrier:
    """Through the neutral types, event by event: the client speaks another dialect."""

    def __init__(
        self, source: AsyncGenerator[Event | Beat, None], writer: StreamWriter, idle: float
    ) -> None:
        self.first = b""
        self.usage: Usage | None = None
        self._source = source
        self._writer = writer
        self._idle = idle
        self._all_here = False

    async def establish(self) -> None:
        held: list[Event] = []
        async for event in self._source:
            if isinstance(event, Beat):
                break
            held.append(event)
            if _commits([event]):
                break
        else:
            raise ProviderError(Fault.TRANSIENT, message="the stream ended before any content")
        self.first = b"".join(self._writer.write_event(event) for event in held)
        self._note(held[-1] if held else BEAT)

    async def carry(self, reply: Reply, watch: Watch) -> None:
        while not self._all_here:
            with guard(watch.clock, watch.step, self._idle, "mid_stream"):
                event = await anext(self._source, None)
            if event is None:
                message = "the stream ended without its end mark"
                raise ProviderError(Fault.STALL_MID_STREAM, message=message)
            self._note(event)
            if not isinstance(event, Beat):
                reply.write(self._writer.write_event(event))
            if reply.paused:
                await reply.flowing()

    async def close(self) -> None:
        await self._source.aclose()

    def parting(self, status: int, message: str, kind: str) -> bytes:
        return self._writer.write_error(status, message, kind)

    def _note(self, event: Event | Beat) -> None:
        if isinstance(event, Response):
            self._all_here = True
            self.usage = event.usage


def _commits(events: list[Event]) -> bool:
    """Is the first content here? A finished answer without any is empty, not content."""
    for event in events:
        if isinstance(event, Response):
            if reason := event.blank:
                raise ProviderError(Fault.EMPTY_CONTENT, message=reason, billing="maybe_billed")
            return True
        if is_content(event):
            return True
    return False
