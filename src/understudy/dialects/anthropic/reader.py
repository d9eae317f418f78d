"""A Messages stream read as it comes: deltas at once, tool calls when they are whole.

Counts in `message_delta` are totals: they replace those of `message_start`. Unknown events are
passed over, whatever their fields are; unknown deltas go into the block they belong to, but never
over what the known ones say. After a fallback on Anthropic's side the model that served is named
by the block that tells of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from understudy.dialects.anthropic.response import read_answered, read_response, response_of
from understudy.dialects.base import Garbled
from understudy.dialects.extras import given, kept
from understudy.dialects.framed import FramedReader
from understudy.dialects.json_access import (
    Halves,
    decode,
    encode,
    excerpt,
    items,
    obj,
    text,
    whole,
)
from understudy.dialects.sse import Frame
from understudy.messages.parts import Json, Part, ToolCall
from understudy.messages.response import Event, ReasoningDelta, Response, TextDelta


class _Delta(msgspec.Struct):
    """The deltas that make up nearly all of a stream; rarer ones are decoded again."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    partial_json: str = ""


class _Wire(msgspec.Struct):
    type: str = ""
    index: int = 0
    delta: _Delta = msgspec.field(default_factory=_Delta)


_DECODER = msgspec.json.Decoder(_Wire)
_SILENT = frozenset(("ping", "keepalive"))
_NAMES = frozenset(
    (
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    )
)
_GROWN = frozenset(("type", "text", "thinking", "input"))  # what only deltas of their own change
_STARTS: dict[str, dict[str, Json]] = {
    "text_delta": {"type": "text"},
    "thinking_delta": {"type": "thinking"},
    "signature_delta": {"type": "thinking"},
}


@dataclass(slots=True)
class _Block:
    """One content block while it grows."""

    start: dict[str, Json]
    said: list[str] = field(default_factory=list)  # text or thinking
    json: list[str] = field(default_factory=list)  # pieces of `input`
    closed: bool = False

    def start_text(self, kind: str) -> str:
        return text(self.start.get(kind)) if self.start.get("type") == kind else ""

    def add(self, delta: dict[str, Json]) -> None:
        """A rare delta: a citation joins the list, another field is the block's from now on."""
        for key, value in delta.items():
            if key == "citation":
                self.start["citations"] = [*items(self.start.get("citations")), value]
            elif key not in _GROWN:
                self.start[key] = value

    def finished(self) -> dict[str, Json]:
        """The block as a plain answer would hold it."""
        kind = text(self.start.get("type"))
        block = dict(self.start)
        if kind in ("text", "thinking"):
            block[kind] = text(block.get(kind)) + "".join(self.said)
        spelled = "".join(self.json)
        if spelled:  # of a client's tool as text: cut JSON must not cost the call
            block["input"] = spelled if kind == "tool_use" else _value(spelled)
        return block


def _value(spelled: str) -> Json:
    try:
        return decode(spelled.encode())
    except Garbled:
        return spelled


@dataclass(slots=True)
class AnthropicReader(FramedReader):
    """Reads one stream. See `StreamReader`."""

    _message: dict[str, Json] = field(default_factory=dict)
    _blocks: dict[int, _Block] = field(default_factory=dict)

    def _read(self, frames: list[Frame], events: list[Event]) -> None:
        for frame in frames:
            self._take(frame, events)
            self._started = True
            if self.done or self.failure:
                return

    def _whole(self, body: bytes) -> Response:
        return read_response(body)

    def _take(self, frame: Frame, events: list[Event]) -> None:
        if frame.event in _SILENT:
            return  # whatever it carries
        wire = _decoded(frame.data, self._halves)
        kind = wire.type if wire.type and frame.event != "error" else _named(frame)
        if kind == "content_block_delta":
            self._grow(wire, frame.data, events)
        elif kind in _SILENT:
            return
        elif kind == "error":
            self._fail(frame.data)
        else:
            self._turn(kind, obj(decode(frame.data, self._halves)), events)

    def _turn(self, kind: str, value: dict[str, Json], events: list[Event]) -> None:
        match kind:
            case "message_start":
                self._begin(obj(value.get("message")), events)
            case "content_block_start":
                self._open(value, events)
            case "content_block_stop":
                self._close(whole(value.get("index")) or 0, events)
            case "message_delta":
                self._ending(value)
            case "message_stop":
                self._stop(events)

    def _grow(self, wire: _Wire, data: bytes, events: list[Event]) -> None:
        delta = wire.delta
        block = self._blocks.get(wire.index)
        if block is None:  # its start was left out
            block = self._blocks[wire.index] = _Block(dict(_STARTS.get(delta.type, {})))
        match delta.type:
            case "text_delta":
                if not delta.text:
                    return
                block.said.append(delta.text)
                events.append(TextDelta(delta.text))
            case "thinking_delta":
                if not delta.thinking:
                    return
                block.said.append(delta.thinking)
                events.append(ReasoningDelta(delta.thinking))
            case "input_json_delta":
                block.json.append(delta.partial_json)
            case _:
                block.add(obj(obj(decode(data)).get("delta")))
        self.beats += 1

    def _begin(self, message: dict[str, Json], events: list[Event]) -> None:
        """The envelope, with the blocks it holds already when a tool's program went on."""
        self._message = message
        for index, block in enumerate(items(message.get("content"))):
            self._open({"index": index, "content_block": block}, events)

    def _open(self, value: dict[str, Json], events: list[Event]) -> None:
        block = _Block(dict(obj(value.get("content_block"))))
        self._blocks[whole(value.get("index")) or 0] = block
        if block.start.get("type") not in ("text", "thinking"):
            self.beats += 1
        if block.start.get("type") == "fallback":
            named = text(obj(block.start.get("to")).get("model"))
            self._message = {**self._message, **given(model=named)}
        if said := block.start_text("text"):
            events.append(TextDelta(said))
        if said := block.start_text("thinking"):
            events.append(ReasoningDelta(said))

    def _close(self, index: int, events: list[Event]) -> None:
        block = self._blocks.get(index)
        if block is None or block.closed:
            return
        block.closed = True
        part = self._part(index) if block.start.get("type") == "tool_use" else None
        if isinstance(part, ToolCall):
            events.append(part)

    def _part(self, index: int) -> Part | None:
        block = self._blocks[index].finished()
        return read_answered(block, text(self._message.get("id")), index)

    def _ending(self, value: dict[str, Json]) -> None:
        ending = kept(obj(value.get("delta")), ())
        usage: Json = {**obj(self._message.get("usage")), **kept(obj(value.get("usage")), ())}
        rest = kept(value, ("type", "delta", "usage"))
        self._message = {**self._message, **rest, **ending, "usage": usage}

    def _stop(self, events: list[Event]) -> None:
        for index in self._blocks:
            self._close(index, events)
        parts = [part for part in map(self._part, self._blocks) if part is not None]
        self.done = True
        events.append(response_of(self._message, parts))


def _named(frame: Frame) -> str:
    """What an object without a type is: what its event is called, else an error."""
    told = frame.event in _NAMES and b'"error"' not in frame.data
    return frame.event if told else "error"


def _decoded(data: bytes, halves: Halves) -> _Wire:
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    if data.strip() == b"[DONE]":
        return _Wire("ping")  # another dialect's terminator, added by some proxies
    value = decode(data, halves)  # raises Garbled, or mends what the fast decoder refused
    try:
        return _DECODER.decode(encode(value))
    except msgspec.DecodeError as error:
        if obj(value).get("error"):
            return _Wire("error")
        if not text(obj(value).get("type")):
            raise Garbled(f"no stream event ({error}): {excerpt(data)}") from error
    return _strange(obj(value))


def _strange(value: dict[str, Json]) -> _Wire:
    """An event of a kind we do not know, with such fields of ours as have our types."""
    delta = obj(value.get("delta"))
    said = {name: text(delta.get(name)) for name in ("type", "text", "thinking", "partial_json")}
    return _Wire(text(value["type"]), whole(value.get("index")) or 0, _Delta(**said))
