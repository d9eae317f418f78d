"""One attempt at a target: told by the event loop how it goes, tells the exchange how it went.

No task and no future where a kept connection is free: a request is written when the walk says so,
and what follows happens when bytes arrive or a time is up. A task is made to open a connection,
and for providers that are no HTTP (`Played`).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Protocol, TypeVar

from understudy.core.errors import OutOfTime, ProviderError, Stall, bare
from understudy.core.faults import Fault
from understudy.core.walk import Try
from understudy.dialects.base import Garbled, Truncated, WireError
from understudy.driver import Cast, broken_off, ended_below, overdue, term
from understudy.gateway.flows import Flow
from understudy.gateway.http import Reply
from understudy.messages.response import Usage
from understudy.providers.http import HttpProvider
from understudy.providers.transport import Answer
from understudy.providers.trouble import cut_off
from understudy.providers.wire import Connection
from understudy.timers import call_later

SOON = 0.001  # seconds; what is over is over at the next look
QUICK = 0.002  # seconds; pieces of a stream that are less apart come in a rush
REST = 0.001  # seconds a stream in a rush is not read, so that the next piece is a larger one
T = TypeVar("T")
NO_ANSWER = (WireError, Garbled, Truncated)


class Caller(Protocol):
    """Who made the attempt and is told its outcome, once."""

    def answered(self, answer: bytes) -> None: ...
    def failed(self, error: Exception) -> None: ...
    def committed(self, hop: Hop) -> None:
        """The first content is in hand: `hop.carry` is called from here, or never."""


class Hop:
    """What all attempts have in common: a time by which something must have happened."""

    # Defaults of the class, not slots: a hop is made per attempt, and most need none of these.
    _idle = math.inf
    _heard = 0.0  # clock seconds of the last progress
    _reply: Reply | None = None  # of a stream, once it is carried
    _preparing: float | None = None  # clock seconds since when, as long as nothing was sent
    _over = False

    def __init__(self, exchange: Caller, cast: Cast, step: Try) -> None:
        self._exchange = exchange
        self._cast = cast
        self._step = step
        self._watch = cast.watches.here()

    def _await(self, seconds: float) -> None:
        if seconds != math.inf:
            self._watch.begin(self, seconds)

    @property
    def target(self) -> str:
        return self._step.target.key

    def carry(self, reply: Reply) -> None:
        """Bring the stream to its end: from now on silence is what is watched for."""
        self._reply = reply
        idle = self._cast.patience(self._step).idle
        self._idle = idle if idle > 0 else math.inf
        self._watch.end(self)
        self._heard = now = self._cast.stage.clock()
        self._await(min(self._idle, self._step.deadline - now))

    def fire(self) -> None:
        """See `timers.Waiting`."""
        if self._over:
            return
        reply = self._reply
        if reply is None:
            return self._fail(self._overdue(self._own() if self._preparing is None else 0.0))
        now, deadline = self._cast.stage.clock(), self._step.deadline
        due = min(self._heard + self._idle, deadline)
        if now < due:
            self._await(due - now)
        elif now >= deadline:
            self._give_up(OutOfTime("the request's own time was up"))
        elif reply.paused:  # we read nothing, because our client takes nothing
            self._heard = now
            self._await(min(self._idle, deadline - now))
        else:
            self._give_up(Stall("mid_stream", self._step.target.provider, self._idle))

    def _overdue(self, own: float) -> Exception:
        return overdue(self._step, own)

    def stop(self) -> None:
        """Nobody wants to know any more. Whatever is open is closed."""
        if not self._over:
            self._end()
            self._drop()

    def parting(self, status: int, message: str, kind: str) -> bytes:
        """The last words to a client whose stream broke."""
        raise NotImplementedError

    def _end(self) -> None:
        self._over = True
        self._watch.end(self)

    def _give_up(self, error: Exception) -> None:
        """Nothing came any more."""
        self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.stop()
        self._exchange.failed(error)

    def _own(self) -> float:
        """The provider's own limit before the first content, in seconds."""
        raise NotImplementedError

    def _drop(self) -> None:
        raise NotImplementedError


class Posted(Hop):
    """An attempt over HTTP: a body goes out, an answer comes in."""

    stream = False
    _answer: Answer | None = None
    _provider: HttpProvider
    _parts: list[bytes] | None = None  # of a body that does not come at once
    _connection: Connection | None = None  # a kept one that the request went to
    _task: asyncio.Task[None] | None = None  # or who opens one for it, or makes its body
    _post = ("", b"")  # path and body

    def start(self, provider: HttpProvider, path: str, body: bytes) -> None:
        """Raises what keeps the request from being sent at all."""
        self._provider = provider
        self._post = (path, body)
        self._connection = provider.at_once(path, body, self._step.credential, self)
        if self._connection is None:
            self._dial()
        self._await(term(self._step, self._own()))

    def prepare(
        self, provider: HttpProvider, make: Callable[[], T], then: Callable[[T], None]
    ) -> None:
        """Let a thread make what takes long, pictures above all, while others are served.

        `then` gets it and starts; it is not called if nobody wants to know any more.
        """
        self._provider = provider
        self._preparing = self._cast.stage.clock()
        self._await(math.inf if self._step.limit is None else self._step.limit)
        self._task = asyncio.get_running_loop().create_task(self._prepared(make, then))

    async def _prepared(self, make: Callable[[], T], then: Callable[[T], None]) -> None:
        try:
            made = await asyncio.to_thread(make)
            self._task = None
            if not self._over:
                self._ready()
                then(made)
        except asyncio.CancelledError:
            if not self._over:
                self.set_exception(ended_below())
        except Exception as error:  # noqa: BLE001 - the walk decides what to do with it
            self.set_exception(bare(error))

    def _ready(self) -> None:
        """What it took is gone from the request's own time. The target's begins only now."""
        spent, limit = self._cast.stage.clock() - (self._preparing or 0.0), self._step.limit
        self._preparing = None
        if limit is not None:
            self._watch.end(self)
            self._step = self._step._replace(limit=max(limit - spent, SOON))

    def _dial(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._dialled(*self._post))

    async def _dialled(self, path: str, body: bytes) -> None:
        try:
            answer = await self._provider.send(path, body, self._step.credential)
        except asyncio.CancelledError:
            if not self._over:
                self.set_exception(ended_below())
        except Exception as error:  # noqa: BLE001 - the walk decides what to do with it
            self.set_exception(error)
        else:
            answer.close() if self._over else self.set_result(answer)

    # -- told by the connection; see `wire.Waiter` --------------------------------------------

    def done(self) -> bool:
        return self._over

    def set_result(self, answer: Answer) -> None:
        self._answer = answer
        self._connection = self._task = None
        answer.push(self._arrived if answer.status < 300 else self._refused)

    def set_exception(self, error: Exception) -> None:
        unsent = isinstance(error, ProviderError) and error.billing == "not_sent"
        again = unsent and self._connection is not None
        self._connection = self._task = None
        if self._over:
            return
        if again:  # a kept connection proved dead before a byte of the request left
            return self._dial()
        self._end()
        self._exchange.failed(error)

    # -- told by the answer -------------------------------------------------------------------

    def _arrived(self, data: bytes | None, last: bool) -> None:
        raise NotImplementedError

    def _refused(self, data: bytes | None, last: bool) -> None:
        body = self._whole(data, last)
        if body is not None:
            assert self._answer is not None
            key, stream = self._step.target.key, self.stream
            self._fail(self._provider.refused(self._answer, body, stream=stream, target=key))

    def _whole(self, data: bytes | None, last: bool) -> bytes | None:
        """The body once all of it is here. One that breaks off has failed by then."""
        if data is None:
            self._fail(self._broken_off())
            return None
        if self._parts is None:
            if last:
                return data
            self._parts = []
        self._parts.append(data)
        return b"".join(self._parts) if last else None

    def _broken_off(self) -> ProviderError:
        known = None if self._answer is None else self._answer.error
        return known or ProviderError(Fault.TRANSIENT, message="the answer broke off")

    def _no_answer(self, error: Exception, begun: bool = False) -> Exception:
        """What came was none: say so as the provider would."""
        bare(error)
        if isinstance(error, NO_ANSWER):
            told = self._provider.not_an_answer(error, stream=self.stream, begun=begun)
            told.__cause__ = error
            return told
        return error

    def _drop(self) -> None:
        if self._answer is not None:
            self._answer.close()
        elif self._connection is not None:
            self._connection.forsake(self)
        elif self._task is not None:
            self._task.cancel()
            self._task = None


class Whole(Posted):
    """A plain request."""

    # Makes the client's answer of the target's, or raises.
    read: Callable[[HttpProvider, bytes], bytes]

    def _own(self) -> float:
        return self._provider.patience.response

    def _overdue(self, own: float) -> Exception:
        error = super()._overdue(own)
        return broken_off(own) if isinstance(error, Stall) and self._parts else error

    def _arrived(self, data: bytes | None, last: bool) -> None:
        at_once = last and data is not None and self._parts is None  # as nearly always
        body = data if at_once else self._whole(data, last)
        if body is None:
            return
        self._end()
        try:
            answer = self.read(self._provider, body)
        except Exception as error:  # noqa: BLE001 - the walk decides what to do with it
            self._exchange.failed(self._no_answer(error))
        else:
            self._exchange.answered(answer)


class Streamed(Posted):
    """A stream: held up to its first content, then pushed on as it comes.

    To read a piece and pass it on costs about the same whatever its size, and a rush brings fifty
    in a millisecond. So who was read a moment ago is left alone for another, and what came in the
    meantime is one piece. A piece after a pause, as readers see them come, goes on at once.
    """

    stream = True
    flow: Flow

    @property
    def first(self) -> bytes:
        return self.flow.first

    @property
    def usage(self) -> Usage | None:
        return self.flow.usage

    def _own(self) -> float:
        return self._provider.patience.first_byte

    def parting(self, status: int, message: str, kind: str) -> bytes:
        return self.flow.parting(status, message, kind)

    def carry(self, reply: Reply) -> None:
        super().carry(reply)
        assert self._answer is not None
        if not self._answer.done:
            self._answer.push(self._passed)

    def _arrived(self, data: bytes | None, last: bool) -> None:
        """Before the first content."""
        if data is None:
            return self._fail(self._broken_off())
        try:
            if (data and self.flow.hold(data)) or (last and self._ended()):
                self._exchange.committed(self)
                if self._reply is not None and (last or self.flow.done):
                    self._finish()
        except Exception as error:  # noqa: BLE001 - the walk decides what to do with it
            self._fail(self._no_answer(error, self._reply is not None))

    def _ended(self) -> bool:
        self.flow.end()
        return True

    def _passed(self, data: bytes | None, last: bool) -> None:
        """After it."""
        if data is None:
            return self._give_up(cut_off(self._broken_off()))
        reply, flow, answer = self._reply, self.flow, self._answer
        assert reply is not None
        assert answer is not None
        rush = False
        try:
            if data:
                reply.write(flow.passed(data))
                if flow.alive:
                    rush = self._progressed()
            if last or flow.done:
                self._finish()
            elif reply.paused:
                answer.pause()
                reply.when_flowing(answer.resume)
            elif rush:
                answer.pause()
                call_later(self._cast.stage.clock, REST, answer.resume)
        except Exception as error:  # noqa: BLE001 - the walk decides what to do with it
            self._fail(self._no_answer(error, begun=True))

    def _give_up(self, error: Exception) -> None:
        """What is whole needs no more, whatever becomes of its connection."""
        if not self.flow.whole:
            return self._fail(error)
        try:
            self._finish()
        except Exception as problem:  # noqa: BLE001 - the walk decides what to do with it
            self._fail(self._no_answer(problem, begun=True))

    def _progressed(self) -> bool:
        """Note the time; was the last progress a mere moment ago?"""
        before, self._heard = self._heard, self._cast.stage.clock()
        return self._heard - before < QUICK

    def _finish(self) -> None:
        answer = self._answer
        assert answer is not None
        rest = self.flow.over()
        self._end()
        if not answer.done:
            answer.finish()
        self._exchange.answered(rest)
