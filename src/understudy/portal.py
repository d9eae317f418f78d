"""A thread with an event loop, for callers that cannot await. Started on first use.

What is called blocking may call blocking again from in there, may be called in a forked process,
may raise what ends a thread, and may be left without a word: none of it leaves anybody hanging.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import cached_property
from threading import Lock, Thread, current_thread
from typing import TypeVar, cast
from weakref import finalize

T = TypeVar("T")
ENDS = (KeyboardInterrupt, SystemExit)  # what asyncio lets end its loop
CLOSED = "closed while this was being answered"


class Portal:
    """Runs coroutines for blocking callers; usable inside a running event loop."""

    def __init__(self) -> None:
        self._room: _Room | None = None
        self._lock = Lock()
        self._process = os.getpid()
        self._abroad: list[_Room] = []  # of the process that we were forked from

    def run(self, work: Coroutine[object, object, T]) -> T:
        """The result of `work`; an interrupt of the caller cancels it."""
        here = current_thread()
        room = (here.within if isinstance(here, _Looping) else self)._open()
        future = asyncio.run_coroutine_threadsafe(_carried(work), room.loop)
        try:
            result, end = future.result()
        except CancelledError:
            if room.left:
                raise RuntimeError(CLOSED) from None
            raise
        except BaseException:
            future.cancel()
            raise
        if end is not None:
            raise end
        return cast(T, result)

    def close(self) -> None:
        """End the thread; who still waits for an answer is told."""
        with self._lock:
            room, self._room = self._room, None
        if room is not None and self._process == os.getpid():
            room.leave()
            if not isinstance(current_thread(), _Looping):  # it may be waiting for us
                room.thread.join()
                room.thread.within.close()

    def _open(self) -> _Room:
        if self._process != os.getpid():
            # A forked child has our memory, but not our threads. To close what it has of the
            # parent's loop would close it for the parent too: both share the selector.
            self._process, self._lock = os.getpid(), Lock()
            if self._room is not None:
                self._abroad.append(self._room)
            self._room = None
        with self._lock:
            if self._room is None or not self._room.thread.is_alive():
                self._room = room = _Room()
                finalize(self, room.leave).atexit = False
            return self._room


class _Looping(Thread):
    """A thread with an event loop, which stands still while somebody on it makes a blocking call.

    Who answers such a call must therefore be neither this one nor one that waits for it, but can
    be the same each time: a stream is read in many calls.
    """

    @cached_property
    def within(self) -> Portal:
        return Portal()


class _Room:
    """A thread with its loop, and the way out."""

    def __init__(self) -> None:
        self.left = False
        opened: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        # On its way out `asyncio.run` ends what is under way, and closes the loop.
        self.thread = _Looping(
            target=lambda: asyncio.run(_stay(opened)), name="understudy-portal", daemon=True
        )
        self.thread.start()
        self.loop, self._over = opened.result()

    def leave(self) -> None:
        self.left = True
        with suppress(RuntimeError):  # the loop has ended by itself
            self.loop.call_soon_threadsafe(self._over.set)


async def _stay(opened: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]) -> None:
    over = asyncio.Event()
    opened.set_result((asyncio.get_running_loop(), over))
    await over.wait()


async def _carried(work: Coroutine[object, object, T]) -> tuple[T | None, BaseException | None]:
    """What `work` gives; or what would have ended the loop, and with it everybody's requests."""
    try:
        return await work, None
    except ENDS as end:
        return None, end
