"""Ollama's chat messages and ours.

A message there is one text with pictures beside it, so parts come back as thinking, text,
pictures, calls, in that order; each tool result is a message of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from understudy.core.errors import ProviderError
from understudy.core.faults import Fault
from understudy.dialects.blobs import as_text, from_base64, to_base64
from understudy.dialects.calls import Roll, arguments_of, is_made_up, made_up, spelled
from understudy.dialects.data_url import read_data_url
from understudy.dialects.extras import given, kept, overlaid
from understudy.dialects.failed_tools import PREFIX
from understudy.dialects.json_access import Node
from understudy.messages.parts import (
    NO_EXTRA,
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
from understudy.messages.sniff import kind_of

ISSUER = "ollama"
_ROLES: dict[str, Role] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_KNOWN = ("role", "content", "thinking", "images", "tool_calls")
_RESULT = ("role", "content", "tool_name", "tool_call_id", "images")


def read_messages(nodes: list[Node]) -> list[Message]:
    messages: list[Message] = []
    roll = Roll()
    for index, node in enumerate(nodes):
        role = _ROLES[node["role"].word(*_ROLES)]
        if role == "tool":
            result = _read_result(node, roll, str(index))
            before = messages.pop().parts if messages and messages[-1].role == "tool" else ()
            messages.append(Message("tool", (*before, result)))
            continue
        parts = read_parts(node, str(index))
        for part in parts:
            if isinstance(part, ToolCall):
                roll.called(part)
        messages.append(Message(role, tuple(parts), kept(node.obj(), _KNOWN)))
    return messages


def read_parts(node: Node, place: str) -> list[Part]:
    """The parts of one message; ids of calls are made up of its place where they are missing."""
    parts: list[Part] = []
    if thinking := node["thinking"].opt_text():
        parts.append(Reasoning(thinking, ISSUER))
    if content := node["content"].opt_text():
        parts.append(Text(content))
    parts += _read_images(node["images"])
    calls = enumerate(node["tool_calls"].opt_nodes())
    return [*parts, *(_read_call(call, place, index) for index, call in calls)]


def _read_images(node: Node) -> list[Image]:
    found = (from_base64(item) for item in node.opt_nodes())
    return [Image(data, kind_of(data)) for data in found]


def _read_call(node: Node, place: str, index: int) -> ToolCall:
    function = node["function"]
    name, arguments = function["name"].opt_text() or "", spelled(function["arguments"].value)
    extra = dict(kept(node.obj(), ("id", "function", "type")))
    extra |= given(function=dict(kept(function.obj(), ("name", "arguments", "index"))))
    call_id = node["id"].opt_text() or made_up(place, index, name, arguments)
    return ToolCall(call_id, name, arguments, ISSUER if extra else "", extra or NO_EXTRA)


def _read_result(node: Node, roll: Roll, place: str) -> ToolResult:
    name = node["tool_name"].opt_text() or ""
    call_id = roll.answered(node["tool_call_id"].opt_text() or "", name) or made_up(place, name)
    content = node["content"].opt_text() or ""
    failed = content.startswith(PREFIX)
    return ToolResult(
        call_id,
        name or roll.names.get(call_id, ""),
        (Text(content.removeprefix(PREFIX)), *_read_images(node["images"])),
        failed,
        kept(node.obj(), _RESULT),
    )


def write_messages(messages: Iterable[Message], same: bool) -> list[Json]:
    written: list[Json] = []
    names: dict[str, str] = {}
    for message in messages:
        names |= {call.id: call.name for call in message.tool_calls}
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        written += [_write_result(result, names, same) for result in _in_order(results, names)]
        others = [part for part in message.parts if not isinstance(part, ToolResult)]
        if others or not results:
            extra = message.extra if same else NO_EXTRA
            # What a model said in pieces is one text; what it was told are several.
            between = "" if message.role == "assistant" else "\n\n"
            written.append({"role": message.role, **write_parts(others, same, between), **extra})
    return written


def _in_order(results: list[ToolResult], names: dict[str, str]) -> list[ToolResult]:
    """In the order of the calls where that order is all that tells them apart."""
    if not any(is_made_up(result.id) for result in results):
        return results
    order = {call_id: at for at, call_id in enumerate(names)}
    return sorted(results, key=lambda result: order.get(result.id, len(order)))


def write_parts(parts: Iterable[Part], same: bool, between: str = "") -> dict[str, Json]:
    """The fields of one message. Thinking of others and what Ollama cannot know is left out."""
    said: list[str] = []
    thought = ""
    images: list[Json] = []
    calls: list[Json] = []
    for part in parts:
        match part:
            case Text():
                said.append(part.text)
            case Reasoning():
                thought += part.text if part.issuer == ISSUER else ""
            case Image():
                images.append(_write_image(part))
            case File():
                said.append(_write_file(part))
            case ToolCall():
                calls.append(write_call(part, same))
    fields: dict[str, Json] = {"content": between.join(filter(None, said))}
    return fields | given(thinking=thought, images=images, tool_calls=calls)


def _write_image(part: Image | File) -> str:
    data, _ = read_data_url(part.url) or (part.data, "")
    if not data:
        unfit = "ollama takes pictures as bytes, not as URLs"
        raise ProviderError(Fault.UNSUPPORTED, message=unfit)
    return to_base64(data)


def _write_file(part: File) -> str:
    text = as_text(part.data, part.mime) if part.data else None
    if text is None:
        unfit = f"ollama takes no file of type {part.mime or 'unknown'!r}"
        raise ProviderError(Fault.UNSUPPORTED, message=unfit)
    return text


def write_call(call: ToolCall, same: bool) -> dict[str, Json]:
    own = call.issuer == ISSUER or (same and not call.issuer)
    named = {} if is_made_up(call.id) else given(id=call.id)
    function: dict[str, Json] = {"name": call.name, "arguments": arguments_of(call)}
    return overlaid({**named, "function": function}, call.extra if own else NO_EXTRA)


def _write_result(result: ToolResult, names: dict[str, str], same: bool) -> Json:
    content = (PREFIX if result.is_error else "") + result.paragraphs
    images = [_write_image(part) for part in result.content if isinstance(part, Image)]
    files = "".join(_write_file(part) for part in result.content if isinstance(part, File))
    return {
        "role": "tool",
        "content": content + files,
        **given(tool_name=result.name or names.get(result.id, ""), images=[*images]),
        **({} if is_made_up(result.id) else given(tool_call_id=result.id)),
        **(result.extra if same else NO_EXTRA),
    }
