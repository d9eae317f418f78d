"""What must be known of a relayed stream without reading it: progress, errors, its true end.

After the commit point chunks go through as they came. They are only searched, with plain byte
searches, for marks that cannot stand inside a JSON string: there a line break is escaped, and so
is every quote. Where something looks like an error, that line alone is decoded.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

LINE_MAX = 64 * 1024  # bytes of an unfinished line that are kept


@dataclass(frozen=True, slots=True)
class Marks:
    """One dialect's marks. `over` ends a stream for good; `finish` is enough if it just closes."""

    over: tuple[bytes, ...] = ()
    finish: tuple[bytes, ...] = ()
    error: tuple[bytes, ...] = (b'"error"',)  # worth a closer look
    quiet: tuple[bytes, ...] = ()  # frames that are no progress


MARKS = {
    "openai": Marks(
        over=(b"\ndata: [DONE]", b"\ndata:[DONE]"),
        finish=(b'"finish_reason":"', b'"finish_reason": "'),
    ),
    "responses": Marks(
        over=tuple(
            b'"type":%b"response.%b"' % (blank, end)
            for blank in (b"", b" ")
            for end in (b"completed", b"incomplete", b"failed", b"cancelled")
        ),
        error=(b'"type":"error"', b'"type": "error"', b'"response.failed"', b'\ndata: {"error"'),
        quiet=(b'"type":"keepalive"', b'"type": "keepalive"'),
    ),
    "anthropic": Marks(
        over=(b'"type":"message_stop"', b'"type": "message_stop"'),
        quiet=(b'"type":"ping"', b'"type": "ping"'),
    ),
    "gemini": Marks(finish=(b'"finishReason":', b'"blockReason":')),
    "ollama": Marks(over=(b'"done":true', b'"done": true')),
}


class Scan:
    """One stream, chunk by chunk."""

    __slots__ = ("_marks", "_rest", "alive", "error", "finished", "over")

    def __init__(self, dialect: str) -> None:
        self._marks = MARKS[dialect]
        self._rest = b"\n"  # the line that is not finished yet, with the break before it
        self.over = False
        self.finished = False  # the answer's own end was told, though not the stream's
        self.error = b""  # an error's payload, for the classifier
        self.alive = False  # was the last chunk any progress

    def feed(self, data: bytes) -> None:
        """Look at a chunk."""
        marks, window = self._marks, self._rest + data
        last = window.rfind(b"\n")
        self._rest = window[max(last, len(window) - LINE_MAX) :]
        if not self.over:
            for mark in marks.over:
                if mark in window:
                    self.over = True
                    break
        if not self.finished:
            for mark in marks.finish:
                if mark in window:
                    self.finished = True
                    break
        for mark in marks.error:
            if mark in window:
                self.error = self.error or _error(window)
        if b"{" in data:
            self.alive = not marks.quiet or not self._only_quiet(data)
        else:
            self.alive = b"[DONE]" in data  # comments and blank lines are silence

    @property
    def complete(self) -> bool:
        return (self.over or self.finished) and not self.error

    def _only_quiet(self, data: bytes) -> bool:
        return data.count(b"data:") == sum(data.count(mark) for mark in self._marks.quiet)


def _error(window: bytes) -> bytes:
    """The payload of the first line that is an error; "" if none is."""
    for line in window.split(b"\n"):
        payload = line.removeprefix(b"data:").strip(b" \r,[")
        if payload.startswith(b"{") and _is_error(payload):
            return payload
    return b""


def _is_error(payload: bytes) -> bool:
    try:
        value = msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False  # half a line: it is looked at again when it is whole
    if not isinstance(value, dict):
        return False
    return bool(value.get("error")) or value.get("type") in ("error", "response.failed")
