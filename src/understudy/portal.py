"""A thread with an event loop, for callers that cannot await. Started on first use."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from threading import Lock, Thread
from typing import TypeVar

T = TypeVar("T")


class Portal:
    """Runs coroutines for blocking callers; usable inside a running event loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None
        self._lock = Lock()

    def run(self, work: Coroutine[object, object, T]) -> T:
        """The result of `work`; an interrupt of the caller cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self._started())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = Thread(
                    target=self._loop.run_forever, name="understudy-portal", daemon=True
                )
                self._thread.start()
            return self._loop
