"""Heads of requests that were read before.

A client's library sends the same head again and again; only the length of the body differs. What
the parser made of it once is true of its next copy, byte for byte. Knows only requests that came
whole, in one piece, and whose length is all that may differ; everything else is the parser's.
"""

from __future__ import annotations

from understudy.gateway.http import Head

MOST = 1024  # heads; clients may vary theirs without end
LARGEST = 4096  # bytes of one
END = b"\r\n\r\n"
LENGTH = b"ength: "  # of `Content-Length: `, which is the first place it may stand in
BEFORE = b"\r\ncontent-l"
FRAMED = frozenset([b"transfer-encoding", b"expect", b"upgrade"])  # the parser's business


class Heads:
    """What is known again, and by what."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, Head] = {}

    def find(self, data: bytes) -> tuple[Head, bytes] | None:
        """Head and body, if this is one whole request with a head that is known."""
        end = data.find(END)
        at = data.find(LENGTH, 0, end) + len(LENGTH)
        stop = data.find(b"\r", at, end + 1)
        head = self._known.get(data[:at] + data[stop:end])
        if head is None or end < 0:
            return None
        body = data[end + 4 :]
        return (head, body) if data[at:stop] == b"%d" % len(body) else None

    def keep(self, data: bytes, head: Head, body: bytes) -> None:
        """The parser made this of a piece that begins with it; know it again, if that can be."""
        end = data.find(END)
        at = data.find(LENGTH, 0, end) + len(LENGTH)
        stop = data.find(b"\r", at, end + 1)
        before = data[max(0, at - len(BEFORE) - len(LENGTH)) : at - len(LENGTH)]
        if (
            end > LARGEST
            or before.lower() != BEFORE
            or data[at:stop] != b"%d" % len(body)
            or data[end + 4 :] != body
            or not FRAMED.isdisjoint(head.headers)
        ):
            return
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[data[:at] + data[stop:end]] = head
