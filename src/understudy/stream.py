"""A streamed answer. Fails over until the first content is in hand and never after.

Role chunks, blank text and anything else before the first content are held back: if the target
dies there, the caller has seen nothing and the next one may take over. From then on the walk
waits, suspended, for the end of the stream; what happens to it there is final.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import replace
from typing import NoReturn

from understudy.core.errors import ProviderError
from understudy.core.faults import Fault
from understudy.core.target import Attempt
from understudy.core.walk import COMMITTED, Step, Try, Wait, walk
from understudy.driver import Cast, drive, from_below, guard, tell
from understudy.messages.request import Request
from understudy.messages.response import Beat, Event, Response, is_content
from understudy.portal import Portal
from understudy.providers.base import Patience
from understudy.timers import sleep


class Stream:
    """`async with model.stream(...) as events: async for event in events: ...`

    Without `async with` it is entered by its first event, and left after its last.
    """

    def __init__(self, cast: Cast, request: Request, deadline: float = math.inf) -> None:
        self.attempts: list[Attempt] = []
        self._cast = cast
        self._request = request
        self._steps = walk(cast.chain, cast.stage, deadline=deadline, observe=self._note)
        self._source: AsyncGenerator[Event | Beat, None] | None = None
        self._held: deque[Event] = deque()
        self._try: Try | None = None
        self._patience = Patience()
        self._committed = False
        self._over = False
        self._reading: asyncio.Task[object] | None = None  # who waits for an event
        self._left = asyncio.Event()  # whoever was waiting when somebody else closed us

    async def __aenter__(self) -> Stream:
        if self._committed:  # by its first event, say: entering twice is harmless
            return self
        if self._over:  # it was never open; to give nothing would look like an end
            raise RuntimeError("this stream has failed or was closed; ask the model for another")
        try:
            await drive(self._steps, self._act)
        except BaseException:
            await self.aclose()
            raise
        self._committed = True
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Event:
        if self._over:
            raise StopAsyncIteration
        if not self._committed:
            await self.__aenter__()
        try:
            event = self._held.popleft() if self._held else await self._awaited()
        except StopAsyncIteration:
            raise
        except Exception as error:  # noqa: BLE001 - the walk judges it, and always stops here
            await self._broken(error)
        except asyncio.CancelledError as error:
            await self._broken(from_below(error))
        return await self._finish(event) if isinstance(event, Response) else event

    async def _awaited(self) -> Event:
        """The next event; ends the iteration if somebody else closes the stream meanwhile."""
        self._reading = task = asyncio.current_task()
        try:
            return await self._pull()
        except asyncio.CancelledError:
            if task is None or not self._over or task.uncancel():
                raise  # it was not `aclose` that did it, or not only
            raise StopAsyncIteration from None
        finally:
            self._reading = None
            self._left.set()

    async def aclose(self) -> None:
        """Leave. Safe at any time, any number of times; before the end it marks nobody."""
        self._over = True
        reader = self._reading
        if reader is not None and reader is not asyncio.current_task():
            self._left.clear()
            reader.cancel()
            await self._left.wait()
        self._steps.close()
        await self._drop()

    async def _act(self, step: Step) -> object:
        """Wait, or open a target's stream and read up to its first content."""
        clock = self._cast.stage.clock
        if isinstance(step, Wait):
            await sleep(clock, step.seconds)
            return None
        assert isinstance(step, Try)
        asked = self._cast.called(step, self._request, stream=True)
        step, provider, call, self._patience = await asked
        self._try = step
        self._source = provider.stream(call)
        try:
            first, watches = self._patience.first_byte, self._cast.watches
            with guard(clock, step, first, "pre_first_byte", watches):
                await self._until_content()
        except BaseException:
            await self._drop()
            raise
        return COMMITTED

    async def _until_content(self) -> None:
        self._held.clear()
        while True:
            event = await self._next()
            if isinstance(event, Beat):
                return
            self._held.append(event)
            if isinstance(event, Response):
                if reason := event.blank:
                    raise ProviderError(event.void, message=reason)
                return
            if is_content(event):
                return

    async def _pull(self) -> Event:
        assert self._try is not None
        while True:
            clock, idle, watches = self._cast.stage.clock, self._patience.idle, self._cast.watches
            with guard(clock, self._try, idle, "mid_stream", watches):
                event = await self._next()
            if not isinstance(event, Beat):
                return event

    async def _next(self) -> Event | Beat:
        assert self._source is not None
        try:
            return await anext(self._source)
        except StopAsyncIteration:
            fault = Fault.STALL_MID_STREAM if self._committed else Fault.TRANSIENT
            message = "the stream ended without its end mark"
            raise ProviderError(fault, message=message, billing="maybe_billed") from None

    async def _finish(self, response: Response) -> Response:
        self._over = True
        with suppress(StopIteration):
            self._steps.send(response)
        await self._drop()
        return replace(response, model=self.attempts[-1].target, attempts=tuple(self.attempts))

    async def _broken(self, error: Exception) -> NoReturn:
        self._over = True
        await self._drop()
        self._steps.throw(error)
        raise AssertionError("a committed walk stops at its first error")

    async def _drop(self) -> None:
        source, self._source = self._source, None
        if source is not None:
            await source.aclose()

    def _note(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)
        if self._cast.observer is not None:
            tell(self._cast.observer, attempt)


class SyncStream:
    """The same stream for callers that cannot await: `with … as events: for event in events`."""

    def __init__(self, portal: Portal, stream: Stream) -> None:
        self._portal = portal
        self._stream = stream

    @property
    def attempts(self) -> list[Attempt]:
        return self._stream.attempts

    def __enter__(self) -> SyncStream:
        self._portal.run(self._stream.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> SyncStream:
        return self

    def __next__(self) -> Event:
        try:
            return self._portal.run(self._stream.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

    def close(self) -> None:
        self._portal.run(self._stream.aclose())
