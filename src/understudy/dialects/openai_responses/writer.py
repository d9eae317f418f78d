"""A Responses stream, written: every item opened, grown and closed as OpenAI does it.

SDKs build the answer up from these events and count them, so none may be missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from understudy.dialects.error_body import write_error
from understudy.dialects.json_access import Wire, encode, text
from understudy.dialects.openai_responses.items import (
    ISSUER,
    item_id,
    place_of,
    refused,
    spoken,
    write_output,
)
from understudy.dialects.openai_responses.response import (
    UNNAMED,
    envelope,
    raw_word,
    write_items,
)
from understudy.dialects.telling import Untold
from understudy.messages.parts import Image, Opaque, Part, Reasoning, Text, ToolCall
from understudy.messages.response import Event, ReasoningDelta, Response, TextDelta


@dataclass(slots=True)
class ResponsesWriter:
    """See `StreamWriter`."""

    model: str
    id: str = UNNAMED
    created: int = 0  # seconds since 1970; a dialect has no clock
    echo: Wire = field(default_factory=dict)  # of the request
    _number: int = 0  # of the next event
    _output: list[Wire] = field(default_factory=list)  # finished items
    _open: str = ""  # the kind of item being written: "message", "reasoning" or none
    _pieces: list[str] = field(default_factory=list)
    _untold: Untold = field(default_factory=Untold)

    def write_event(self, event: Event) -> bytes:
        opening = b"" if self._number else self._opening()
        self._untold.note(event)
        match event:
            case TextDelta(text=said):
                return opening + self._grow("message", said)
            case ReasoningDelta(text=said):
                return opening + self._grow("reasoning", said)
            case ToolCall():
                return opening + self._close() + self._call(event)
            case _:
                return opening + self._ending(event)

    def write_error(self, status: int, message: str, kind: str) -> bytes:
        # The fields stand twice: flat as documented, nested as OpenAI sends them. The SDKs raise
        # only for the nested ones, and would take the flat event for one more piece of the answer.
        flat: Wire = {"code": kind, "message": message, "param": None}
        return self._event("error", {**flat, **write_error(status, message, kind)})

    def _event(self, kind: str, fields: Wire) -> bytes:
        body: Wire = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return b"event: " + kind.encode() + b"\ndata: " + encode(body) + b"\n\n"

    def _opening(self) -> bytes:
        blank = envelope(Response(id=self.id), self.model, [])
        blank |= {"created_at": self.created, "status": "in_progress", **self.echo}
        first = self._event("response.created", {"response": blank})
        return first + self._event("response.in_progress", {"response": blank})

    @property
    def _index(self) -> int:
        return len(self._output)

    @property
    def _place(self) -> str:
        return place_of(self.id, self._index)

    def _at(self, prefix: str) -> Wire:
        """Which item and which part of it: we write one part an item."""
        inner = "summary_index" if prefix == "rs" else "content_index"
        return {"item_id": item_id(prefix, self._place), "output_index": self._index, inner: 0}

    def _grow(self, kind: str, said: str) -> bytes:
        written = b"" if self._open == kind else self._close() + _OPENERS[kind](self)
        self._open = kind
        self._pieces.append(said)
        if kind == "reasoning":
            fields = {**self._at("rs"), "delta": said}
            return written + self._event("response.reasoning_summary_text.delta", fields)
        fields = {**self._at("msg"), "delta": said, "logprobs": []}
        return written + self._event("response.output_text.delta", fields)

    def _open_message(self) -> bytes:
        item = {**spoken("", self._place), "status": "in_progress", "content": []}
        blank: Wire = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        part = {**self._at("msg"), "part": blank}
        return self._added(item) + self._event("response.content_part.added", part)

    def _open_reasoning(self) -> bytes:
        item: Wire = {"id": item_id("rs", self._place), "type": "reasoning", "summary": []}
        blank: Wire = {"type": "summary_text", "text": ""}
        part = {**self._at("rs"), "part": blank}
        return self._added(item) + self._event("response.reasoning_summary_part.added", part)

    def _close(self) -> bytes:
        kind, said = self._open, "".join(self._pieces)
        self._open, self._pieces = "", []
        if kind == "message":
            return self._close_message(said)
        return self._close_reasoning(said) if kind == "reasoning" else b""

    def _close_message(self, said: str) -> bytes:
        item, at = spoken(said, self._place), self._at("msg")
        part: Wire = {"type": "output_text", "text": said, "annotations": [], "logprobs": []}
        return (
            self._event("response.output_text.done", {**at, "text": said, "logprobs": []})
            + self._event("response.content_part.done", {**at, "part": part})
            + self._done(item)
        )

    def _close_reasoning(self, said: str) -> bytes:
        at = self._at("rs")
        part: Wire = {"type": "summary_text", "text": said}
        item: Wire = {"id": at["item_id"], "type": "reasoning", "summary": [part]}
        return (
            self._event("response.reasoning_summary_text.done", {**at, "text": said})
            + self._event("response.reasoning_summary_part.done", {**at, "part": part})
            + self._done(item)
        )

    def _call(self, call: ToolCall) -> bytes:
        item = write_output(call, self._place, same=False) or {}
        if item["type"] != "function_call":
            return self._whole(item)
        at: Wire = {"item_id": item["id"], "output_index": self._index}
        words: Wire = {"arguments": call.arguments, "name": call.name}
        begun = {**item, "arguments": "", "status": "in_progress"}
        return (
            self._added(begun)
            + self._event(
                "response.function_call_arguments.delta", {**at, "delta": call.arguments}
            )
            + self._event("response.function_call_arguments.done", {**at, **words})
            + self._done(item)
        )

    def _refusal(self, said: str) -> bytes:
        item, at = refused(said, self._place), self._at("msg")
        blank: Wire = {"type": "refusal", "refusal": ""}
        part: Wire = {"type": "refusal", "refusal": said}
        return (
            self._added({**item, "status": "in_progress", "content": []})
            + self._event("response.content_part.added", {**at, "part": blank})
            + self._event("response.refusal.delta", {**at, "delta": said})
            + self._event("response.refusal.done", {**at, "refusal": said})
            + self._event("response.content_part.done", {**at, "part": part})
            + self._done(item)
        )

    def _whole(self, item: Wire) -> bytes:
        return self._added(item) + self._done(item)

    def _added(self, item: Wire) -> bytes:
        fields: Wire = {"output_index": self._index, "item": item}
        return self._event("response.output_item.added", fields)

    def _done(self, item: Wire) -> bytes:
        fields: Wire = {"output_index": self._index, "item": item}
        self._output.append(item)
        return self._event("response.output_item.done", fields)

    def _ending(self, response: Response) -> bytes:
        same = response.issuer == ISSUER
        untold = self._untold.parts(replace(response, refusal=""))
        written = [self._tell(part, same) for part in untold]
        written.append(self._close())
        if response.refusal:
            written.append(self._refusal(response.refusal))
        body = envelope(response, self.model, self._final(response))
        body |= {"id": self.id, "created_at": self.created, **self.echo}
        cut = raw_word(response).startswith("incomplete")
        kind = "response.incomplete" if cut else "response.completed"
        return b"".join(written) + self._event(kind, {"response": body})

    def _tell(self, part: Part, same: bool) -> bytes:
        match part:
            case Text() if part.text:
                return self._grow("message", part.text)
            case Reasoning() if part.text:
                return self._grow("reasoning", part.text)
            case ToolCall():
                return self._close() + self._call(part)
            case Image() | Opaque():
                closing = self._close()
                item = write_output(part, self._place, same)
                return closing + (self._whole(item) if item else b"")
        return b""

    def _final(self, response: Response) -> list[Wire]:
        """The items as streamed, or as the answer has them when that is the same and more."""
        whole_items = write_items(replace(response, id=self.id))
        kinds = [text(item.get("type")) for item in whole_items]
        return whole_items if kinds == [item["type"] for item in self._output] else self._output


_OPENERS = {
    "message": ResponsesWriter._open_message,
    "reasoning": ResponsesWriter._open_reasoning,
}
