"""A Messages stream written for a client of that API: blocks opened, grown and closed in order.

The envelope goes out before anything is known of the end, so its id is the one we were given
unless the whole answer is the first event, and its counts are zero until `message_delta` replaces
them.
"""

from __future__ import annotations

from collections.abc import Callable

from understudy.dialects.anthropic.blocks import ISSUER, write_call
from understudy.dialects.anthropic.errors import write_error
from understudy.dialects.anthropic.response import (
    UNNAMED,
    write_answered,
    write_ending,
    write_usage,
)
from understudy.dialects.json_access import encode, items, text
from understudy.dialects.telling import Untold
from understudy.messages.parts import NO_EXTRA, Json, ToolCall
from understudy.messages.response import Event, ReasoningDelta, Response, TextDelta

_Filling = tuple[dict[str, Json], list[dict[str, Json]]]  # an empty block, and its deltas
_BLOCKS: dict[str, dict[str, Json]] = {
    "text": {"type": "text", "text": ""},
    "thinking": {"type": "thinking", "thinking": "", "signature": ""},
}


def _frame(kind: str, **fields: Json) -> bytes:
    data = encode({"type": kind, **fields})
    return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"


class AnthropicWriter:
    """Writes one stream. See `StreamWriter`."""

    def __init__(self, model: str, id: str = UNNAMED) -> None:
        self._model = model
        self._id = id
        self._begun = False
        self._open = ""  # the kind of the block being written
        self._index = -1
        self._untold = Untold()

    def write_event(self, event: Event) -> bytes:
        head = self._begin(event)
        self._untold.note(event)
        match event:
            case TextDelta():
                return head + self._grow("text", {"type": "text_delta", "text": event.text})
            case ReasoningDelta():
                delta: dict[str, Json] = {"type": "thinking_delta", "thinking": event.text}
                return head + self._grow("thinking", delta)
            case ToolCall():
                return head + self._block(write_call(event, same=False))
            case Response():
                return head + self._finish(event)

    def write_error(self, status: int, message: str, kind: str) -> bytes:
        return b"event: error\ndata: " + encode(write_error(status, message, kind)) + b"\n\n"

    def _begin(self, event: Event) -> bytes:
        if self._begun:
            return b""
        self._begun = True
        whole = event if isinstance(event, Response) else Response()
        message: dict[str, Json] = {
            "id": whole.id or self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model or whole.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": write_usage(None),
        }
        return _frame("message_start", message=message)

    def _grow(self, kind: str, delta: dict[str, Json]) -> bytes:
        head = b"" if self._open == kind else self._start(kind, _BLOCKS[kind])
        return head + _frame("content_block_delta", index=self._index, delta=delta)

    def _start(self, kind: str, block: dict[str, Json]) -> bytes:
        head = self._close()
        self._open = kind
        self._index += 1
        return head + _frame("content_block_start", index=self._index, content_block=block)

    def _close(self) -> bytes:
        if not self._open:
            return b""
        self._open = ""
        return _frame("content_block_stop", index=self._index)

    def _block(self, block: dict[str, Json]) -> bytes:
        """A whole block: started empty, filled by its deltas, closed."""
        kind = text(block.get("type"))
        empty, deltas = _FILLINGS[kind](block) if kind in _FILLINGS else (block, [])
        grown = [self._start(kind, empty)]
        for delta in deltas:
            grown.append(_frame("content_block_delta", index=self._index, delta=delta))
        return b"".join(grown) + self._close()

    def _finish(self, response: Response) -> bytes:
        same = response.issuer == ISSUER
        written = [self._close()]
        for part in self._untold.parts(response):
            block = write_answered(part, same)
            if block is not None:
                written.append(self._block(block))
        ending = write_ending(response)
        usage = write_usage(response.usage, response.extra if same else NO_EXTRA)
        written.append(_frame("message_delta", delta=ending, usage=usage))
        return b"".join(written) + _frame("message_stop")


def _fill_text(block: dict[str, Json]) -> _Filling:
    deltas: list[dict[str, Json]] = [{"type": "text_delta", "text": block["text"]}]
    for citation in items(block.get("citations")):
        deltas.append({"type": "citations_delta", "citation": citation})
    return {**block, "text": "", "citations": None}, deltas


def _fill_thinking(block: dict[str, Json]) -> _Filling:
    deltas: list[dict[str, Json]] = [{"type": "thinking_delta", "thinking": block["thinking"]}]
    if block["signature"]:
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    return {**block, "thinking": "", "signature": ""}, deltas


def _fill_call(block: dict[str, Json]) -> _Filling:
    spelled = encode(block["input"]).decode()
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": spelled}]


_FILLINGS: dict[str, Callable[[dict[str, Json]], _Filling]] = {
    "text": _fill_text,
    "thinking": _fill_thinking,
    "tool_use": _fill_call,
}
