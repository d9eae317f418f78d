"""Streams of /api/chat and /api/generate: one object a line, the last one with `"done": true`."""

from __future__ import annotations

from understudy.dialects.base import Garbled, Truncated, WireError
from understudy.dialects.error_body import wire_error
from understudy.dialects.gathering import Gathering
from understudy.dialects.json_access import decode, encode, excerpt
from understudy.dialects.ollama_response import read_chunk, response_of, write_chunk, write_last
from understudy.dialects.sse import BLANK, MAX_LINE, Lines
from understudy.dialects.telling import Untold, tell
from understudy.messages.parts import Part, Reasoning, Text, ToolCall
from understudy.messages.response import Event, ReasoningDelta, Response, TextDelta


class OllamaReader:
    """Reads one stream. See `StreamReader`."""

    def __init__(self) -> None:
        self.failure: WireError | None = None
        self.done = False
        self._lines = Lines()
        self._parts = Gathering()
        self._calls = 0
        self._begun = False
        self._spread = bytearray()  # an answer that is written over several lines

    def feed(self, data: bytes) -> list[Event]:
        return self._read(self._lines.feed(data))

    def end(self) -> list[Event]:
        events = self._read(self._lines.end())
        if self._spread:
            self._take(bytes(self._spread), events)
        if self.done or self.failure:
            return events
        raise Truncated('the stream ended without "done": true')

    def _read(self, lines: list[bytes]) -> list[Event]:
        events: list[Event] = []
        for line in lines:
            if self.done or self.failure:
                break
            if self._spread or (not self._begun and _is_opening(line)):
                self._spread += line + b"\n"
                if len(self._spread) > MAX_LINE:
                    raise Garbled(f"an answer of more than {MAX_LINE} bytes")
            elif line.strip(BLANK):
                self._take(line, events)
        return events

    def _take(self, payload: bytes, events: list[Event]) -> None:
        self._begun = True
        chunk = decode(payload)
        if not isinstance(chunk, dict):
            raise Garbled(f"no object: {excerpt(payload)}")
        if chunk.get("error"):
            self.failure = wire_error(payload, chunk)
            return
        for part in read_chunk(chunk, self._calls):
            self._parts.add(part)
            self._calls += isinstance(part, ToolCall)
            tell(part, events)
        if chunk.get("done") is True:
            self.done = True
            events.append(response_of(chunk, self._parts.parts()))


def _is_opening(line: bytes) -> bool:
    """A line that begins an object and does not end it, as pretty printers write."""
    line = line.strip(BLANK)
    return line.startswith(b"{") and not line.endswith(b"}")


class OllamaWriter:
    """Writes one stream. See `StreamWriter`."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._untold = Untold()

    def write_event(self, event: Event) -> bytes:
        self._untold.note(event)
        match event:
            case TextDelta():
                return self._chunk(Text(event.text))
            case ReasoningDelta():
                return self._chunk(Reasoning(event.text))
            case ToolCall():
                return self._chunk(event)
            case Response():
                last = write_last(event, self._model, self._untold.parts(event))
                return encode(last) + b"\n"

    def write_error(self, status: int, message: str, kind: str) -> bytes:
        return encode({"error": message}) + b"\n"

    def _chunk(self, part: Part) -> bytes:
        return encode(write_chunk((part,), self._model, same=False)) + b"\n"
