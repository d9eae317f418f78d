"""A stream of /api/chat, written for a client of that API: every line an answer in little."""

from __future__ import annotations

from understudy.dialects.json_access import encode_line
from understudy.dialects.ollama.response import write_chunk, write_last
from understudy.dialects.telling import Untold
from understudy.messages.parts import ToolCall
from understudy.messages.response import Event, ReasoningDelta, Response, TextDelta


class OllamaWriter:
    """Writes one stream. See `StreamWriter`."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._untold = Untold()
        # What stands around the words of a delta: most of a stream is nothing else.
        empty = encode_line(write_chunk((), model, same=False))
        self._head, _, self._tail = empty.rpartition(b'""')

    def write_event(self, event: Event) -> bytes:
        self._untold.note(event)
        match event:
            case TextDelta():
                return self._around(encode_line(event.text))
            case ReasoningDelta():
                return self._around(b'"","thinking":' + encode_line(event.text))
            case ToolCall():
                call = write_chunk((event,), self._model, same=False)
                return encode_line(call) + b"\n"
            case Response():
                last = write_last(event, self._model, self._untold.parts(event))
                return encode_line(last) + b"\n"

    def write_error(self, status: int, message: str, kind: str) -> bytes:
        return encode_line({"error": message}) + b"\n"

    def _around(self, said: bytes) -> bytes:
        return self._head + said + self._tail + b"\n"
