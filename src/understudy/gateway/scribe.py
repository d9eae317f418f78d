"""The thread a journal is written in, so that a slow disk stops nobody's answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from understudy.gateway.app import Gateway
from understudy.gateway.journal import FLUSH, Journal, Post, Written
from understudy.observe.journal_file import Sheet


class Scribe:
    """A journal and its thread."""

    def __init__(self, sheet: Sheet, gateway: Gateway, complain: Callable[[str], None]) -> None:
        post = Post(_later, self._aside, complain)
        self._thread = ThreadPoolExecutor(1, "journal")
        self.journal = Journal(sheet, gateway.house, gateway.prefix, gateway.wall, post)

    def close(self) -> None:
        """Write the rest; blocks."""
        self._thread.shutdown()
        self.journal.close()

    def _aside(self, job: Callable[[], Written], then: Callable[[Written], None]) -> None:
        work = asyncio.get_running_loop().run_in_executor(self._thread, job)
        work.add_done_callback(lambda done: None if done.cancelled() else then(done.result()))


def _later(flush: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(FLUSH, flush)
