"""A history in the Responses API: a flat list of items, which we group into turns.

Reasoning, texts and calls that follow each other are one assistant's turn. The first system
message, if it is plain text, is the wire's `instructions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from understudy.dialects.blobs import name_for
from understudy.dialects.data_url import file_at, image_at, write_data_url
from understudy.dialects.failed_tools import marked, unmarked
from understudy.dialects.input_audio import read_input_audio, write_input_audio
from understudy.dialects.json_access import Node, Wire, items, obj, text, without
from understudy.dialects.openai_responses.items import (
    ISSUER,
    LONGEST_ID,
    is_custom,
    named_by_us,
    plain,
    read_item,
    write_item,
)
from understudy.dialects.spelling import unsaid
from understudy.dialects.tool_ids import fitted_id
from understudy.messages.parts import (
    NO_EXTRA,
    File,
    Image,
    Json,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolResult,
)
from understudy.messages.request import Message, Role

_OUTPUT = "function_call_output"
_CUSTOM_OUTPUT = "custom_tool_call_output"
_SPEAKERS: dict[str, Role] = {"system": "system", "developer": "system", "user": "user"}


def read_input(node: Node, instructions: str) -> tuple[Message, ...]:
    messages = [Message("system", (Text(instructions),))] if instructions else []
    if isinstance(node.value, str):
        return (*messages, Message("user", (Text(node.value),)))
    for index, item in enumerate(node.opt_nodes()):
        _check(item)
        message = _read_turn(item.obj(), index)
        if not messages and message.role == "system" and _is_instructions(message):
            extra = {"role": "system", **message.extra}
            message = Message("system", message.parts, extra)
        last = messages[-1] if messages else None
        if last and last.role == message.role == "assistant":
            messages[-1] = Message("assistant", (*last.parts, *message.parts))
        else:
            messages.append(message)
    names = {call.id: call.name for turn in messages for call in turn.tool_calls}
    return tuple(_named(message, names) for message in messages)


def _named(message: Message, names: Mapping[str, str]) -> Message:
    """Results with the names of their tools, which other wires ask for."""
    match message.parts:
        case (ToolResult() as result,) if result.id in names:
            named = replace(result, name=names[result.id])
            return Message("tool", (named,), message.extra)
    return message


def _check(item: Node) -> None:
    if item["type"].value not in (None, "message"):
        item["type"].text()
        return
    item["role"].word(*_SPEAKERS, "assistant")
    content = item["content"]
    if not isinstance(content.value, str):
        for part in content.nodes():
            part["type"].text()
            part["text"].opt_text()


def _read_turn(item: Wire, index: int) -> Message:
    kind = text(item.get("type")) or "message"
    if kind in (_OUTPUT, _CUSTOM_OUTPUT):
        return _with_extra(Message("tool", (_read_result(item),)), item)
    role = _SPEAKERS.get(text(item.get("role")))
    if kind == "message" and role:
        return _with_extra(Message(role, tuple(_read_content(item.get("content")))), item)
    return Message("assistant", (_read_made(item, index),))


def _with_extra(message: Message, item: Wire) -> Message:
    extra = unsaid(item, _canonical(message, same=True), frozenset())
    return Message(message.role, message.parts, extra) if extra else message


def _read_made(item: Wire, index: int) -> Part:
    """Something a model made. What we named ourselves goes back without that name."""
    if named_by_us(item):
        item = dict(without(item, ("id", "status")))
        if item.get("type") == "reasoning":
            part = read_item(item)
            return Reasoning(part.text) if isinstance(part, Reasoning) else Opaque(ISSUER, item)
    part = read_item(item, index)
    if part is None:
        return Opaque(ISSUER, item)
    return plain(part) if write_item(plain(part), same=True) == item else part


def _read_result(item: Wire) -> ToolResult:
    content, failed = unmarked(_read_content(item.get("output")))
    return ToolResult(text(item.get("call_id")), content=content, is_error=failed)


def _read_content(content: Json) -> list[Part]:
    if isinstance(content, str):
        return [Text(content)] if content else []
    return [_read_part(obj(part)) for part in items(content)]


def _read_part(part: Wire) -> Part:
    kind = text(part.get("type"))
    read = _READERS.get(kind)
    return (read(part) if read else None) or Opaque(ISSUER, part, vital=kind in _MEDIA)


def _read_text(part: Wire) -> Part | None:
    return Text(text(part.get("text"))) if "text" in part else None


def _read_image(part: Wire) -> Part | None:
    url, detail = text(part.get("image_url")), part.get("detail")
    return image_at(url, {"detail": detail} if detail is not None else NO_EXTRA)


def _read_file(part: Wire) -> Part | None:
    url = text(part.get("file_data")) or text(part.get("file_url"))
    return file_at(url, text(part.get("filename")))


_READERS: dict[str, Callable[[Wire], Part | None]] = {
    "input_text": _read_text,
    "output_text": _read_text,
    "text": _read_text,
    "input_image": _read_image,
    "input_file": _read_file,
    "input_audio": read_input_audio,
}

# What of these we cannot read is known to the vendor by an id.
_MEDIA = frozenset(("input_image", "input_file", "input_audio"))


def write_input(messages: tuple[Message, ...], same: bool) -> tuple[str, list[Json]]:
    """(instructions, items). `same`: this dialect read the request, its extras may go back."""
    instructions = ""
    if messages and _is_instructions(messages[0]) and not _stays(messages, same):
        instructions, messages = messages[0].text, messages[1:]
    custom = {c.id for m in messages for c in m.tool_calls if is_custom(c)}
    wires: list[Json] = []
    for message in messages:
        wires += _write_turn(message, same, custom)
    return instructions, wires


def _stays(messages: tuple[Message, ...], same: bool) -> bool:
    """Whether the first prompt is among the items: as it came, or since none are refused."""
    return bool(messages[0].extra) if same else len(messages) == 1


def _is_instructions(message: Message) -> bool:
    match message:
        case Message(role="system", parts=(Text(text=said),)) if said:
            return True
    return False


def _write_turn(message: Message, same: bool, custom: set[str]) -> list[Wire]:
    if message.role == "assistant":
        written = (write_item(part, same) for part in message.parts)
        return [item for item in written if item is not None]
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    rest = tuple(part for part in message.parts if not isinstance(part, ToolResult))
    extra = message.extra if same else NO_EXTRA
    wires = [
        _overlaid(Message("tool", (r,), extra if len(results) == 1 else NO_EXTRA), same, custom)
        for r in results
    ]
    if rest or not results:
        turn = Message("user" if message.role == "tool" else message.role, rest, extra)
        wire = _overlaid(turn, same, custom)
        if "content" in wire:
            wires.append(wire)
    return wires


def _overlaid(message: Message, same: bool, custom: set[str]) -> Wire:
    wire = _canonical(message, same, custom)
    if not message.extra:
        return wire
    spelled = {**wire, **message.extra}
    back = _named(_read_turn(spelled, 0), _own_name(message))
    if (back.role, back.parts) == (message.role, message.parts):
        return spelled
    return {**without(message.extra, ("role", "type", "content", "output", "call_id")), **wire}


def _own_name(message: Message) -> dict[str, str]:
    return {part.id: part.name for part in message.parts if isinstance(part, ToolResult)}


def _canonical(
    message: Message, same: bool, custom: frozenset[str] | set[str] = frozenset()
) -> Wire:
    match message.parts:
        case (ToolResult() as result,):
            return _write_result(result, same, result.id in custom)
    written = [write_part(part, same) for part in message.parts]
    if message.parts and not any(written):
        return {"role": message.role}
    return {"role": message.role, "content": _flat(message.parts, written)}


def _flat(parts: tuple[Part, ...], written: list[Json]) -> Json:
    """Plain text where that says it all."""
    match parts:
        case ():
            return ""
        case (Text(text=said),):
            return said
    return [part for part in written if part is not None]


def write_part(part: Part, same: bool) -> Json:
    """A part of a user's or system's turn, None for what has no place there."""
    match part:
        case Text():
            return {"type": "input_text", "text": part.text}
        case Image():
            url = part.url or write_data_url(part.data, part.mime)
            return {"type": "input_image", "image_url": url, **(part.extra if same else {})}
        case File():
            return _write_file(part, same)
        case Opaque() if part.issuer == ISSUER:
            return part.value
    return None


def _write_file(part: File, same: bool) -> Json:
    if part.mime.startswith("audio/") and part.data:
        return write_input_audio(part)
    name = part.name if same else part.name or name_for(part.mime)
    named: Wire = {"filename": name} if name else {}
    if part.data:
        return {"type": "input_file", "file_data": write_data_url(part.data, part.mime), **named}
    named = named if part.name else {}  # an address is name enough
    return {"type": "input_file", "file_url": part.url, **named} if part.url else None


def _write_result(result: ToolResult, same: bool, custom: bool) -> Wire:
    parts = marked(result.content, result.is_error)
    written = [write_part(part, same) for part in parts]
    return {
        "type": _CUSTOM_OUTPUT if custom else _OUTPUT,
        "call_id": result.id if same else fitted_id(result.id, LONGEST_ID),
        "output": _flat(parts, written),
    }
