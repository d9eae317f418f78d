"""An attempt at a provider that is no HTTP: a task that calls it, as the library does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from understudy.core.errors import ProviderError
from understudy.core.faults import Fault
from understudy.core.walk import Try
from understudy.dialects.base import StreamWriter
from understudy.driver import Cast, ended_below, term
from understudy.gateway.flows import commits
from understudy.gateway.hops import Caller, Hop
from understudy.messages.response import Beat, Event, Response, Usage
from understudy.providers.base import Call, Provider


class Played(Hop):
    """What a task does while it plays a provider's part."""

    def __init__(
        self, exchange: Caller, cast: Cast, step: Try, provider: Provider, call: Call
    ) -> None:
        super().__init__(exchange, cast, step)
        self._provider = provider
        self._call = call
        self._patience = cast.patience(step)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._work())
        self._await(term(self._step, self._own()))

    async def _work(self) -> None:
        try:
            await self._play()
        except asyncio.CancelledError:
            if not self._over:
                self._fail(ended_below())
        except Exception as error:  # noqa: BLE001 - the walk decides what to do with it
            if not self._over:
                self._fail(error)

    async def _play(self) -> None:
        raise NotImplementedError

    def _drop(self) -> None:
        task, self._task = self._task, None
        if task is not None and task is not asyncio.current_task():
            task.cancel()


class PlayedWhole(Played):
    """A plain request. `write` makes the client's answer of a response, or raises."""

    def __init__(
        self,
        exchange: Caller,
        cast: Cast,
        step: Try,
        call: Call,
        write: Callable[[Response], bytes],
    ) -> None:
        super().__init__(exchange, cast, step, cast.providers[step.target.provider], call)
        self._write = write

    def _own(self) -> float:
        return self._patience.response

    async def _play(self) -> None:
        answer = self._write(await self._provider.generate(self._call))
        self._end()
        self._exchange.answered(answer)


class PlayedStream(Played):
    """A stream, event by event."""

    def __init__(
        self, exchange: Caller, cast: Cast, step: Try, call: Call, writer: StreamWriter
    ) -> None:
        super().__init__(exchange, cast, step, cast.providers[step.target.provider], call)
        self._writer = writer
        self._complete = False
        self.first = b""
        self.usage: Usage | None = None

    def _own(self) -> float:
        return self._patience.first_byte

    def parting(self, status: int, message: str, kind: str) -> bytes:
        return self._writer.write_error(status, message, kind)

    async def _play(self) -> None:
        source = self._provider.stream(self._call)
        try:
            async for event in source:
                self._take(event)
                if self._over:
                    return
                if self._complete:
                    self._end()
                    return self._exchange.answered(b"")
                if self._reply is not None and self._reply.paused:
                    await self._reply.flowing()
        finally:
            await source.aclose()
        raise self._cut()

    def _take(self, event: Event | Beat) -> None:
        self._heard = self._cast.stage.clock()
        written = b"" if isinstance(event, Beat) else self._writer.write_event(event)
        if isinstance(event, Response):
            self._complete = True
            self.usage = event.usage
        if self._reply is not None:
            return self._reply.write(written)
        self.first += written
        if isinstance(event, Beat) or commits([event]):
            self._exchange.committed(self)

    def _cut(self) -> ProviderError:
        if self._reply is None:
            return ProviderError(Fault.TRANSIENT, message="the stream ended before any content")
        message = "the stream ended without its end mark"
        return ProviderError(Fault.STALL_MID_STREAM, message=message)
