"""Routing for callers that cannot await, with the very code that awaits.

Such a caller drives the coroutine itself. It runs to its end in one go, on the caller's thread,
because what would suspend it is handed to `Bridge.wait` and awaited on another thread.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from inspect import iscoroutinefunction
from typing import TypeVar

from understudy.portal import Portal

T = TypeVar("T")

Wait = Callable[[Awaitable[object]], Awaitable[object]]


async def awaited(work: Awaitable[object]) -> object:
    """How callers wait who can await."""
    return await work


def cancels() -> int:
    """How often the task that we are in was cancelled; 0 where there is none."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop runs here
        return 0
    return task.cancelling() if task is not None else 0


def is_async(function: object) -> bool:
    """Does calling it give something to await? Known of `async def` only, not of what wraps it."""
    return iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__)


# True inside what a bridge runs: its thread is busy with us, so a blocking call made in there
# needs a thread of its own or it would wait for itself.
_CROSSING: ContextVar[bool] = ContextVar("understudy_agents_crossing", default=False)


class Bridge:
    """Leads from a blocking caller to an event loop; its thread starts when first needed."""

    def __init__(self) -> None:
        self._portal = Portal()

    def run(self, work: Coroutine[object, object, T]) -> T:
        """The result of a coroutine that waits for nothing except through `wait`."""
        try:
            work.send(None)
        except StopIteration as end:
            result: T = end.value
            return result
        work.close()
        raise RuntimeError("a blocking route was about to suspend")

    async def wait(self, work: Awaitable[object]) -> object:
        """Blocks until it is done; never suspends."""
        nested = _CROSSING.get()
        portal = Portal() if nested else self._portal
        try:
            settled = portal.run(_crossing(work))
        except concurrent.futures.CancelledError:
            raise asyncio.CancelledError from None
        finally:
            if nested:
                portal.close()
        return arrived(settled)

    def close(self) -> None:
        self._portal.close()


class _Leaving:
    """Something on its way out that a task must not raise; see `carried`."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


async def carried(work: Awaitable[T]) -> T | _Leaving:
    """What a task may do instead of `work`: it never raises what would end the event loop, nor
    what would be taken for its own cancellation on another thread.
    """
    try:
        return await work
    except (KeyboardInterrupt, SystemExit, concurrent.futures.CancelledError) as error:
        return _Leaving(error)


def arrived(result: T | _Leaving) -> T:
    """The result of something that was carried; what was leaving is raised here after all."""
    if isinstance(result, _Leaving):
        raise result.error
    return result


async def _crossing(work: Awaitable[object]) -> object:
    _CROSSING.set(True)
    return await carried(work)
