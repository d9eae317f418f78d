"""Time for drivers: waiting, and a watchdog that ends what takes too long.

The clock decides: one that can `call_later` (a `ManualClock`) also owns the timers, any other
clock leaves them to the running event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from understudy.core.health import Clock


class Handle(Protocol):
    def cancel(self) -> None: ...


Later = Callable[[float, Callable[[], None]], Handle]  # delay in seconds, what to do then


def timers_of(clock: Clock) -> Later | None:
    """The clock's own `call_later`, if it has one."""
    # Not an isinstance of a protocol: this is asked for every call, and that takes 15 us.
    own: Later | None = getattr(clock, "call_later", None)
    return own


def call_later(clock: Clock, delay: float, callback: Callable[[], None]) -> Handle:
    own = timers_of(clock)
    if own is not None:
        return own(delay, callback)
    loop = asyncio.get_running_loop()
    return loop.call_at(loop.time() + delay, callback)  # its `call_later` takes 1 us more


async def sleep(clock: Clock, seconds: float) -> None:
    """Wait by the clock; cancellable."""
    later = timers_of(clock)
    if later is None:
        await asyncio.sleep(seconds)
        return
    rung = asyncio.Event()
    handle = later(seconds, rung.set)
    try:
        await rung.wait()
    finally:
        handle.cancel()


class Watchdog:
    """Ends the block it guards after so many seconds by raising what it was given.

    It cancels the task and turns that cancellation, and only that one, into its error: if the
    caller cancelled as well, the caller wins (contract F1, C7).
    """

    __slots__ = ("_clock", "_error", "_fired", "_handle", "_outside", "_seconds", "_task")

    def __init__(self, clock: Clock, seconds: float, error: Callable[[], Exception]) -> None:
        self._clock = clock
        self._seconds = seconds
        self._error = error
        self._fired = False

    def __enter__(self) -> Watchdog:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._outside = task.cancelling()
        self._handle = call_later(self._clock, self._seconds, self._fire)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _: TracebackType | None,
    ) -> None:
        self._handle.cancel()
        if not self._fired:
            return
        inside = self._task.uncancel() <= self._outside
        if inside and (kind is None or issubclass(kind, asyncio.CancelledError)):
            raise self._error() from error

    def _fire(self) -> None:
        self._fired = True
        self._task.cancel()
