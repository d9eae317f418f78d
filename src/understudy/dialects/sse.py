"""Server-sent events and line-delimited JSON: bytes in, whole frames out, the tail waits inside.

Any slicing of the bytes gives the same frames: CRLF, CR, a byte order mark, split characters and
a missing last blank line included. A line or an event longer than `limit` is refused, so a hostile
peer costs at most that; the time spent is linear in the bytes, however small the slices.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from understudy.core.values import quick
from understudy.dialects.base import Garbled

MAX_LINE = 16 * 1024 * 1024  # bytes; an image in one event is a few MB
BOM = b"\xef\xbb\xbf"
BLANK = b" \t\r\n"
CR, LF = b"\r\n"  # as numbers: `in` finds those six times as fast
# An event as most write it. A short name, because names are remembered; `*+` never looks back.
_PLAIN = re.compile(rb"(?:event: ?([^\n]{1,40})\n)?data: ?([^\n]*+)\n\n")


@quick
@dataclass(frozen=True, slots=True)
class Frame:
    """One event: its name ("" if it has none) and its data lines joined by newlines."""

    event: str
    data: bytes


@dataclass(slots=True)
class Lines:
    """Splits bytes at LF, CRLF or lone CR (the SSE standard allows all three)."""

    limit: int = MAX_LINE
    _tail: bytearray = field(default_factory=bytearray)  # grows in place: no quadratic copying
    _skip_lf: bool = False  # the last chunk ended in CR: a leading LF belongs to it
    _first: bool = True  # a byte order mark may stand before the first line

    def feed(self, data: bytes) -> list[bytes]:
        if self._skip_lf and data:
            data = data.removeprefix(b"\n")
            self._skip_lf = False
        if CR in data:
            self._skip_lf = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if LF not in data:
            self._tail += data
            self._check(self._tail)
            return []
        if self._tail:
            self._tail += data
            data = bytes(self._tail)
            self._tail = bytearray()
        lines = data.split(b"\n")
        if len(data) > self.limit:
            for line in lines:
                self._check(line)
        if rest := lines.pop():
            self._tail += rest
        return self._unmarked(lines) if self._first else lines

    @property
    def whole(self) -> bool:
        """Does a line begin with the next byte, and not the first?"""
        return not (self._tail or self._skip_lf or self._first)

    def end(self) -> list[bytes]:
        tail, self._tail = bytes(self._tail), bytearray()
        if self._first:
            tail = tail.removeprefix(BOM)
        return [tail] if tail else []

    def _check(self, line: bytes | bytearray) -> None:
        if len(line) > self.limit:
            raise Garbled(f"a line of more than {self.limit} bytes")

    def _unmarked(self, lines: list[bytes]) -> list[bytes]:
        self._first = False
        return [lines[0].removeprefix(BOM), *lines[1:]]


@dataclass(slots=True)
class Frames:
    """Groups lines into events. Comments are dropped: they are not progress (contract T4)."""

    lines: Lines = field(default_factory=Lines)
    _event: str = ""
    _data: list[bytes] = field(default_factory=list)
    _size: int = 0

    def feed(self, data: bytes) -> list[Frame]:
        lines = self.lines
        between = lines.whole and not (self._data or self._event)
        if not between or CR in data or len(data) > lines.limit:
            return self._group(lines.feed(data))
        frames: list[Frame] = []
        at = 0
        while found := _PLAIN.match(data, at):  # nearly always: whole events, one after another
            name, said = found.groups()
            if said:
                frames.append(Frame(_name(name) if name else "", said))
            at = found.end()
        return frames + self._group(lines.feed(data[at:])) if at < len(data) else frames

    def end(self) -> list[Frame]:
        """What a peer left behind that forgot the last blank line."""
        return self._group([*self.lines.end(), b""])

    def _group(self, lines: list[bytes]) -> list[Frame]:
        frames: list[Frame] = []
        for line in lines:
            if line.startswith(b"data:"):
                self._keep(line[6:] if line.startswith(b"data: ") else line[5:])
            elif not line:
                if self._data:
                    self._close(frames)
                self._event = ""
            elif line.startswith(b"event:"):
                self._event = line[6:].strip().decode("utf-8", "replace")
            elif line.startswith(b"{"):  # no field name does: a proxy's error, written as it was
                self._close(frames)
                self._keep(line)
                self._close(frames)
        return frames

    def _keep(self, data: bytes) -> None:
        self._size += len(data) + 1
        if self._size > self.lines.limit + 1:
            raise Garbled(f"an event of more than {self.lines.limit} bytes")
        self._data.append(data)

    def _close(self, frames: list[Frame]) -> None:
        pieces, self._data, self._size = self._data, [], 0
        data = pieces[0] if len(pieces) == 1 else b"\n".join(pieces)
        if data:  # the standard does not dispatch an event without data
            frames.append(Frame(self._event, data))


@lru_cache(64)
def _name(said: bytes) -> str:
    return said.strip().decode("utf-8", "replace")


@dataclass(slots=True)
class Body:
    """The frames of a stream, or the whole of it when a peer answered plain JSON instead.

    Some servers ignore `stream: true`, and most write their errors plainly: a body that begins
    with `{` is no event stream. It is then kept in `plain` until the end.
    """

    frames: Frames = field(default_factory=Frames)
    plain: bytearray | None = None
    empty: bool = True  # nothing but blanks so far
    _head: bytes = b""

    def feed(self, data: bytes) -> list[Frame]:
        if self.empty:
            data = self._open(data)
        if self.plain is None:
            return self.frames.feed(data)
        self.plain += data
        if len(self.plain) > self.frames.lines.limit:
            raise Garbled(f"a body of more than {self.frames.lines.limit} bytes")
        return []

    def end(self) -> list[Frame]:
        if self.plain is not None:
            return []
        return [*self.frames.feed(self._head), *self.frames.end()]

    def _open(self, data: bytes) -> bytes:
        """Decide by the first byte that means something; until it comes, wait."""
        self._head = (self._head + data).lstrip(BLANK).removeprefix(BOM).lstrip(BLANK)
        if not self._head or BOM.startswith(self._head):
            return b""
        data, self._head, self.empty = self._head, b"", False
        if data.startswith(b"{"):
            self.plain = bytearray()
        return data
