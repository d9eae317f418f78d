"""Server-sent events and line-delimited JSON: bytes in, whole frames out, the tail waits inside.

Any slicing of the bytes gives the same frames: CRLF, CR, split characters and a missing last
blank line included. A line longer than `limit` is refused, so a hostile peer costs at most that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from understudy.dialects.base import Garbled

MAX_LINE = 16 * 1024 * 1024  # bytes; an image in one event is a few MB


@dataclass(frozen=True, slots=True)
class Frame:
    """One event: its name ("" if it has none) and its data lines joined by newlines."""

    event: str
    data: bytes


@dataclass(slots=True)
class Lines:
    """Splits bytes at LF, CRLF or lone CR (the SSE standard allows all three)."""

    limit: int = MAX_LINE
    _tail: bytes = b""
    _skip_lf: bool = False  # the last chunk ended in CR: a leading LF belongs to it

    def feed(self, data: bytes) -> list[bytes]:
        if self._skip_lf and data:
            data = data.removeprefix(b"\n")
            self._skip_lf = False
        if b"\r" in data:
            self._skip_lf = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in data:
            self._keep(self._tail + data)
            return []
        *lines, tail = (self._tail + data).split(b"\n")
        self._keep(tail)
        return lines

    def end(self) -> list[bytes]:
        tail, self._tail = self._tail, b""
        return [tail] if tail else []

    def _keep(self, tail: bytes) -> None:
        if len(tail) > self.limit:
            raise Garbled(f"a line of more than {self.limit} bytes")
        self._tail = tail


@dataclass(slots=True)
class Frames:
    """Groups lines into events. Comments are dropped: they are not progress (contract T4)."""

    lines: Lines = field(default_factory=Lines)
    _event: str = ""
    _data: list[bytes] = field(default_factory=list)

    def feed(self, data: bytes) -> list[Frame]:
        return self._group(self.lines.feed(data))

    def end(self) -> list[Frame]:
        """What a peer left behind that forgot the last blank line."""
        return self._group([*self.lines.end(), b""])

    def _group(self, lines: list[bytes]) -> list[Frame]:
        frames = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif not line:
                if self._data:
                    frames.append(Frame(self._event, b"\n".join(self._data)))
                self._event, self._data = "", []
            elif line.startswith(b"event:"):
                self._event = line[6:].strip().decode("utf-8", "replace")
        return frames
