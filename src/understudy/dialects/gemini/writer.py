"""A generateContent stream written for a client of that API: every chunk an answer in little."""

from __future__ import annotations

from understudy.dialects.gemini.errors import write_error
from understudy.dialects.gemini.parts import write_call, write_thought
from understudy.dialects.gemini.response import write_chunk, write_delta
from understudy.dialects.json_access import encode
from understudy.dialects.telling import Untold
from understudy.messages.parts import Json, Reasoning, ToolCall
from understudy.messages.response import Event, ReasoningDelta, Response, TextDelta


class GeminiWriter:
    """Writes one stream, as events or as one array. See `StreamWriter`."""

    def __init__(self, model: str, array: bool = False) -> None:
        self._model = model
        self._array = array
        self._begun = False
        self._untold = Untold()

    def write_event(self, event: Event) -> bytes:
        self._untold.note(event)
        match event:
            case TextDelta():
                return self._write(write_delta({"text": event.text}, self._model))
            case ReasoningDelta():
                return self._write(write_delta(write_thought(Reasoning(event.text)), self._model))
            case ToolCall():
                return self._write(write_delta(write_call(event, same=False), self._model))
            case Response():
                parts = self._untold.parts(event)
                last = self._write(write_chunk(event, self._model, parts))
                return last + (b"]" if self._array else b"")

    def write_error(self, status: int, message: str, kind: str) -> bytes:
        return self._write(write_error(status, message, kind))

    def _write(self, chunk: dict[str, Json]) -> bytes:
        if not self._array:
            return b"data: " + encode(chunk) + b"\r\n\r\n"
        lead = b"," if self._begun else b"["
        self._begun = True
        return lead + encode(chunk) + b"\r\n"
