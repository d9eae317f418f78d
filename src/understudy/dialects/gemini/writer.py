"""A generateContent stream written for a client of that API: every chunk an answer in little."""

from __future__ import annotations

from understudy.dialects.gemini.errors import write_error
from understudy.dialects.gemini.parts import signed_call, write_call, write_thought
from understudy.dialects.gemini.response import write_chunk, write_delta
from understudy.dialects.json_access import encode_line
from understudy.dialects.telling import Untold
from understudy.messages.parts import Json, Reasoning, ToolCall
from understudy.messages.response import Event, ReasoningDelta, Response, TextDelta


class GeminiWriter:
    """Writes one stream, as events or as one array. See `StreamWriter`.

    `foreign`: it is another vendor's, so that its calls bear no signatures of Gemini.
    """

    def __init__(self, model: str, array: bool = False, foreign: bool = False) -> None:
        self._model = model
        self._array = array
        self._begun = False
        self._unexcused = foreign  # no call has been written yet that must bear an excuse
        self._untold = Untold()
        self._text = self._around({"text": ""})
        self._thought = self._around(write_thought(Reasoning()))

    def write_event(self, event: Event) -> bytes:
        self._untold.note(event)
        match event:
            case TextDelta():
                head, tail = self._text
                return self._framed(head + encode_line(event.text) + tail)
            case ReasoningDelta():
                head, tail = self._thought
                return self._framed(head + encode_line(event.text) + tail)
            case ToolCall():
                call = signed_call(event) if self._unexcused else event
                self._unexcused = False
                return self._write(write_delta(write_call(call, same=False), self._model))
            case Response():
                parts = self._untold.parts(event)
                last = self._write(write_chunk(event, self._model, parts))
                return last + (b"]" if self._array else b"")

    def write_error(self, status: int, message: str, kind: str) -> bytes:
        """Told twice: who reads events sees it in one, two of Google's SDKs only bare and last."""
        error = write_error(status, message, kind)
        return self._write(error) + (b"" if self._array else encode_line(error) + b"\r\n")

    def _around(self, empty: Json) -> tuple[bytes, bytes]:
        """What stands around the words of a delta: most of a stream is nothing else."""
        head, _, tail = encode_line(write_delta(empty, self._model)).partition(b'""')
        return head, tail

    def _write(self, chunk: dict[str, Json]) -> bytes:
        return self._framed(encode_line(chunk))

    def _framed(self, chunk: bytes) -> bytes:
        if not self._array:
            return b"data: " + chunk + b"\r\n\r\n"
        lead = b"," if self._begun else b"["
        self._begun = True
        return lead + chunk + b"\r\n"
