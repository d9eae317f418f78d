"""What must be known of a relayed stream without reading it: progress, errors, its true end.

After the commit point whole events go through as they came. They are only searched, with plain
byte searches, for marks that cannot stand inside a JSON string: there a line break is escaped, and
so is every quote. Where something looks like an error or an end, those events are decoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from understudy.dialects.base import Garbled, StreamReader, Truncated
from understudy.dialects.error_body import nested_error
from understudy.messages.parts import Json
from understudy.messages.response import Response, Usage

RESPONSES_END = (b"completed", b"incomplete", b"failed", b"cancelled", b"done")
QUIET_MAX = 4096  # bytes within which an event that says nothing has said so
BRACE = ord("{")
BARE = b"{"  # stands for the name of an event without labels: an error, written as it was
ERRORS = ("error", "response.failed", "response.error")
REASONS = ("finish_reason", "finishReason", "blockReason")
# Events as nearly all are: an object, whole and on one line. `*+` and `++` never look back.
_OBJECT = rb"\{[^\n]*+(?:(?<=\})|(?<=\}\r))"
_FIELDS = rb"(?:(?:event|id|retry)?:[^\n]*+\n)*+"  # a field without a name is a comment
EVENTS = re.compile(rb"(?:%b(?:data: ?(?:%b|\[DONE\]\r?)\n)?\r?\n)++" % (_FIELDS, _OBJECT))
LINES = re.compile(rb"(?:%b\n|\r?\n)++" % _OBJECT)


@dataclass(frozen=True, slots=True)
class Marks:
    """One dialect's marks. `over` ends a stream for good; `finish` is enough if it just closes.

    Without an end mark of its own a dialect's finish is all there is: then it may also break.
    """

    over: tuple[bytes, ...] = ()
    ends: tuple[object, ...] = ()  # what `over` means, if its event is an object
    breaks: tuple[bytes, ...] = (b"\n\n", b"\n\r\n")  # behind an event
    label: bytes = b"data:"  # before what an event carries; "": its lines are events themselves
    finish: tuple[bytes, ...] = ()
    error: tuple[bytes, ...] = (b'"error"',)  # worth a closer look
    failing: tuple[str, ...] = ()  # types of events that clients take for errors
    named: bool = False  # or do clients go by what the event is called
    bare: bool = False  # or do some see one only where it stands without a label
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
        error=(
            b'"type":"error"',
            b'"type": "error"',
            b'"response.failed"',
            b'"response.error"',
            b'\ndata: {"error"',
        ),
        failing=("error", "response.failed"),
        quiet=(b'"type":"keepalive"', b'"type": "keepalive"', b'"type":"response.in_progress"'),
    ),
    "anthropic": Marks(
        over=(b'"type":"message_stop"', b'"type": "message_stop"'),
        ends=("message_stop",),
        quiet=(b'"type":"ping"', b'"type": "ping"'),
        named=True,
        last=b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
        tail=4096,
    ),
    "gemini": Marks(
        finish=(b'"finishReason":', b'"blockReason":'),
        usage=(b'"usageMetadata":{', b'"usageMetadata": {'),
        bare=True,
    ),
    "ollama": Marks(
        over=(b'"done":true', b'"done": true'),
        ends=(True,),
        breaks=(b"\n",),
        label=b"",
        usage=(b'"eval_count":', b'"eval_count": '),
    ),
}


class Scan:
    """One stream, some whole events at a time."""

    __slots__ = (
        "_bare",
        "_cut",
        "_finish",
        "_marks",
        "_plain",
        "_seen",
        "alive",
        "error",
        "garbled",
        "good",
        "over",
        "used",
    )

    def __init__(self, dialect: str) -> None:
        self._marks = marks = MARKS[dialect]
        self._plain = EVENTS.fullmatch if marks.label else LINES.fullmatch
        self._seen = b""  # the last events
        self.over = False
        self._finish = b""  # where, it seems, the answer's end was told, not the stream's
        self.error = b""  # an error's payload, for the classifier
        self.alive = False  # were the last events any progress
        self.garbled = False  # one of them is none, or none for clients
        self.good = 0  # bytes of them before that one
        self._bare = False  # it went through without a label
        self._cut = False  # it ended within an event
        self.used: list[bytes] = []  # the first line that told usage, and the last

    def feed(self, data: bytes) -> None:
        """Look at whole events."""
        marks = self._marks
        self._seen = data
        window = b"\n" + data
        tail = window[-marks.tail :] if len(window) > marks.tail > 0 else window
        self.over = self.over or (_any(marks.over, tail) and self._ends(tail))
        if _any(marks.finish, tail):
            self._finish = tail
        if _any(marks.usage, window):
            self._note_usage(window)
        if not self._plain(data):
            self._judge(data)
        if not self.error and _any(marks.error, window):
            self._find_error(data)
        if BRACE in data:
            self.alive = not (_any(marks.quiet, data[:QUIET_MAX]) and self._only_quiet(data))
        else:
            self.alive = b"[DONE]" in data  # comments and blank lines are silence

    def close(self, rest: bytes) -> None:
        """The stream ended, or broke, behind these bytes of an event."""
        self._seen += rest
        self._cut = any(_is_half(payload) for _, _, payload in self._payloads(rest))
        if not self.error and _any(self._marks.error, rest):
            self.error = next((p for p, value in self._objects(rest) if _is_error(value)), b"")

    @property
    def words(self) -> bytes:
        """The error once more, without a label, where some clients see it only so."""
        unseen = self._marks.bare and not self._bare
        return self.error + b"\r\n" if self.error and unseen else b""

    @property
    def ended(self) -> bool:
        """Were the last events the end? Nothing that matters follows."""
        return self.over and self._seen.endswith(self._marks.breaks)

    @property
    def complete(self) -> bool:
        """The connection's answer ended here: was it the stream's end?"""
        if self.error or self._cut:
            return False
        return self._over or any(_finishes(self._objects(w)) for w in (self._seen, self._finish))

    @property
    def whole(self) -> bool:
        """The connection broke here, or is silent: had everything come that matters?"""
        return self.complete and (self._over or not self._marks.over)

    @property
    def _over(self) -> bool:
        """Also if the end is written in a rarer way, or without a last line break."""
        return self.over or self._ends(b"\n" + self._seen)

    def _ends(self, window: bytes) -> bool:
        """Is one of these events the stream's end? A mark deep within an object is none."""
        ends = self._marks.ends
        if not ends:
            return _any(self._marks.over, window)
        found = (value for _, value in self._objects(window))
        return any(v.get("type") in ends or v.get("done") in ends for v in found)

    def usage(self, reader: StreamReader) -> Usage | None:
        """What was used, read from the lines that told it; None if none did."""
        lines = b"".join(b"%b\n\n" % line for line in self.used)
        try:
            events = [*reader.feed(lines + self._marks.last), *reader.end()] if lines else []
        except (Garbled, Truncated):
            return None
        return next((e.usage for e in events if isinstance(e, Response)), None)

    def _judge(self, data: bytes) -> None:
        for at, _, payload in self._payloads(data):
            if _is_bad(payload):
                self.garbled, self.good = True, at
                return

    def _find_error(self, data: bytes) -> None:
        """The first event that is an error. One that clients take for none is not for them."""
        for at, name, payload in self._payloads(data):
            value = _object(payload)
            if value is not None and _is_error(value):
                self.error = payload
                self._bare = name == BARE
                if not (self.garbled or self._tells(name, value)):
                    self.garbled, self.good = True, at
                return

    def _tells(self, name: bytes, value: dict[str, Json]) -> bool:
        """Would a client of this dialect take this event for the error it is?"""
        marks = self._marks
        if marks.named:
            return name == b"error"
        if name == BARE:
            return marks.bare
        return bool(value.get("error")) or value.get("type") in marks.failing

    def _payloads(self, data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
        """Where events begin, their names, and what they carry; that may go over several lines."""
        label, at, begin = self._marks.label, 0, 0
        lines: list[bytes] = []
        for line in (*data.split(b"\n"), b""):
            bare = line.rstrip(b"\r")
            begin = begin if lines else at
            if bare:
                lines.append(bare)
            if lines and not (bare and label):
                name, told = _of(b"event:", lines), _of(label, lines)
                if not told and lines[0].startswith(BARE):
                    name, told = BARE, b"\n".join(lines)
                yield begin, name, told
                lines = []
            at += len(line) + 1

    def _objects(self, window: bytes) -> Iterator[tuple[bytes, dict[str, Json]]]:
        """Those payloads that are objects, the last one first: an end is among the last."""
        for _, _, payload in reversed(list(self._payloads(window))):
            value = _object(payload)
            if value is not None:
                yield payload, value

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


def _of(label: bytes, lines: list[bytes]) -> bytes:
    """What an event's lines say under this label."""
    return b"\n".join(
        [line[len(label) :].lstrip(b" ") for line in lines if line.startswith(label)]
    )


def _object(told: bytes) -> dict[str, Json] | None:
    """What an event carries, if that is an object and whole."""
    payload = told.strip(b" ,[")
    if not payload.startswith(b"{"):
        return None
    try:
        value = msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _is_half(payload: bytes) -> bool:
    """An object that breaks off."""
    return payload.startswith(b"{") and _object(payload) is None


Objects = Iterable[tuple[bytes, dict[str, Json]]]


def _finishes(objects: Objects) -> bool:
    """Does one of these events give a reason to have finished? `null` and "" are none."""
    for _, value in objects:
        told = [value.get("choices"), value.get("candidates"), [value.get("promptFeedback")]]
        for one in (one for group in told if isinstance(group, list) for one in group):
            if isinstance(one, dict) and any(one.get(name) for name in REASONS):
                return True
    return False


def _is_bad(payload: bytes) -> bool:
    """Bare words where JSON should be, or an object cut short."""
    if payload.startswith(b"{"):
        return not payload.rstrip().endswith(b"}")
    return payload[:1].isalpha() or payload.startswith(b"<")


def _is_error(value: dict[str, Json]) -> bool:
    if value.get("error") or value.get("object") == "error" or value.get("type") in ERRORS:
        return True
    return nested_error(value.get("choices"))
