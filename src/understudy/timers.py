"""Time for drivers: waiting, and a watchdog that ends what takes too long.

The clock decides: one that can `call_later` (a `ManualClock`) also owns the timers, any other
clock leaves them to the running event loop.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from threading import get_ident
from types import TracebackType
from typing import Protocol

from understudy.core.health import Clock


class Handle(Protocol):
    def cancel(self) -> None: ...


class Waiting(Protocol):
    """Something that must not take for ever."""

    def fire(self) -> None:
        """Its time is up."""


Later = Callable[[float, Callable[[], None]], Handle]  # delay in seconds, what to do then


def timers_of(clock: Clock) -> Later | None:
    """The clock's own `call_later`, if it has one."""
    # Not an isinstance of a protocol: this is asked for every call, and that takes 15 us.
    own: Later | None = getattr(clock, "call_later", None)
    return own


def call_later(clock: Clock, delay: float, callback: Callable[[], None]) -> Handle:
    own = timers_of(clock)
    if own is not None:
        return own(delay, _here(callback))
    loop = asyncio.get_running_loop()
    return loop.call_at(loop.time() + delay, callback)  # its `call_later` takes 1 us more


def _here(callback: Callable[[], None]) -> Callable[[], None]:
    """Called on this loop's thread, whichever thread the clock is moved from."""
    loop, ours = asyncio.get_running_loop(), get_ident()

    def called() -> None:
        if get_ident() == ours:
            callback()
        else:
            loop.call_soon_threadsafe(callback)

    return called


async def sleep(clock: Clock, seconds: float) -> None:
    """Wait by the clock; cancellable."""
    if timers_of(clock) is None:
        await asyncio.sleep(seconds)
        return
    rung = asyncio.Event()
    handle = call_later(clock, seconds, rung.set)
    try:
        await rung.wait()
    finally:
        handle.cancel()


class Alone:
    """A timer of its own for one wait."""

    __slots__ = ("_clock", "_handle")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._handle: Handle | None = None

    def begin(self, dog: Waiting, seconds: float) -> None:
        self._handle = call_later(self._clock, seconds, dog.fire)

    def end(self, dog: Waiting) -> None:
        if self._handle is not None:
            self._handle.cancel()


LULL = 0.05  # seconds between looks: each is a long one when thousands of waits run out
EARLY = 0.001  # seconds; some loops count in milliseconds


class Shared:
    """One timer for all waits in an event loop, set for the earliest of them.

    Nearly every wait ends long before its time, and the timer is left as it is when one does; it
    is set anew when it has gone off. That takes 3 us less a wait than a timer of its own, at the
    price of ending a wait `LULL` late if another one has just been ended.
    """

    __slots__ = ("_loop", "_rings_at", "_timer", "_waits")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waits: dict[Waiting, float] = {}  # and when each is over, by the loop's time
        self._rings_at = math.inf
        self._timer: Handle | None = None

    def begin(self, dog: Waiting, seconds: float) -> None:
        due = self._waits[dog] = self._loop.time() + seconds
        if due < self._rings_at:
            self._ring_at(due)

    def end(self, dog: Waiting) -> None:
        self._waits.pop(dog, None)

    def _ring_at(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._rings_at = due
        self._timer = self._loop.call_at(due, self._ring)

    def _ring(self) -> None:
        self._timer, self._rings_at = None, math.inf
        now = self._loop.time()
        for dog in [dog for dog, due in self._waits.items() if due <= now + EARLY]:
            del self._waits[dog]
            dog.fire()
        if self._waits:
            self._ring_at(max(min(self._waits.values()), now + LULL))


class Watches:
    """Where the waits of a model's requests are kept: shared, one for each event loop in use."""

    __slots__ = ("_clock", "_known")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[asyncio.AbstractEventLoop, Shared] = {}

    def here(self) -> Shared | Alone:
        loop = asyncio.get_running_loop()
        return self._known.get(loop) or self._new(loop)

    def _new(self, loop: asyncio.AbstractEventLoop) -> Shared | Alone:
        if timers_of(self._clock) is not None:
            return Alone(self._clock)
        shared = Shared(loop)
        running = {known: old for known, old in self._known.items() if not known.is_closed()}
        self._known = {**running, loop: shared}
        return shared


class Watchdog:
    """Ends the block it guards after so many seconds by raising what it was given.

    It cancels the task and turns that cancellation, and only that one, into its error, which is
    made of it: if the caller cancelled as well, the caller wins (contract F1, C7).
    """

    __slots__ = ("_error", "_fired", "_outside", "_seconds", "_task", "_watch")

    def __init__(
        self,
        watch: Shared | Alone,
        seconds: float,
        error: Callable[[BaseException | None], Exception],
    ) -> None:
        self._watch = watch
        self._seconds = seconds
        self._error = error
        self._fired = False

    def __enter__(self) -> Watchdog:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._outside = task.cancelling()
        self._watch.begin(self, self._seconds)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _: TracebackType | None,
    ) -> None:
        self._watch.end(self)
        if not self._fired:
            return
        inside = self._task.uncancel() <= self._outside
        if inside and (kind is None or issubclass(kind, asyncio.CancelledError)):
            raise self._error(error) from error

    def fire(self) -> None:
        self._fired = True
        self._task.cancel()
