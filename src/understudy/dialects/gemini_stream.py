"""A generateContent stream read as it comes. It has no terminator of its own.

A finish reason (or a blocked prompt) and then the end of the body make it whole; counts may come
with the finish or after it, and are totals. What ends without a reason was cut off.
"""

from __future__ import annotations

from understudy.dialects.base import Truncated, WireError
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
from understudy.dialects.telling import tell
from understudy.messages.parts import Json, ToolCall
from understudy.messages.response import Event


class GeminiReader:
    """Reads one stream. See `StreamReader`."""

    def __init__(self) -> None:
        self.failure: WireError | None = None
        self.done = False
        self._payloads = Payloads()
        self._parts = Gathering()
        self._chunk: dict[str, Json] = {}  # the envelope as last told
        self._candidate: dict[str, Json] = {}
        self._calls = 0
        self._chunks = 0

    def feed(self, data: bytes) -> list[Event]:
        return self._read(self._payloads.feed(data))

    def end(self) -> list[Event]:
        events = self._read(self._payloads.end())
        if self.failure:
            return events
        chunk: dict[str, Json] = {**self._chunk, "candidates": [self._candidate]}
        alone = self._payloads.plain and self._chunks == 1  # a whole answer, not a stream
        if not finish_of(chunk) and not alone:
            raise Truncated("the stream ended without a finish reason")
        self.done = True
        return [*events, response_of(chunk, self._parts.parts())]

    def _read(self, payloads: list[bytes]) -> list[Event]:
        events: list[Event] = []
        for payload in payloads:
            if self.failure:
                break
            if payload.strip() == b"[DONE]":
                continue  # another dialect's terminator, added by some proxies
            value = decode(payload)
            self.failure = failed(payload, value)
            for chunk in [] if self.failure else value if isinstance(value, list) else [value]:
                self._take(obj(chunk), events)
        return events

    def _take(self, chunk: dict[str, Json], events: list[Event]) -> None:
        self._chunks += 1
        candidate = first_candidate(chunk)
        self._chunk |= kept(chunk, ("candidates",))
        self._candidate |= kept(candidate, ("content",))
        response_id = text(self._chunk.get("responseId"))
        for part in read_content(candidate, response_id, self._calls):
            self._parts.add(part)
            tell(part, events)
            self._calls += isinstance(part, ToolCall)
