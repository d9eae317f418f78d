"""A generateContent stream read as it comes. It has no terminator of its own.

A finish reason (or a blocked prompt) and then the end of the body make it whole; counts may come
with the finish or after it, and are totals. What ends without a reason was cut off.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec

from understudy.dialects.base import Truncated
from understudy.dialects.extras import kept
from understudy.dialects.gathering import Gathering
from understudy.dialects.gemini.others import Others
from understudy.dialects.gemini.pieces import Pieces
from understudy.dialects.gemini.response import (
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
from understudy.messages.parts import Json, Text, ToolCall
from understudy.messages.response import Event, TextDelta


class _Piece(msgspec.Struct, forbid_unknown_fields=True):
    text: str


class _Content(msgspec.Struct, forbid_unknown_fields=True):
    parts: list[_Piece]
    role: str = ""


class _Candidate(msgspec.Struct, forbid_unknown_fields=True):
    content: _Content
    index: Literal[0] = 0


class _Plain(msgspec.Struct, forbid_unknown_fields=True):
    """The chunks that make up nearly all of a stream; any other is decoded again, in full."""

    candidates: list[_Candidate]
    usageMetadata: msgspec.Raw = msgspec.Raw()
    modelVersion: msgspec.Raw = msgspec.Raw()
    responseId: msgspec.Raw = msgspec.Raw()


_DECODER = msgspec.json.Decoder(_Plain)


@dataclass(slots=True)
class GeminiReader(PayloadReader):
    """Reads one stream. See `StreamReader`."""

    _payloads: Payloads = field(default_factory=Payloads)
    _parts: Gathering = field(default_factory=Gathering)
    _chunk: dict[str, Json] = field(default_factory=dict)  # the envelope as last told
    _candidate: dict[str, Json] = field(default_factory=dict)
    _others: Others = field(default_factory=Others)
    _pieces: Pieces = field(default_factory=Pieces)
    _calls: int = 0
    _chunks: int = 0
    _envelope: _Plain | None = None  # of the chunks of plain text: read once, at the end

    def _split(self, data: bytes) -> list[bytes]:
        return self._payloads.feed(data)

    def _rest(self) -> list[bytes]:
        return self._payloads.end()

    def _take(self, payload: bytes, events: list[Event]) -> None:
        if self._quick(payload, events) or payload.strip() == b"[DONE]":
            return  # [DONE]: another dialect's terminator, added by some proxies
        self._recall()
        value = decode(payload, self._halves)
        self.failure = failed(payload, value)
        for chunk in [] if self.failure else value if isinstance(value, list) else [value]:
            self._add(obj(chunk), events)

    def _quick(self, payload: bytes, events: list[Event]) -> bool:
        try:
            seen = _DECODER.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        if len(seen.candidates) != 1 or len(seen.candidates[0].content.parts) != 1:
            return False
        if self._pieces.open is not None:
            return False
        said = seen.candidates[0].content.parts[0].text
        if not said:
            return False
        self._chunks += 1
        self.beats += 1
        if before := self._envelope:  # what a chunk does not repeat still holds
            seen.usageMetadata = seen.usageMetadata or before.usageMetadata
            seen.modelVersion = seen.modelVersion or before.modelVersion
            seen.responseId = seen.responseId or before.responseId
        self._envelope = seen
        self._parts.add(Text(said))
        events.append(TextDelta(said))
        return True

    def _recall(self) -> None:
        """The envelope of the chunks that were read quickly, as they last told it."""
        if seen := self._envelope:
            told = {
                "usageMetadata": seen.usageMetadata,
                "modelVersion": seen.modelVersion,
                "responseId": seen.responseId,
            }
            found: dict[str, Json] = {k: decode(bytes(raw)) for k, raw in told.items() if raw}
            self._chunk |= kept(found, ())
            self._envelope = None

    def _add(self, chunk: dict[str, Json], events: list[Event]) -> None:
        self._chunks += 1
        candidate = first_candidate(chunk)
        self._chunk |= kept(chunk, ("candidates",))
        self._candidate |= kept(candidate, ("content",))
        self._others.add(chunk, candidate)
        self._say(self._pieces.whole(candidate), events)
        self.beats += self._pieces.open is not None

    def _say(self, candidate: dict[str, Json], events: list[Event]) -> None:
        response_id = text(self._chunk.get("responseId"))
        for part in read_content(candidate, response_id, self._calls):
            self.beats += 1
            self._parts.add(part)
            self._calls += isinstance(part, ToolCall)
            tell(part, events)

    @property
    def finished(self) -> bool:
        """A reason to have finished has come; nothing but counts can follow."""
        self._recall()
        return bool(finish_of({**self._chunk, "candidates": [self._candidate]}))

    def _finish(self, events: list[Event]) -> None:
        self._recall()
        self._say({"content": {"parts": self._pieces.rest()}}, events)
        candidates: list[Json] = [self._candidate, *self._others.made()]
        chunk: dict[str, Json] = {**self._chunk, "candidates": candidates}
        alone = self._payloads.single and self._chunks == 1  # a whole answer, not a stream
        if not finish_of(chunk) and not alone:
            raise Truncated("the stream ended without a finish reason")
        self.done = True
        events.append(response_of(chunk, self._parts.parts()))
