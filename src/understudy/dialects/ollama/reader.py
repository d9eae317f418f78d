"""Streams of /api/chat and /api/generate, read: an object a line, the last with `"done": true`."""

from __future__ import annotations

from dataclasses import dataclass, field

from understudy.dialects.base import Garbled
from understudy.dialects.error_body import wire_error
from understudy.dialects.gathering import Gathering
from understudy.dialects.json_access import decode, excerpt
from understudy.dialects.ollama.response import is_error, read_chunk, response_of
from understudy.dialects.payload_reader import PayloadReader
from understudy.dialects.sse import BLANK, MAX_LINE, Lines
from understudy.dialects.telling import tell
from understudy.messages.parts import ToolCall
from understudy.messages.response import Event


@dataclass(slots=True)
class OllamaReader(PayloadReader):
    """Reads one stream. See `StreamReader`."""

    _lines: Lines = field(default_factory=Lines)
    _parts: Gathering = field(default_factory=Gathering)
    _calls: int = 0
    _any: bool = False
    _spread: bytearray = field(default_factory=bytearray)  # an answer over several lines

    def _split(self, data: bytes) -> list[bytes]:
        return [line for line in self._lines.feed(data) if self._is_payload(line)]

    def _rest(self) -> list[bytes]:
        lines = [line for line in self._lines.end() if self._is_payload(line)]
        return [*lines, bytes(self._spread)] if self._spread else lines

    def _is_payload(self, line: bytes) -> bool:
        """Whether a line is an object of its own: not blank, and no piece of a spread one."""
        if self._spread or (not self._any and _is_opening(line)):
            self._spread += line + b"\n"
            if len(self._spread) > MAX_LINE:
                raise Garbled(f"an answer of more than {MAX_LINE} bytes")
            return False
        self._any = self._any or bool(line.strip(BLANK))
        return bool(line.strip(BLANK))

    def _take(self, payload: bytes, events: list[Event]) -> None:
        chunk = decode(payload, self._halves)
        if not isinstance(chunk, dict):
            raise Garbled(f"no object: {excerpt(payload)}")
        if is_error(chunk):
            self.failure = wire_error(payload, chunk)
            return
        for part in read_chunk(chunk, self._calls):
            self.beats += 1
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
