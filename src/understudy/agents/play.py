"""One routing logic for callers who await and callers who block.

A play is a generator that yields what somebody must await, and is sent the result or thrown the
error. An agent that is a plain function never makes it yield: it runs right where the caller is.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Generator
from contextvars import ContextVar
from typing import TypeVar

from understudy.portal import Portal

T = TypeVar("T")
Play = Generator[Awaitable[object], object, T]


async def perform(play: Play[T]) -> T:
    """For callers who await. Cancellation closes the play and passes on."""
    try:
        wanted = next(play)
        while True:
            try:
                answer = await wanted
            except Exception as error:  # noqa: BLE001 - the play decides what to do with it
                wanted = play.throw(error)
            else:
                wanted = play.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        play.close()


# True inside what a bridge runs: its thread is busy with us, so a blocking call made in there
# needs a thread of its own or it would wait for itself.
_CROSSING: ContextVar[bool] = ContextVar("understudy_agents_crossing", default=False)


class Bridge:
    """For callers who block: what must be awaited is awaited on another thread."""

    def __init__(self) -> None:
        self._portal = Portal()

    def perform(self, play: Play[T]) -> T:
        try:
            wanted = next(play)
            while True:
                try:
                    answer = self._wait(wanted)
                except Exception as error:  # noqa: BLE001 - the play decides what to do with it
                    wanted = play.throw(error)
                else:
                    wanted = play.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            play.close()

    def close(self) -> None:
        self._portal.close()

    def _wait(self, wanted: Awaitable[object]) -> object:
        nested = _CROSSING.get()
        portal = Portal() if nested else self._portal
        try:
            settled = portal.run(_settled(wanted))
        except concurrent.futures.CancelledError:
            raise asyncio.CancelledError from None
        finally:
            if nested:
                portal.close()
        if isinstance(settled, _Leaving):
            raise settled.error
        return settled


class _Leaving:
    """KeyboardInterrupt or SystemExit on its way out; raised in a portal it would kill the loop."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


async def _settled(wanted: Awaitable[object]) -> object:
    _CROSSING.set(True)
    try:
        return await wanted
    except (KeyboardInterrupt, SystemExit) as error:
        return _Leaving(error)
