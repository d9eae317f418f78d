"""JSON objects out of a body that arrives in pieces: events, one array, or one after another.

Gemini streams server-sent events when asked with `alt=sse`, and one JSON array otherwise; errors
come as a plain object. The first byte that means something decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from understudy.dialects.base import Garbled, Truncated
from understudy.dialects.json_access import excerpt
from understudy.dialects.sse import BLANK, BOM, MAX_LINE, Frames

_STRUCTURE = re.compile(rb'["{}\[\]]')
_IN_TEXT = re.compile(rb'["\\]')
_BETWEEN = re.compile(rb"[\s,\[\]]*")
_SHOWN = 80  # bytes of a strange body to show
_FIELDS = (b"data", b"event", b"id", b"retry", b":")


@dataclass(slots=True)
class Values:
    """The objects of an array, or of a plain sequence, each as soon as it is whole."""

    limit: int = MAX_LINE
    _buffer: bytearray = field(default_factory=bytearray)
    _at: int = 0  # scanned up to here
    _depth: int = 0
    _in_text: bool = False
    _garbage: str = ""

    def feed(self, data: bytes) -> list[bytes]:
        self._buffer += data
        found: list[bytes] = []
        while self._step(found):
            pass
        if len(self._buffer) > self.limit:
            self._garbage = self._garbage or f"a value of more than {self.limit} bytes"
        if self._garbage and not found:
            raise Garbled(self._garbage)
        return found  # what came before the garbage is still good

    def end(self) -> None:
        if self._garbage:
            raise Garbled(self._garbage)
        if self._depth:
            raise Truncated("the body ended inside a JSON value")

    def _step(self, found: list[bytes]) -> bool:
        """Scan on to the next byte that matters; False when more bytes are needed."""
        if self._garbage:
            return False
        if not self._depth:
            return self._begin()
        at = (_IN_TEXT if self._in_text else _STRUCTURE).search(self._buffer, self._at)
        if at is None or (at[0] == b"\\" and at.end() == len(self._buffer)):
            self._at = at.start() if at else len(self._buffer)
            return False
        self._at = at.end()
        match at[0]:
            case b"\\":
                self._at += 1  # whatever is escaped
            case b'"':
                self._in_text = not self._in_text
            case b"{" | b"[":
                self._depth += 1
            case _:
                self._close(found)
        return True

    def _begin(self) -> bool:
        between = _BETWEEN.match(self._buffer)
        del self._buffer[: between.end() if between else 0]
        self._at = 0
        if not self._buffer:
            return False
        if self._buffer[:1] != b"{":
            self._garbage = f"no JSON object: {excerpt(bytes(self._buffer[:_SHOWN]))}"
            return False
        self._at = self._depth = 1
        return True

    def _close(self, found: list[bytes]) -> None:
        self._depth -= 1
        if not self._depth:
            found.append(bytes(self._buffer[: self._at]))
            del self._buffer[: self._at]


@dataclass(slots=True)
class Payloads:
    """The JSON payloads of a body, whichever way it is framed."""

    plain: bool = False  # the body is JSON itself: an array, or
    single: bool = False  # one object
    _frames: Frames = field(default_factory=Frames)
    _values: Values = field(default_factory=Values)
    _head: bytes = b""  # what came before the framing was clear, then the first bytes
    _open: bool = False
    _any: bool = False

    def feed(self, data: bytes) -> list[bytes]:
        if not self._open:
            data = self._begin(data)
        elif len(self._head) < _SHOWN:
            self._head += data[: _SHOWN - len(self._head)]
        found = self._values.feed(data) if self.plain else self._sse(data)
        self._any = self._any or bool(found)
        return found

    def end(self) -> list[bytes]:
        """What was still due; Garbled if the body never was one of the framings."""
        if self.plain:
            self._values.end()
            return []
        found = [frame.data for frame in self._frames.end()]
        if not found and not self._any and self._head and not self._head.startswith(_FIELDS):
            raise Garbled(f"neither events nor JSON: {excerpt(self._head)}")
        return found

    def _sse(self, data: bytes) -> list[bytes]:
        return [frame.data for frame in self._frames.feed(data)]

    def _begin(self, data: bytes) -> bytes:
        head = (self._head + data).lstrip(BLANK).removeprefix(BOM).lstrip(BLANK)
        if not head or BOM.startswith(head):
            self._head = head
            return b""
        self._head, self._open = head[:_SHOWN], True
        self.single = head.startswith(b"{")
        self.plain = self.single or head.startswith(b"[")
        return head
