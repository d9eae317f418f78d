"""Workers of one machine ask each other what they know. One question, one answer, then goodbye.

The sockets lie in a folder that is nobody else's. Who does not answer in time is left out: the
machine is told of without it, never late because of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from understudy.core.health import Change, State
from understudy.observe.record import Record

SUFFIX = ".ask"
PATIENCE = 0.5  # seconds for an answer
LARGEST = 64 * 1024 * 1024  # bytes of one


class Question(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is asked. Without cursors: the newest."""

    records: int = 0  # at most so many
    entries: int = 0  # lines of the ledger at most
    since: Mapping[str, tuple[int, int]] = {}  # by name: records and entries seen already
    metrics: bool = False
    unbench: str = ""  # an order: forget what is held against this key


class Glimpse(msgspec.Struct, frozen=True):
    """What one worker knows. Clock times hold for the whole machine."""

    name: str
    number: int
    in_flight: int
    remembered: int  # requests
    seen: tuple[int, int]  # records and entries so far: the cursor for the next question
    states: dict[str, State]
    records: list[Record] = []  # oldest first
    ledger: list[tuple[float, Change]] = []  # wall clock; oldest first
    metrics: str = ""
    cleared: bool = False


Others = Callable[[Question], Awaitable[list[Glimpse]]]


async def nobody(_: Question) -> list[Glimpse]:
    """The siblings of a gateway that is one process."""
    return []


class Siblings:
    """One worker's line to the others."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._own = folder / f"{name}{SUFFIX}"
        self._server: asyncio.Server | None = None
        self._encoder = msgspec.msgpack.Encoder()
        self._questions = msgspec.msgpack.Decoder(Question)
        self._glimpses = msgspec.msgpack.Decoder(Glimpse)

    async def start(self, answer: Callable[[Question], Awaitable[Glimpse]]) -> None:
        async def visited(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError, msgspec.DecodeError):
                question = self._questions.decode(await reader.read())
                writer.write(self._encoder.encode(await answer(question)))
                await writer.drain()
            writer.close()

        self._server = await asyncio.start_unix_server(visited, self._own)

    async def ask(self, question: Question) -> list[Glimpse]:
        """Of everybody at once; the answers of those who gave one."""
        sent = self._encoder.encode(question)
        others = [path for path in self._folder.glob(f"*{SUFFIX}") if path != self._own]
        told = await asyncio.gather(*(self._asked(path, sent) for path in others))
        return sorted((g for g in told if g is not None), key=lambda g: (g.number, g.name))

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._own.unlink(missing_ok=True)

    async def _asked(self, path: Path, sent: bytes) -> Glimpse | None:
        try:
            async with asyncio.timeout(PATIENCE):
                reader, writer = await asyncio.open_unix_connection(path, limit=LARGEST)
                try:
                    writer.write(sent)
                    writer.write_eof()
                    return self._glimpses.decode(await reader.read())
                finally:
                    writer.close()
        except (OSError, TimeoutError, msgspec.DecodeError):
            return None  # it ended just now, or is too busy
