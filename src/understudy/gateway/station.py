"""What a worker is told by its supervisor when it starts: who it is, and what it inherits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

VARIABLE = "UNDERSTUDY_WORKER"  # set by the supervisor, for its workers only


@dataclass(frozen=True, slots=True)
class Station:
    """One worker's place. Files are descriptors that it inherits."""

    number: int  # from 1; a worker that died is replaced under its number
    of: int  # workers in all
    serial: int  # of this very process: no other ever has it
    run: str  # a private folder, where the workers find each other
    doors: tuple[int, ...]  # sockets bound to the address, for all workers together
    lifeline: int  # a socket to the supervisor; it ends when that one does
    kept: int  # the configuration that was last found good; -1 where there is no file

    @property
    def name(self) -> str:
        """What its files in the folder are called."""
        return f"{self.number}-{self.serial}"

    @property
    def folder(self) -> Path:
        return Path(self.run)

    @property
    def own(self) -> tuple[int, ...]:
        """The doors it opens by itself; together the workers open all of them."""
        return self.doors[self.number - 1 :: self.of]

    @property
    def inherited(self) -> tuple[int, ...]:
        return (*self.doors, self.lifeline, *([self.kept] if self.kept >= 0 else []))

    def last_good(self) -> str:
        """The configuration that was kept for us; "" if none was."""
        if self.kept < 0:
            return ""
        size = os.fstat(self.kept).st_size
        return os.pread(self.kept, size, 0).decode()  # at a place: the file is everybody's

    def to_env(self) -> dict[str, str]:
        return {VARIABLE: msgspec.json.encode(self).decode()}

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Station | None:
        """None for a process that is no worker."""
        told = env.get(VARIABLE)
        return None if not told else msgspec.json.decode(told, type=cls)
