"""Bytes in, whole events out; half an event waits for its other half. Reads none of them."""

from __future__ import annotations

from understudy.dialects.base import Garbled
from understudy.dialects.sse import MAX_LINE


class Events:
    """One stream's events, as `breaks` end them."""

    __slots__ = ("_breaks", "_edge", "_parts", "_size")

    def __init__(self, breaks: tuple[bytes, ...]) -> None:
        self._breaks = breaks
        self._parts: list[bytes] = []  # of an event that has not ended
        self._edge = b""  # their last two bytes: an end may lie across two pieces
        self._size = 0

    def feed(self, data: bytes) -> bytes:
        """The events that are whole by now, as they came; raises for one that is too long."""
        if not self._parts and data.endswith(self._breaks):
            return data  # as nearly always
        near = self._edge + data
        ends = [at + len(mark) for mark in self._breaks if (at := near.rfind(mark)) >= 0]
        if not ends:
            self._wait(data)
            return b""
        cut = max(ends) - len(self._edge)
        whole = b"".join((*self._parts, data[:cut]))
        self.take()
        self._wait(data[cut:])
        return whole

    def _wait(self, data: bytes) -> None:
        if data:
            self._parts.append(data)
            self._size += len(data)
            self._edge = (self._edge + data)[-2:]
        if self._size > MAX_LINE:
            raise Garbled(f"an event of more than {MAX_LINE} bytes")

    @property
    def speaks(self) -> bool:
        """Is what waits a part of an event, and not just of a comment?"""
        return bool(self._parts) and self._parts[0][:1] not in (b":", b"\r", b"\n")

    def take(self) -> bytes:
        """What waits, and will not become whole any more."""
        parts, self._parts, self._edge, self._size = self._parts, [], b"", 0
        return b"".join(parts)
