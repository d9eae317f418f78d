"""A Responses stream, read: events in, deltas out, whole tool calls and one answer last.

The answer is the object of the terminal event. Where a vendor leaves its output out, it is put
together from the items and deltas that came before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec

from understudy.dialects.error_body import wire_error
from understudy.dialects.framed import FramedReader
from understudy.dialects.json_access import Wire, decode, items, obj, text, whole
from understudy.dialects.openai_responses.response import read_answer, read_response
from understudy.dialects.sse import Frame
from understudy.messages.response import Event, ReasoningDelta, Response, TextDelta


class _Text(msgspec.Struct, gc=False):
    """The event nearly all are: decoding fails for any other."""

    type: Literal["response.output_text.delta"]
    delta: str
    output_index: int = 0


_decode_text = msgspec.json.Decoder(_Text).decode

_ENDS = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.cancelled": "cancelled",
    "response.done": "completed",
}
_FAILURES = frozenset(("response.failed", "response.error", "error"))
# Deltas that grow an item, and the field they grow.
_GROWING = {
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
    "response.refusal.delta": "refusal",
    "response.code_interpreter_call_code.delta": "code",
    "response.mcp_call_arguments.delta": "arguments",
}
_REASONING = frozenset(("response.reasoning_summary_text.delta", "response.reasoning_text.delta"))


@dataclass(slots=True)
class _Item:
    """One output item in the making."""

    value: Wire = field(default_factory=dict)
    done: bool = False
    text: list[str] = field(default_factory=list)
    thoughts: dict[str, list[str]] = field(default_factory=dict)  # by the event's type
    grown: dict[str, list[str]] = field(default_factory=dict)

    def made(self) -> Wire:
        """The item as its vendor finished it, or as far as we can tell."""
        if self.done:
            return self.value
        item = dict(self.value)
        if self.text and not items(item.get("content")):
            said: Wire = {"type": "output_text", "text": "".join(self.text), "annotations": []}
            item |= {"type": "message", "role": "assistant", "content": [said]}
        if "refusal" in self.grown and not items(item.get("content")):
            refused: Wire = {"type": "refusal", "refusal": "".join(self.grown.pop("refusal"))}
            item |= {"type": "message", "role": "assistant", "content": [refused]}
        if self.thoughts and not items(item.get("summary")):
            thought = "".join(next(iter(self.thoughts.values())))
            item |= {"type": "reasoning", "summary": [{"type": "summary_text", "text": thought}]}
        for key, words in self.grown.items():
            item[key] = text(item.get(key)) or "".join(words)
        return item


@dataclass(slots=True)
class ResponsesReader(FramedReader):
    """See `StreamReader`."""

    _items: dict[int, _Item] = field(default_factory=dict)
    _snapshot: Wire = field(default_factory=dict)  # the answer as the last event showed it
    _said: list[str] = field(default_factory=list)
    _thought: list[str] = field(default_factory=list)

    def _read(self, frames: list[Frame], events: list[Event]) -> None:
        for frame in frames:
            try:
                event = _decode_text(frame.data)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self._read_any(frame, events)
                if self.done or self.failure:
                    return
                continue
            self._say(event.output_index, event.delta, events)

    def _read_any(self, frame: Frame, events: list[Event]) -> None:
        data = frame.data.strip()
        if not data.startswith(b"{"):
            if frame.event == "error":
                self._fail(data)
            return  # `[DONE]` at OpenRouter; the terminal event came before it
        event = obj(decode(data, self._halves))
        self._started = True
        kind = text(event.get("type")) or frame.event
        if kind in _FAILURES or (event.get("error") and not kind.startswith("response.")):
            self.failure = wire_error(data, event)
        elif kind in _ENDS:
            self._end(event, _ENDS[kind], events)
        else:
            self._take(kind, event, events)

    def _take(self, kind: str, event: Wire, events: list[Event]) -> None:
        index, delta = whole(event.get("output_index")) or 0, text(event.get("delta"))
        if kind in _REASONING:
            self._think(kind, index, delta, events)
        elif kind in _GROWING:
            self._item(index).grown.setdefault(_GROWING[kind], []).append(delta)
            self.beats += 1
        elif kind == "response.output_text.delta":
            self._say(index, delta, events)
        elif kind in ("response.output_item.added", "response.output_item.done"):
            item = self._item(index)
            item.value = obj(event.get("item"))
            item.done = kind.endswith(".done")
            # A message or a thought has said nothing yet; a call or a search is at work.
            self.beats += item.value.get("type") not in ("message", "reasoning")
        elif "response" in event:
            self._snapshot = obj(event.get("response"))

    def _item(self, index: int) -> _Item:
        return self._items.setdefault(index, _Item())

    def _say(self, index: int, delta: str, events: list[Event]) -> None:
        if delta:
            self._item(index).text.append(delta)
            self._said.append(delta)
            events.append(TextDelta(delta))
            self.beats += 1

    def _think(self, kind: str, index: int, delta: str, events: list[Event]) -> None:
        thoughts = self._item(index).thoughts
        thoughts.setdefault(kind, []).append(delta)
        # Some send the reasoning and its summary: whichever comes first is passed on.
        if delta and next(iter(thoughts)) == kind:
            self._thought.append(delta)
            events.append(ReasoningDelta(delta))
            self.beats += 1

    def _end(self, event: Wire, status: str, events: list[Event]) -> None:
        wire = {"status": status, **self._snapshot, **obj(event.get("response"))}
        if status != "completed" or wire["status"] in ("in_progress", "queued"):
            wire["status"] = status
        if not items(wire.get("output")):
            wire["output"] = [item.made() for _, item in sorted(self._items.items())]
        response = read_answer(wire)
        rest = _rest(response.reasoning, self._thought)
        if rest:
            events.append(ReasoningDelta(rest))
        rest = _rest(response.text, self._said)
        if rest:
            events.append(TextDelta(rest))
        self._finish(response, events)

    def _whole(self, body: bytes) -> Response:
        return read_response(body)


def _rest(whole_text: str, pieces: list[str]) -> str:
    """What the answer says beyond its deltas; nothing if they tell different stories."""
    said = "".join(pieces)
    return whole_text.removeprefix(said) if whole_text.startswith(said) else ""
