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
        room = self._open()
        if current_thread() is room.thread:
            return _beside(work)  # called from in there: that loop stands still until we return
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
            if current_thread() is not room.thread:
                room.thread.join()

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


class _Room:
    """A thread with its loop, and the way out."""

    def __init__(self) -> None:
        self.left = False
        opened: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        # On its way out `asyncio.run` ends what is under way, and closes the loop.
        self.thread = Thread(
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


def _beside(work: Coroutine[object, object, T]) -> T:
    """Run it on a thread of its own."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(asyncio.run(work))
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            done.set_exception(error)

    Thread(target=run, name="understudy-beside", daemon=True).start()
    return done.result()
