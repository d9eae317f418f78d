"""A worker as its supervisor sees it: a process, and a line on which it says that it is ready."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import IO

from understudy.gateway.crew import DRAIN, READY, RETIRE
from understudy.gateway.doors import Doors
from understudy.gateway.setup import Opened, address_of
from understudy.gateway.station import Station

Launch = Callable[[Station], Awaitable[asyncio.subprocess.Process]]


@dataclass(frozen=True, slots=True)
class Duty:
    """What workers are started for: a configuration, and the doors it is served at."""

    opened: Opened
    doors: Doors
    kept: IO[bytes] | None  # its text, if there is a file

    @property
    def address(self) -> str:
        return address_of(self.opened.host, self.doors.port)

    def station(self, number: int, serial: int, folder: str) -> Station:
        doors = tuple(door.fileno() for door in self.doors.sockets)
        kept = -1 if self.kept is None else self.kept.fileno()
        return Station(number, self.opened.workers, serial, folder, doors, -1, kept)


@dataclass(eq=False, slots=True)
class Worker:
    """One process."""

    station: Station
    duty: Duty
    began: float  # clock seconds
    process: asyncio.subprocess.Process
    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter
    was_ready: bool = False
    silence: int = 0  # looks of the supervisor since it was heard
    _told: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    async def started(cls, station: Station, duty: Duty, launch: Launch, now: float) -> Worker:
        ours, its = socket.socketpair()
        with its:
            station = replace(station, lifeline=its.fileno())
            process = await launch(station)
        reader, writer = await asyncio.open_connection(sock=ours)
        return cls(station, duty, now, process, reader, writer)

    async def watched(self) -> int:
        """Its exit code, once it is over; negative: minus the signal that ended it."""
        with suppress(OSError):
            self.was_ready = await self._reader.readline() == READY
        self._told.set()
        with suppress(OSError):
            while await self._reader.readline():  # it is alive
                self.silence = 0
        code = await self.process.wait()
        self._writer.close()
        return code

    async def ready_or_over(self) -> None:
        await self._told.wait()

    def retire(self) -> None:
        """Another has taken its place."""
        self._say(RETIRE)

    def drain(self) -> None:
        """Not by a signal: it may have had one from whoever sent us ours, and two cut it short."""
        self._say(DRAIN)

    def _say(self, line: bytes) -> None:
        with suppress(OSError):
            self._writer.write(line)

    def signal(self, number: int) -> None:
        """Not by the process object: that would look whether it is over, and its code be lost."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, number)
