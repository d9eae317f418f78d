"""Items of the Responses API and our parts: one item is one part of an assistant's turn.

An item we would not write alike rides whole in the part's `extra`, and goes back as it came as
long as the part still says the same. Items we have no noun for become `Opaque`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from understudy.dialects.blobs import read_base64, to_base64
from understudy.dialects.calls import made_up, raw_arguments, spelled
from understudy.dialects.json_access import Wire, items, obj, text, without
from understudy.dialects.tool_ids import fitted_id
from understudy.messages.parts import Image, Json, Opaque, Part, Reasoning, Text, ToolCall

ISSUER = "responses"
LONGEST_ID = 64  # of a call; OpenAI refuses longer ones
OURS = "_understudy_"  # in the ids of items we had to name ourselves
_CUSTOM = "custom_tool_call"
_PICTURE = "image_generation_call"
# Turns of the history that OpenAI alone has, or alone can read.
_KEPT = frozenset(("item_reference", "compaction", "compaction_summary", "context_compaction"))

_STRANGE = re.compile(r"[^a-zA-Z0-9]")


def place_of(answer: str, index: int) -> str:
    """Which item of which answer: clients know items by their ids, over many answers."""
    return f"{_STRANGE.sub('', answer.removeprefix('resp_'))[-24:]}_{index}"


def item_id(prefix: str, place: str) -> str:
    """An id for an item whose maker gave none; told by its middle when it comes back."""
    return f"{prefix}{OURS}{place}"


def named_by_us(item: Wire) -> bool:
    return OURS in text(item.get("id"))


def read_item(item: Wire, *place: str | int) -> Part | None:
    """The part an item is, the item itself in `extra`; None for a message without text.

    `place` seeds the ids of calls that came without one.
    """
    kind = text(item.get("type")) or "message"
    read = _READERS.get(kind)
    return read(item, *place) if read else Opaque(ISSUER, item, vital=kind in _KEPT)


def _read_message(item: Wire, *place: str | int) -> Part | None:
    said = message_text(item)
    return Text(said, item) if said else None


def message_text(item: Wire) -> str:
    content = item.get("content")
    return text(content) or _texts(content)


def refusal_text(item: Wire) -> str:
    parts = (obj(part) for part in items(item.get("content")))
    return "".join(text(part.get("refusal")) for part in parts)


def _read_reasoning(item: Wire, *place: str | int) -> Part:
    data = text(item.get("encrypted_content"))
    return Reasoning(reasoning_text(item), ISSUER, data=data, extra=item)


def reasoning_text(item: Wire) -> str:
    """Summaries if there are any, the reasoning itself otherwise."""
    return _texts(item.get("summary")) or _texts(item.get("content"))


def _texts(pieces: Json) -> str:
    return "".join(text(obj(piece).get("text")) for piece in items(pieces))


def _read_call(item: Wire, *place: str | int) -> Part:
    name, arguments = text(item.get("name")), spelled(item.get("arguments"))
    found = text(item.get("call_id")) or made_up(*place, name, arguments)
    extra = without(item, ("type", "call_id", "name", "arguments"))
    return ToolCall(found, name, arguments, ISSUER if extra else "", extra)


def _read_custom(item: Wire, *place: str | int) -> Part:
    name, said = text(item.get("name")), text(item.get("input"))
    found = text(item.get("call_id")) or made_up(*place, name, said)
    return ToolCall(found, name, said, ISSUER, without(item, ("call_id", "name", "input")))


def _read_picture(item: Wire, *place: str | int) -> Part:
    data = read_base64(text(item.get("result")))
    if not data:
        return Opaque(ISSUER, item)
    mime = f"image/{text(item.get('output_format')) or 'png'}"
    return Image(data, mime, extra=without(item, ("result",)))


_READERS: dict[str, Callable[..., Part | None]] = {
    "message": _read_message,
    "reasoning": _read_reasoning,
    "function_call": _read_call,
    _CUSTOM: _read_custom,
    _PICTURE: _read_picture,
}


def plain(part: Part) -> Part:
    """The part without what rides along."""
    match part:
        case Text():
            return Text(part.text)
        case Reasoning():
            return Reasoning(part.text, part.issuer, data=part.data)
        case ToolCall():
            return ToolCall(part.id, part.name, part.arguments)
        case Image():
            return Image(part.data, part.mime)
    return part


def is_custom(call: ToolCall) -> bool:
    """A tool that takes free text; only this wire has them."""
    return call.issuer == ISSUER and call.extra.get("type") == _CUSTOM


def write_item(part: Part, same: bool) -> Wire | None:
    """An item of a history; None for what must not go here. `same`: the extras are this wire's."""
    match part:
        case Text():
            as_it_came = same and bool(part.extra) and message_text(dict(part.extra)) == part.text
            return dict(part.extra) if as_it_came else {"role": "assistant", "content": part.text}
        case Reasoning() if part.issuer == ISSUER:
            return _write_reasoning(part, {})
        case ToolCall():
            call_id = part.id if same else fitted_id(part.id, LONGEST_ID)
            return _write_call(part, call_id, same)
        case Image() if same and part.extra.get("type") == _PICTURE:
            return {**part.extra, "result": to_base64(part.data)}
        case Opaque() if part.issuer == ISSUER:
            return obj(part.value)
    return None


def write_output(part: Part, place: str, same: bool) -> Wire | None:
    """An item of an answer, with the ids and states a client expects."""
    match part:
        case Text():
            as_it_came = same and bool(part.extra) and message_text(dict(part.extra)) == part.text
            return dict(part.extra) if as_it_came else spoken(part.text, place)
        case Reasoning() if part.text or part.issuer == ISSUER:
            return _write_reasoning(part, {"id": item_id("rs", place)})
        case ToolCall():
            named: Wire = {"id": item_id("fc", place), "status": "completed"}
            return {**named, **_write_call(part, part.id, same)}
        case Image() if part.data:
            extra = dict(part.extra) if same else {}
            named = {"id": item_id("ig", place), "type": _PICTURE, "status": "completed"}
            return {**named, **extra, "result": to_base64(part.data)}
        case Opaque() if part.issuer == ISSUER:
            return obj(part.value)
    return None


def spoken(said: str, place: str) -> Wire:
    content: Wire = {"type": "output_text", "text": said, "annotations": [], "logprobs": []}
    return _message(content, place)


def refused(said: str, place: str) -> Wire:
    return _message({"type": "refusal", "refusal": said}, place)


def _message(content: Wire, place: str) -> Wire:
    return {
        "id": item_id("msg", place),
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [content],
    }


def _write_reasoning(part: Reasoning, named: Wire) -> Wire:
    """Another vendor's thinking is shown as a summary, without what is bound to that vendor."""
    own = part.issuer == ISSUER
    if own and part.extra:
        came = dict(part.extra)
        said, data = reasoning_text(came), text(came.get("encrypted_content"))
        if (said, data) == (part.text, part.data):
            return came
    pieces: list[Json] = [{"type": "summary_text", "text": part.text}] if part.text else []
    item: Wire = {**named, "type": "reasoning", "summary": pieces}
    if own and part.data:
        item["encrypted_content"] = part.data
    return item


def _write_call(call: ToolCall, call_id: str, same: bool) -> Wire:
    own = call.issuer == ISSUER or (same and not call.issuer)
    extra = dict(call.extra) if own else {}
    if extra.get("type") == _CUSTOM:
        return {**extra, "call_id": call_id, "name": call.name, "input": call.arguments}
    fields: Wire = {"call_id": call_id, "name": call.name, "arguments": raw_arguments(call)}
    return {"type": "function_call", **fields, **extra}
