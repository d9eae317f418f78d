"""A tie to a server that may go away and come back. Nobody ever waits for it for long.

It is made again whenever it breaks. One line says that it is lost, one that it is back.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import unquote, urlsplit

PATIENCE = 2.0  # seconds for any answer of the server
FIRST = 1.0  # seconds a process that starts waits for it
PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0)  # seconds before the next try to connect; the last for ever
REASON = 200  # characters

Note = Callable[..., None]  # event, level and fields of a log line


@dataclass(frozen=True, slots=True)
class Place:
    """Where the server is, and under which name a deployment's facts lie there."""

    url: str = field(repr=False)  # may hold a password
    name: str = "default"
    cluster: bool = False
    limits: bool = False  # do rates of client keys lie there too

    @property
    def shown(self) -> str:
        """Host and port, or the socket's path; for people."""
        parts = urlsplit(self.url)
        if parts.scheme == "unix":
            return unquote(parts.path)
        return f"{parts.hostname or 'localhost'}:{parts.port or 6379}"

    def without_secret(self, text: str) -> str:
        secret = urlsplit(self.url).password
        for spelling in (secret, unquote(secret)) if secret else ():
            text = text.replace(spelling, "…")
        return text


class Guest(Protocol):
    """What a tie is for."""

    lost_and_back: tuple[str, str]  # the events that say so

    def session(self) -> Awaitable[None]:
        """One connection, from its beginning to its end; calls `Tie.back` when all is well."""

    def away(self) -> None:
        """The server is gone."""


class Tie:
    """Keeps one guest connected."""

    def __init__(self, place: Place, note: Note, guest: Guest) -> None:
        self.here = False
        self.closed = False
        self._place = place
        self._note = note
        self._guest = guest
        self._tried = asyncio.Event()
        self._said = False  # that it is lost
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Waits a moment for the server, and goes on without if it does not answer."""
        self._task = asyncio.get_running_loop().create_task(self._stay())
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST):
                await self._tried.wait()

    async def close(self) -> None:
        # Said as well as done: older clients of the package may swallow a cancellation.
        self.closed, self.here = True, False
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=2 * PATIENCE)

    def back(self) -> None:
        self.here = True
        self._tried.set()
        if self._said:
            self._said = False
            self._note(self._guest.lost_and_back[1], "info", server=self._place.shown)

    async def _stay(self) -> None:
        """Connect, again and again."""
        tries = 0
        while not self.closed:
            try:
                await self._guest.session()
            except Exception as error:  # noqa: BLE001 - whatever a server says, we go on
                tries = 0 if self.here else tries + 1
                self.away(error)
            pause = PAUSES[min(tries, len(PAUSES) - 1)]
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # not all hosts at once

    def away(self, error: Exception) -> None:
        """The server is gone, or as good as gone."""
        self.here = False
        self._tried.set()
        self._guest.away()
        if not self._said:
            self._said = True
            words = self._place.without_secret(reason_of(error))[:REASON]
            lost, _ = self._guest.lost_and_back
            self._note(lost, "warning", server=self._place.shown, reason=words)


def reason_of(error: BaseException) -> str:
    """What went wrong first, in a few words."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    words = " ".join(str(error).split())
    return words or type(error).__name__
