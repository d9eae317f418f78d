# ruff: noqa: E501 - tables: rows are read across
"""The bytes of each dialect that faults are made of: whole answers, pieces of streams, errors.

Answers come from the dialects' own writers, so every surface has them; what no writer would ever
write (an answer without choices, an error in mid-stream) stands here word for word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from understudy.dialects.base import Dialect
from understudy.dialects.json_access import encode
from understudy.dialects.table import dialect_named
from understudy.messages.response import Event, ReasoningDelta, Response, TextDelta, Usage

USAGE = Usage(12, 3)
BUSY = "The engine is currently overloaded"
SSE, LINES = "text/event-stream", "application/x-ndjson"
STREAM_KIND = {"ollama": LINES}  # others send server-sent events

# fmt: off
ERROR = {
    "openai":    b'data: {"error":{"message":"%b","type":"server_error","code":503}}\n\n',
    "responses": b'event: error\ndata: {"type":"error","code":"server_error","message":"%b"}\n\n',
    "anthropic": b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"%b"}}\n\n',
    "gemini":    b'data: {"error":{"code":503,"message":"%b","status":"UNAVAILABLE"}}\n\n',
    "ollama":    b'{"error":"%b"}\n',
}
NOTHING = {
    "openai":    b'{"id":"c-1","object":"chat.completion","choices":[]}',
    "responses": b'{"id":"r-1","object":"response","status":"completed","output":[]}',
    "anthropic": b'{"id":"m-1","type":"message","role":"assistant","model":"m","content":[],'
                 b'"stop_reason":"end_turn","usage":{"input_tokens":12,"output_tokens":0}}',
    "gemini":    b'{"candidates":[]}',
    "ollama":    b'{"model":"m","message":{"role":"assistant","content":""},"done":true}',
}
# fmt: on


@dataclass(frozen=True, slots=True)
class Voice:
    """One dialect saying one text for one model."""

    dialect: Dialect
    model: str
    text: str = "half whole"

    @property
    def kind(self) -> str:
        return STREAM_KIND.get(self.dialect.name, SSE)

    @property
    def answer(self) -> Response:
        return Response(text=self.text, usage=USAGE)

    def whole(self, response: Response) -> bytes:
        return encode(self.dialect.write_response(response, self.model))

    def events(self, *events: Event) -> tuple[bytes, ...]:
        """A stream of these events, one piece for each event of the wire."""
        writer = self.dialect.writer(self.model)
        return split(b"".join(writer.write_event(event) for event in events))

    @property
    def halves(self) -> tuple[str, str]:
        cut = max(1, (len(self.text) + 1) // 2)
        return self.text[:cut], self.text[cut:]

    def stream(self) -> tuple[bytes, ...]:
        """A good stream in two deltas."""
        deltas = (TextDelta(half) for half in self.halves if half)
        return self.events(*deltas, self.answer)

    def phrases(self) -> Mapping[str, bytes]:
        """Everything a step may name."""
        name, first = self.dialect.name, self.events(TextDelta(self.halves[0]))
        both = self.events(*(TextDelta(half) for half in self.halves if half))
        whole = self.stream()
        blank, white = self.events(TextDelta(" \n")), Response(text=" \n", usage=USAGE)
        thinking = Response(reasoning="hm", usage=USAGE)
        return {
            "answer": self.whole(self.answer),
            "nothing": NOTHING[name],
            "blank": self.whole(white),
            "thinking": self.whole(thinking),
            "filtered": self.whole(Response(finish_reason="content_filter", usage=USAGE)),
            "error": ERROR[name] % BUSY.encode(),
            "error body": _payload(ERROR[name] % BUSY.encode()),
            "opening": b"".join(first[:-1]),
            "content": b"".join(first),
            "rest": b"".join(both[len(first) :]),
            "end": b"".join(whole[len(both) :]),
            "stream": b"".join(whole),
            "nothing streamed": _event(name, NOTHING[name]),
            "blank content": b"".join(blank),
            "blank end": b"".join(self.events(TextDelta(" \n"), white)[len(blank) :]),
            "thinking streamed": b"".join(self.events(ReasoningDelta("hm"), thinking)),
            "filtered streamed": b"".join(
                self.events(Response(finish_reason="content_filter", usage=USAGE))
            ),
            "bad event": _event(name, b'{"cho'),
            "comment": b": still here\n\n",
            "last event again": first[-1],
        }


def voice(dialect: str, model: str, text: str = "half whole") -> Voice:
    return Voice(dialect_named(dialect), model, text)


def split(data: bytes) -> tuple[bytes, ...]:
    """A stream's bytes, event by event."""
    mark = next(m for m in (b"\r\n\r\n", b"\n\n", b"\n") if m in data)
    return tuple(piece + mark for piece in data.split(mark) if piece)


def _event(dialect: str, payload: bytes) -> bytes:
    return payload + b"\n" if dialect == "ollama" else b"data: " + payload + b"\n\n"


def _payload(event: bytes) -> bytes:
    return event[event.index(b"{") :].rstrip()
