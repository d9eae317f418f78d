"""Has a file changed, and is whoever writes it done? Never by a notice: files may be mounts."""

from __future__ import annotations

from pathlib import Path

Stamp = tuple[int, int, int]


class Watched:
    """One file, or none. To be looked at now and then."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._seen = self._taken = self.stamp()

    def changed(self) -> bool:
        """Is it another than was taken, and has stayed as it is from one look to the next?"""
        stamp = self.stamp()
        due = stamp not in (self._taken, None) and stamp == self._seen
        self._seen = stamp
        return due

    def take(self) -> None:
        """What it is now is no news any more."""
        self._taken = self.stamp()

    def stamp(self) -> Stamp | None:
        if self._path is None:
            return None
        try:
            stat = self._path.stat()
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_size, stat.st_ino
