"""A file that only grows, is put aside when full, and with those kept never exceeds its bound.

Lines go to the system in one write and are then safe from anything that happens to this process;
a power cut may take the last seconds. A write that broke off is followed by a line end, so that
at most one line is damaged.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LEAST = 65_536  # bytes; a file must have room for its head and some lines


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where a journal is kept, and how much of it."""

    path: Path
    max_bytes: int = 32 * 1024 * 1024  # of one file
    keep: int = 7  # full ones beside it

    def of(self, worker: str) -> Shelf:
        """The shelf of one of several processes: `journal.jsonl` becomes `journal.1.jsonl`."""
        named = self.path.with_name(f"{self.path.stem}.{worker}{self.path.suffix}")
        return Shelf(named, self.max_bytes, self.keep)

    def sheet(self, worker: int | None = None) -> Sheet:
        """The file to write. A worker that is replaced may still hold its own: then another."""
        if worker is None:
            return Sheet(self)
        try:
            return Sheet(self.of(f"{worker}"))
        except Taken:
            return Sheet(self.of(f"{worker}b"))


class Taken(OSError):
    """Another process writes this file."""


class Sheet:
    """The file being written, and those put aside: `journal.jsonl.1` is the youngest."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.headed = False  # has this file a head of ours
        self._most = max(shelf.max_bytes, LEAST)
        self._lines: list[bytes] = []
        self._file = -1
        self._size = 0  # bytes in the file
        self._waiting = 0  # bytes on their way there
        self._torn = False
        self._open()

    def full(self, more: int) -> bool:
        return self._size + self._waiting + more > self._most

    def add(self, line: bytes) -> None:
        self._lines.append(line)
        self._waiting += len(line)

    def turn(self) -> None:
        """Put the file aside and begin the next; the oldest is gone."""
        self.flush()
        self.close()
        path = self.shelf.path
        names = [path, *(path.with_name(f"{path.name}.{n}") for n in range(1, self.kept + 1))]
        for older, younger in zip(names[::-1], names[-2::-1], strict=False):
            with suppress(FileNotFoundError):
                younger.replace(older)
        if not self.kept:
            path.unlink(missing_ok=True)
        self.headed = False
        self._open()

    @property
    def kept(self) -> int:
        return max(0, self.shelf.keep)

    def flush(self) -> None:
        """One write. Raises OSError, and then what could not be written is gone."""
        lines, self._lines = self._lines, []
        self._waiting = 0
        if self._file < 0:  # the last one could not be put aside
            self._open()
        data = memoryview((b"\n" if self._torn else b"") + b"".join(lines))
        while data:
            written = os.write(self._file, data)
            data = data[written:]
            self._size += written
            self._torn = bool(data)

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _open(self) -> None:
        self._file = os.open(self.shelf.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise Taken(f"{self.shelf.path} is written by another process") from None
        self._size = os.fstat(self._file).st_size
        self._torn = self._size > 0 and os.pread(self._file, 1, self._size - 1) != b"\n"
