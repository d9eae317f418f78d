"""A generateContent stream read as it comes. It has no terminator of its own.

A finish reason (or a blocked prompt) and then the end of the body make it whole; counts may come
with the finish or after it, and are totals. What ends without a reason was cut off.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from understudy.dialects.base import Truncated
from understudy.dialects.extras import kept
from understudy.dialects.gathering import Gathering
from understudy.dialects.gemini_response import (
    failed,
    finish_of,
    first_candidate,
    read_content,
    response_of,
)
from understudy.dialects.json_access import decode, obj, text
from understudy.dialects.json_values import Payloads
from understudy.dialects.payload_reader import PayloadReader
from understudy.dialects.telling import tell
from understudy.messages.parts import Json, ToolCall
from understudy.messages.response import Event


@dataclass(slots=True)
class GeminiReader(PayloadReader):
    """Reads one stream. See `StreamReader`."""

    _payloads: Payloads = field(default_factory=Payloads)
    _parts: Gathering = field(default_factory=Gathering)
    _chunk: dict[str, Json] = field(default_factory=dict)  # the envelope as last told
    _candidate: dict[str, Json] = field(default_factory=dict)
    _calls: int = 0
    _chunks: int = 0

    def _split(self, data: bytes) -> list[bytes]:
        return self._payloads.feed(data)

    def _rest(self) -> list[bytes]:
        return self._payloads.end()

    def _take(self, payload: bytes, events: list[Event]) -> None:
        if payload.strip() == b"[DONE]":
            return  # another dialect's terminator, added by some proxies
        value = decode(payload)
        self.failure = failed(payload, value)
        for chunk in [] if self.failure else value if isinstance(value, list) else [value]:
            self._add(obj(chunk), events)

    def _add(self, chunk: dict[str, Json], events: list[Event]) -> None:
        self._chunks += 1
        candidate = first_candidate(chunk)
        self._chunk |= kept(chunk, ("candidates",))
        self._candidate |= kept(candidate, ("content",))
        response_id = text(self._chunk.get("responseId"))
        for part in read_content(candidate, response_id, self._calls):
            self.beats += 1
            self._parts.add(part)
            self._calls += isinstance(part, ToolCall)
            tell(part, events)

    def _finish(self, events: list[Event]) -> None:
        chunk: dict[str, Json] = {**self._chunk, "candidates": [self._candidate]}
        alone = self._payloads.single and self._chunks == 1  # a whole answer, not a stream
        if not finish_of(chunk) and not alone:
            raise Truncated("the stream ended without a finish reason")
        self.done = True
        events.append(response_of(chunk, self._parts.parts()))
