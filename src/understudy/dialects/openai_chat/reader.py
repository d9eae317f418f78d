"""A Chat Completions stream, read: chunks in, deltas out, whole tool calls and one answer last.

Two ways through: a typed decoder for the chunk that carries nothing but text, which is nearly
every chunk, and a lenient one for all others. `[DONE]` ends a stream; so does its close after a
finish reason, because some vendors never send `[DONE]`. Anything else is Truncated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec

from understudy.dialects.error_body import error_in, nested_error, wire_error
from understudy.dialects.framed import FramedReader
from understudy.dialects.json_access import decode, obj
from understudy.dialects.openai_chat.answer import Answer
from understudy.dialects.openai_chat.response import read_response
from understudy.dialects.sse import Frame
from understudy.messages.response import Event, Response, TextDelta


class _Delta(msgspec.Struct, gc=False):
    """Text alone: whatever else a delta can hold must be null here, or decoding fails."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: None = None
    tool_calls: None = None
    function_call: None = None
    refusal: None = None
    images: None = None
    audio: None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta
    index: Literal[0] = 0
    finish_reason: None = None
    error: None = None


class _Chunk(msgspec.Struct, gc=False):
    choices: tuple[_Choice]
    usage: None = None
    error: None = None
    x_groq: None = None


_decode_plain = msgspec.json.Decoder(_Chunk).decode


def _plain_delta(data: bytes) -> _Delta | None:
    try:
        return _decode_plain(data).choices[0].delta
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


@dataclass(slots=True)
class ChatReader(FramedReader):
    """See `StreamReader`."""

    _answer: Answer = field(default_factory=Answer)

    def _read(self, frames: list[Frame], events: list[Event]) -> None:
        answer = self._answer
        for frame in frames:
            delta = _plain_delta(frame.data) if answer.model else None
            if delta is None:  # not that plain, or nobody has named the model yet
                self._read_any(frame, events)
                if self.done or self.failure:
                    return
                continue
            if delta.reasoning_content or delta.reasoning:
                answer.think(delta.reasoning_content, delta.reasoning, events)
                self.beats += 1
            if delta.content:
                answer.text.append(delta.content)
                events.append(TextDelta(delta.content))
                self.beats += 1

    def _read_any(self, frame: Frame, events: list[Event]) -> None:
        data = frame.data.strip()
        if data.startswith(b"[DONE]"):
            self._finish(self._answer.response(), events)
        elif frame.event == "error":
            self._fail(data)
        elif data.startswith(b"{"):  # anything else is some vendor's idea of a ping
            chunk = obj(decode(data, self._halves))
            self._started = True
            if error_in(chunk) or nested_error(chunk.get("choices")):
                self.failure = wire_error(data, chunk)
            elif self._answer.add(chunk, events):
                self.beats += 1

    def _complete(self, events: list[Event]) -> bool:
        if not self._answer.finish_raw:
            return False
        self._finish(self._answer.response(), events)
        return True

    def _whole(self, body: bytes) -> Response:
        return read_response(body)
