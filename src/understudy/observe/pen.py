"""The thread that log lines are written in, so that who does not read them stops nobody's answer.

A pipe that is full, a terminal that was told to hold still, a disk that hangs: the lines wait, up
to a limit; what comes after that is lost, and how much it was is the next line written. Knows
bytes and their ends of line, nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition, Thread

import msgspec

MOST = 8 * 1024 * 1024  # bytes that may wait
PARTING = 2.0  # seconds that the last lines get when the process ends
Write = Callable[[bytes], None]


class Pen:
    """Writes what it is given, in order. `write` may block: it is called in a thread."""

    def __init__(self, write: Write, wall: Callable[[], float], most: int = MOST) -> None:
        self.lost = 0  # lines, so far
        self._write = write
        self._wall = wall
        self._most = most
        self._waiting: list[bytes] = []
        self._size = 0  # bytes not written yet, those in hand included
        self._untold = 0  # lines lost since this was last told
        self._turn = Condition()
        self._thread: Thread | None = None

    def put(self, data: bytes) -> None:
        """Whole lines, to be written soon. Never waits."""
        with self._turn:
            if self._size and self._size + len(data) > self._most:
                lines = data.count(b"\n")
                self.lost += lines
                self._untold += lines
                return
            self._waiting.append(data)
            self._size += len(data)
            if self._thread is None:
                # Not waited for by the interpreter: a write that never ends must not keep it.
                self._thread = Thread(target=self._run, name="log lines", daemon=True)
                self._thread.start()
            self._turn.notify_all()

    def close(self, seconds: float = PARTING) -> bool:
        """Wait until all is written, so long at most; was it?"""
        with self._turn:
            return self._turn.wait_for(lambda: not self._size, seconds)

    def _run(self) -> None:
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._waiting)
                # What was lost came after all of this.
                data = b"".join(self._waiting) + self._told()
                taken = sum(map(len, self._waiting))
                self._waiting.clear()
            broken = self._broken(data)
            with self._turn:
                self.lost += broken
                self._size -= taken
                self._turn.notify_all()

    def _broken(self, data: bytes) -> int:
        """Write this; lines that could not be: the disk is full, or nobody is at the other end."""
        try:
            self._write(data)
        except OSError:
            return data.count(b"\n")
        return 0

    def _told(self) -> bytes:
        lines, self._untold = self._untold, 0
        if not lines:
            return b""
        told = {"event": "lines_lost", "level": "warning", "at": round(self._wall(), 3)}
        return msgspec.json.encode({**told, "lines": lines}) + b"\n"
