"""A history in Chat Completions: one wire message a turn, one more for every tool result.

What our own writing of a message would not reproduce (a name, the developer role, odd spellings)
rides in `Message.extra`, and is written back as long as it still means the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeGuard

from understudy.dialects.calls import made_up
from understudy.dialects.failed_tools import marked, unmarked
from understudy.dialects.json_access import Node, Wire, items, obj, text, without
from understudy.dialects.openai_chat.parts import (
    FIELDS,
    ISSUER,
    is_legacy,
    read_calls,
    read_content,
    read_pictures,
    read_reasoning,
    read_sound,
    write_call,
    write_legacy,
    write_part,
)
from understudy.dialects.spelling import unsaid
from understudy.dialects.tool_ids import fitted_id
from understudy.messages.parts import (
    NO_EXTRA,
    Extra,
    File,
    Image,
    Json,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from understudy.messages.request import Message, Role

_LONGEST_ID = 40  # OpenAI refuses longer ones
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_OLD = "function"  # the role of a result before there were tools; it answers the last call
_OLD_RESULT: Extra = {"role": _OLD}
_NOTHING: frozenset[str] = frozenset()
_FILLED = frozenset(("tool_call_id",))
_WORDS = {"role", "content"}
_PLAIN: dict[str, Role] = {"system": "system", "user": "user"}
_KNOWN = FIELDS | {"tool_call_id"}

Names = dict[str, str]  # tool-call id -> the tool's name


def read_messages(node: Node) -> tuple[Message, ...]:
    names: Names = {}
    messages: list[Message] = []
    waiting: list[str] = []
    for index, turn in enumerate(node.nodes()):
        if (plain := _plain(turn.value)) is not None:
            messages.append(plain)
            continue
        _check(turn)
        wire = _told(turn, index, waiting)
        message = _read_message(wire, names, str(index))
        _learn(message, names, waiting)
        apart = _FILLED if wire["role"] == _OLD else _NOTHING
        extra = unsaid(wire, _canonical(message, same=True), apart)
        messages.append(Message(message.role, message.parts, extra) if extra else message)
    return tuple(messages)


def _plain(wire: Json) -> Message | None:
    """A turn of nothing but words: most are, and nothing of them has to be kept."""
    if not isinstance(wire, dict) or wire.keys() != _WORDS:
        return None
    role, content = wire["role"], wire["content"]
    if not isinstance(content, str) or not content or not isinstance(role, str):
        return None
    speaker = _PLAIN.get(role)
    return None if speaker is None else Message(speaker, (Text(content),))


def _check(turn: Node) -> None:
    """The types a caller may get wrong; what is left is read leniently."""
    turn["role"].word(*_ROLES)
    content = turn["content"]
    if content.value is not None and not isinstance(content.value, str | list):
        content.refuse("a string or an array of parts")
    for part in content.nodes() if isinstance(content.value, list) else ():
        part["type"].text()
        part["text"].opt_text()
    for call in turn["tool_calls"].opt_nodes():
        inner = call["custom" if call["type"].value == "custom" else "function"]
        inner["name"].text()


def _told(turn: Node, index: int, waiting: list[str]) -> Wire:
    """The same message with every id in place."""
    wire = dict(turn.obj())
    role = wire["role"]
    if role == "assistant":
        calls = [_with_id(obj(c), index, n) for n, c in enumerate(items(wire.get("tool_calls")))]
        if calls:
            wire["tool_calls"] = list[Json](calls)
    elif role in ("tool", _OLD):
        found = text(wire.get("tool_call_id"))
        if not found and not waiting:
            turn["tool_call_id"].refuse("the id of a tool call")
        wire["tool_call_id"] = found = found or waiting[0]
        if found in waiting:
            waiting.remove(found)
    return wire


def _with_id(call: Wire, place: int, index: int) -> Wire:
    if text(call.get("id")):
        return call
    inner = obj(call.get("function"))
    made = made_up(place, index, text(inner.get("name")), text(inner.get("arguments")))
    return {**call, "id": made}


def _learn(message: Message, names: Names, waiting: list[str]) -> None:
    for call in message.tool_calls:
        names[call.id] = call.name
        waiting.append(call.id)


def _read_message(wire: Wire, names: Mapping[str, str], place: str = "") -> Message:
    role = _ROLES[text(wire.get("role"))]
    if role == "tool":
        return Message(role, (_read_result(wire, names),))
    if role == "assistant":
        return Message(role, read_assistant(wire, place))
    return Message(role, tuple(read_content(wire.get("content"))))


def read_assistant(wire: Wire, place: str = "") -> tuple[Part, ...]:
    """An assistant's turn, from a history or from an answer."""
    thought = read_reasoning(wire)
    return (
        *((thought,) if thought else ()),
        *read_content(wire.get("content")),
        *read_pictures(wire),
        *read_sound(wire),
        *read_calls(wire, place),
    )


def _read_result(wire: Wire, names: Mapping[str, str]) -> ToolResult:
    content, failed = unmarked(read_content(wire.get("content")))
    call_id = text(wire.get("tool_call_id"))
    name = text(wire.get("name")) or names.get(call_id, "")
    extra = _OLD_RESULT if wire.get("role") == _OLD else NO_EXTRA
    return ToolResult(call_id, name, content, failed, extra)


def write_messages(messages: tuple[Message, ...], same: bool) -> list[Json]:
    """`same`: this dialect read the request, so its extras may go back."""
    wires: list[Json] = []
    names: Names = {}
    moved: list[Part] = []  # pictures of tool results, which this wire takes from users only
    for message in messages:
        names.update({call.id: call.name for call in message.tool_calls})
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        rest = tuple(part for part in message.parts if not isinstance(part, ToolResult))
        if moved and (rest or not results):
            wires.append(_spoken("user", tuple(moved), same))
            moved = []
        for result in results:
            if not same:
                moved += [part for part in result.content if not isinstance(part, Text)]
            extra = message.extra if same and len(message.parts) == 1 else NO_EXTRA
            wires.append(_overlaid(Message("tool", (result,), extra), names, same))
        if rest or not results:
            turn = Message(message.role, rest, message.extra if same else NO_EXTRA)
            wire = _overlaid(turn, names, same)
            if len(wire) > 1 or not message.parts:
                wires.append(wire)
    if moved:
        wires.append(_spoken("user", tuple(moved), same))
    return wires


def _overlaid(message: Message, names: Names, same: bool) -> Wire:
    """Our own writing, under the extras that came with the message if they still fit."""
    wire = _canonical(message, same)
    extra: Extra = message.extra
    if not extra:
        return wire
    spelled = {**wire, **extra}
    if text(spelled.get("role")) in _ROLES:
        back = _read_message(spelled, names)
        if (back.role, _placeless(back.parts)) == (message.role, _placeless(message.parts)):
            return spelled
    return {**wire, **without(extra, _KNOWN)}


def _placeless(parts: Iterable[Part]) -> list[Part]:
    """Parts without the ids that are ours alone: legacy calls and their results have none."""
    return [replace(part, id="") if _is_old(part) else part for part in parts]


def _is_old(part: Part) -> TypeGuard[ToolCall | ToolResult]:
    if isinstance(part, ToolCall):
        return is_legacy(part)
    return isinstance(part, ToolResult) and part.extra == _OLD_RESULT


def _canonical(message: Message, same: bool) -> Wire:
    """A wire message; of a turn with nothing for this wire, only the role is left."""
    if len(message.parts) == 1 and isinstance(message.parts[0], ToolResult):
        return _write_result(message.parts[0], same)
    if message.role == "assistant":
        return write_assistant(message.parts, same)
    role = "user" if message.role == "tool" else message.role
    return _spoken(role, message.parts, same)


def _spoken(role: str, parts: tuple[Part, ...], same: bool) -> Wire:
    content = _content(parts, same)
    if content is None and parts:
        return {"role": role}
    return {"role": role, "content": "" if content is None else content}


def _content(parts: tuple[Part, ...], same: bool) -> Json:
    """Plain text where that says it all, a list of typed parts otherwise, None for nothing."""
    written = [(part, write_part(part, same)) for part in parts]
    match [(part, item) for part, item in written if item is not None]:
        case []:
            return None
        case [(Text(text=plain), _)]:
            return plain
        case several:
            return [item for _, item in several]


def write_assistant(parts: tuple[Part, ...], same: bool) -> Wire:
    wire: Wire = {"role": "assistant"}
    spoken = tuple(part for part in parts if not isinstance(part, Image | File))
    content = _content(spoken, same)
    calls = [part for part in parts if isinstance(part, ToolCall)]
    if content is not None or calls or not parts:
        wire["content"] = content
    for part in parts:
        match part:
            case Reasoning() if part.issuer == ISSUER and part.extra.get("type") != "thinking":
                wire |= part.extra or {"reasoning_content": part.text}
            case File() if same and "audio" in part.extra:
                wire["audio"] = {"id": obj(part.extra["audio"]).get("id")}
    pictures = [write_part(part, same) for part in parts if isinstance(part, Image) and same]
    if pictures:
        wire["images"] = pictures
    if len(calls) == 1 and same and calls[0].extra and is_legacy(calls[0]):
        wire |= write_legacy(calls[0])
    elif calls:
        wire["tool_calls"] = [_fit(write_call(call, same), same) for call in calls]
    return wire


def _fit(call: Wire, same: bool) -> Wire:
    return call if same else {**call, "id": fitted_id(text(call["id"]), _LONGEST_ID)}


def _write_result(result: ToolResult, same: bool) -> Wire:
    parts = result.content
    if not same:
        parts = tuple(part for part in parts if isinstance(part, Text))
    parts = marked(parts, result.is_error)
    call_id = result.id if same else fitted_id(result.id, _LONGEST_ID)
    said = "" if (content := _content(parts, same)) is None else content
    if same and result.extra and _is_old(result):
        return {**result.extra, "name": result.name, "content": said}
    return {"role": "tool", "tool_call_id": call_id, "content": said}
