"""What must be known of a relayed stream without reading it: progress, errors, its true end.

After the commit point chunks go through as they came. They are only searched, with plain byte
searches, for marks that cannot stand inside a JSON string: there a line break is escaped, and so
is every quote. Where something looks like an error or an end, that line alone is decoded.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import msgspec

from understudy.dialects.base import Garbled, StreamReader, Truncated
from understudy.messages.response import Response, Usage

RESPONSES_END = (b"completed", b"incomplete", b"failed", b"cancelled")
LINE_MAX = 64 * 1024  # bytes of an unfinished line that are kept
QUIET_MAX = 4096  # bytes within which an event that says nothing has said so
BRACE = ord("{")
REASONS = ("finish_reason", "finishReason", "blockReason")


@dataclass(frozen=True, slots=True)
class Marks:
    """One dialect's marks. `over` ends a stream for good; `finish` is enough if it just closes.

    Without an end mark of its own a dialect's finish is all there is: then it may also break.
    """

    over: tuple[bytes, ...] = ()
    ends: tuple[object, ...] = ()  # what `over` means, if its line is an object
    breaks: tuple[bytes, ...] = (b"\n\n", b"\n\r\n")  # behind an event
    finish: tuple[bytes, ...] = ()
    error: tuple[bytes, ...] = (b'"error"',)  # worth a closer look
    usage: tuple[bytes, ...] = (b'"usage":{', b'"usage": {')  # lines that tell what was used
    quiet: tuple[bytes, ...] = ()  # frames that are no progress
    last: bytes = b""  # what a reader needs to see behind a line of usage
    tail: int = 0  # bytes at the end of a chunk where an end can be; 0: anywhere in it


MARKS = {
    "openai": Marks(
        over=(b"\ndata: [DONE]", b"\ndata:[DONE]"),
        finish=(b'"finish_reason":"', b'"finish_reason": "'),
        quiet=(b'"delta":{}',),
        last=b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
        tail=4096,
    ),
    "responses": Marks(
        over=tuple(
            b'"type":%b"response.%b"' % (blank, end)
            for blank in (b"", b" ")
            for end in RESPONSES_END
        ),
        ends=tuple(f"response.{end.decode()}" for end in RESPONSES_END),
        error=(b'"type":"error"', b'"type": "error"', b'"response.failed"', b'\ndata: {"error"'),
        quiet=(b'"type":"keepalive"', b'"type": "keepalive"', b'"type":"response.in_progress"'),
    ),
    "anthropic": Marks(
        over=(b'"type":"message_stop"', b'"type": "message_stop"'),
        ends=("message_stop",),
        quiet=(b'"type":"ping"', b'"type": "ping"'),
        last=b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
        tail=4096,
    ),
    "gemini": Marks(
        finish=(b'"finishReason":', b'"blockReason":'),
        usage=(b'"usageMetadata":{', b'"usageMetadata": {'),
    ),
    "ollama": Marks(
        over=(b'"done":true', b'"done": true'),
        ends=(True,),
        breaks=(b"\n",),
        usage=(b'"eval_count":', b'"eval_count": '),
    ),
}


class Scan:
    """One stream, chunk by chunk."""

    __slots__ = (
        "_finish",
        "_marks",
        "_rest",
        "_seen",
        "alive",
        "error",
        "garbled",
        "good",
        "over",
        "used",
    )

    def __init__(self, dialect: str) -> None:
        self._marks = MARKS[dialect]
        self._rest = b"\n"  # the line that is not finished yet, with the break before it
        self._seen = b""  # the last chunk, with what was left of those before
        self.over = False
        self._finish = b""  # where, it seems, the answer's end was told, not the stream's
        self.error = b""  # an error's payload, for the classifier
        self.alive = False  # was the last chunk any progress
        self.garbled = False  # a finished line is no event
        self.good = 0  # bytes of the last chunk before that line
        self.used: list[bytes] = []  # the first line that told usage, and the last

    def feed(self, data: bytes) -> None:
        """Look at a chunk."""
        marks = self._marks
        window = self._seen = self._rest + data
        last = window.rfind(b"\n")
        self._rest = window[max(last, len(window) - LINE_MAX) :]
        tail = window[-marks.tail :] if len(window) > marks.tail > 0 else window
        self.over = self.over or (_any(marks.over, tail) and self._ends(tail))
        if _any(marks.finish, tail):
            self._finish = tail
        if not self.error and _any(marks.error, window):
            self.error = _error(window)
        if _any(marks.usage, window):
            self._note_usage(window)
        # Counting is cheap: only where it does not come out even is a closer look taken.
        starts = window.count(b"\ndata: {", 0, last)
        ends = window.count(b"}\n", 0, last + 1) + window.count(b"}\r\n", 0, last + 1)
        others = window.count(b"\ndata:", 0, last) - starts
        if starts != ends or others > window.count(b"\ndata: [DONE]", 0, last):
            self._judge(window, len(window) - len(data))
        if BRACE in data:
            self.alive = not (_any(marks.quiet, data[:QUIET_MAX]) and self._only_quiet(data))
        else:
            self.alive = b"[DONE]" in data  # comments and blank lines are silence

    @property
    def ended(self) -> bool:
        """Was the last chunk the end, up to its last line break? Nothing that matters follows."""
        return self.over and self._seen.endswith(self._marks.breaks)

    @property
    def complete(self) -> bool:
        """The connection's answer ended here: was it the stream's end?"""
        return not self.error and (self._over or _finishes(self._seen) or _finishes(self._finish))

    @property
    def whole(self) -> bool:
        """The connection broke here, or is silent: had everything come that matters?"""
        return self.complete and (self._over or not self._marks.over)

    @property
    def _over(self) -> bool:
        """Also if the end is written in a rarer way, or without a last line break."""
        return self.over or self._ends(self._seen)

    def _ends(self, window: bytes) -> bool:
        """Is one of these lines the stream's end? A mark deep within an object is none."""
        ends = self._marks.ends
        if not ends:
            return _any(self._marks.over, window)
        for line in reversed(window.split(b"\n")):  # an end is among the last
            value = _object(line)
            if value is not None and (value.get("type") in ends or value.get("done") in ends):
                return True
        return len(window) >= LINE_MAX and _any(self._marks.over, window)  # too long to be kept

    def usage(self, reader: StreamReader) -> Usage | None:
        """What was used, read from the lines that told it; None if none did."""
        lines = b"".join(b"%b\n\n" % line for line in self.used)
        try:
            events = [*reader.feed(lines + self._marks.last), *reader.end()] if lines else []
        except (Garbled, Truncated):
            return None
        return next((e.usage for e in events if isinstance(e, Response)), None)

    def _judge(self, window: bytes, before: int) -> None:
        lines, at = window.split(b"\n"), 0
        for line, following in pairwise(lines):
            if _is_bad(line.rstrip(), following in (b"", b"\r")):
                self.garbled = True
                self.good = max(0, at - before)
                return
            at += len(line) + 1

    def _note_usage(self, window: bytes) -> None:
        mark = next(mark for mark in self._marks.usage if mark in window)
        for at in (window.find(mark), window.rfind(mark)):
            end = window.find(b"\n", at)
            if end >= 0:
                line = window[window.rfind(b"\n", 0, at) + 1 : end]
                self.used[1:] = [line] if self.used[:1] != [line] else []  # the first stays

    def _only_quiet(self, data: bytes) -> bool:
        return data.count(b"data:") == sum(map(data.count, self._marks.quiet))


def _any(marks: tuple[bytes, ...], window: bytes) -> bool:
    # Asked of each chunk: `any` takes twice as long, and so does `in`, which tries a number first.
    for mark in marks:  # noqa: SIM110
        if window.find(mark) >= 0:
            return True
    return False


def _object(line: bytes) -> dict[str, object] | None:
    payload = line.removeprefix(b"data:").strip(b" \r,[")
    if not payload.startswith(b"{"):
        return None
    try:
        value = msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # half a line: it is looked at again when it is whole
    return value if isinstance(value, dict) else None


def _finishes(window: bytes) -> bool:
    """Does one of these lines give a reason to have finished? `null` and "" are none."""
    for line in reversed(window.split(b"\n")):  # a finish is among the last
        value = _object(line)
        if value is None:
            continue
        told = [value.get("choices"), value.get("candidates"), [value.get("promptFeedback")]]
        for one in (one for group in told if isinstance(group, list) for one in group):
            if isinstance(one, dict) and any(one.get(name) for name in REASONS):
                return True
    return False


def _is_bad(line: bytes, last: bool) -> bool:
    """A data line of bare words, or an object cut short where its event ends."""
    if not line.startswith(b"data:"):
        return False
    payload = line[5:].lstrip(b" ")
    if payload.startswith(b"{"):
        return last and not payload.endswith(b"}")
    return payload[:1].isalpha() or payload.startswith(b"<")


def _error(window: bytes) -> bytes:
    """The payload of the first line that is an error; "" if none is."""
    for line in window.split(b"\n"):
        value = _object(line)
        if value and (value.get("error") or value.get("type") in ("error", "response.failed")):
            return line.removeprefix(b"data:").strip(b" \r,[")
    return b""
