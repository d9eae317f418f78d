"""Gemini's parts and ours. Google takes every field in camelCase and in snake_case; so do we.

A thought signature belongs to the part it came with. One that came with an empty text is a
`Reasoning` of its own, so that it reaches Gemini and nobody else (contract M6).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TypeGuard

from understudy.dialects.blobs import from_base64, kind_of_url, to_base64
from understudy.dialects.calls import arguments_of, is_made_up, spelled
from understudy.dialects.data_url import read_data_url
from understudy.dialects.extras import given, kept, overlaid
from understudy.dialects.json_access import Node, encode, obj
from understudy.messages.parts import (
    NO_EXTRA,
    Extra,
    File,
    Image,
    Json,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from understudy.messages.sniff import kind_of

ISSUER = "gemini"
SIGNATURE = "thoughtSignature"
# What Google documents for calls of another model's making, where a signature is insisted on.
UNSIGNED = "skip_thought_signature_validator"
_SNAKE = re.compile(r"_([a-z])")


def cased(node: Node) -> Node:
    """The object with its keys in camelCase; what is inside the fields stays as it is."""
    if not isinstance(node.value, dict):
        return node
    fields = {_SNAKE.sub(lambda found: found[1].upper(), k): v for k, v in node.value.items()}
    return Node(fields, node.parent, node.key)


def read_part(node: Node) -> Part:
    """One part; InvalidRequest where a field is of the wrong type. A call may lack its id."""
    node = cased(node)
    node.obj()
    for kind, read in _READERS.items():
        if node[kind].value is not None:
            return read(node)
    # Code and searches that Google runs itself bear signatures too, and are no texts.
    bare = not kept(node.obj(), ("thought", SIGNATURE))
    return _read_text(node) if bare and node[SIGNATURE].value else Opaque(ISSUER, node.value)


def _read_text(node: Node) -> Part:
    text, signature = node["text"].opt_text() or "", node[SIGNATURE].opt_text() or ""
    thought = bool(node["thought"].opt_flag())
    if thought or (signature and not text):
        extra = dict(kept(node.obj(), ("text", "thought", SIGNATURE)))
        if thought and not text:
            extra["thought"] = True
        return Reasoning(text, ISSUER, signature, extra=extra or NO_EXTRA)
    return Text(text, kept(node.obj(), ("text", "thought")))


def _read_call(node: Node) -> Part:
    call = cased(node["functionCall"])
    extra = dict(kept(node.obj(), ("functionCall",)))
    extra |= given(functionCall=dict(kept(call.obj(), ("id", "name", "args"))))
    name, arguments = call["name"].opt_text() or "", spelled(call["args"].opt_obj())
    issuer = ISSUER if extra else ""
    return ToolCall(call["id"].opt_text() or "", name, arguments, issuer, extra or NO_EXTRA)


def _read_result(node: Node) -> Part:
    answer = cased(node["functionResponse"])
    response = answer["response"].opt_obj() or {}
    text, is_error = _told(response)
    more = dict(kept(answer.obj(), ("id", "name", "response", "parts")))
    if response != {"error" if is_error else "output": text}:
        more["response"] = response
    media = [read_part(part) for part in answer["parts"].opt_nodes()]
    shown = [part for part in media if isinstance(part, Image | File)]
    if len(shown) != len(media):
        more["parts"] = answer["parts"].value
    extra = {**kept(node.obj(), ("functionResponse",)), **given(functionResponse=more)}
    name, call_id = answer["name"].opt_text() or "", answer["id"].opt_text() or ""
    return ToolResult(call_id, name, (Text(text), *shown), is_error, extra or NO_EXTRA)


def _told(response: dict[str, Json]) -> tuple[str, bool]:
    """The text of a function's response and whether it is an error; wrappings are taken off."""
    is_error = "output" not in response and bool(response.get("error") or [*response] == ["error"])
    for name in ("error",) if is_error else ("output", "result"):
        if name in response and len(response) == 1:
            inner = response[name]
            return (inner if isinstance(inner, str) else encode(inner).decode()), is_error
    return encode(response).decode(), is_error


def _read_inline(node: Node) -> Part:
    blob = cased(node["inlineData"])
    data, mime = from_base64(blob["data"]), blob["mimeType"].opt_text() or ""
    extra = kept(node.obj(), ("inlineData",))
    if mime.startswith("image/"):
        return Image(data, mime, extra=extra)
    return File(data, mime, name=blob["displayName"].opt_text() or "", extra=extra)


def _read_file(node: Node) -> Part:
    blob = cased(node["fileData"])
    url, mime = blob["fileUri"].text(), blob["mimeType"].opt_text() or ""
    extra = kept(node.obj(), ("fileData",))
    if mime.startswith("image/"):
        return Image(mime=mime, url=url, extra=extra)
    return File(mime=mime, url=url, name=blob["displayName"].opt_text() or "", extra=extra)


_READERS: dict[str, Callable[[Node], Part]] = {
    "functionCall": _read_call,
    "functionResponse": _read_result,
    "inlineData": _read_inline,
    "fileData": _read_file,
    "text": _read_text,
}


def is_welcome(part: Part, same: bool) -> bool:
    """Whether a part may go to Gemini: no empty text, nothing bound to others (contract M6)."""
    match part:
        case Text():
            return bool(same or part.text or SIGNATURE in part.extra)
        case Reasoning() | Opaque():
            return part.issuer == ISSUER
    return True


def write_part(part: Part, same: bool) -> dict[str, Json]:
    """A welcome part. `same`: the extras are Gemini's."""
    match part:
        case Text():
            return {"text": part.text, **(part.extra if same else _signature(part.extra))}
        case Reasoning():
            return write_thought(part)
        case ToolCall():
            return write_call(part, same)
        case ToolResult():
            return _write_result(part, same)
        case Opaque():
            return obj(part.value)
        case Image() | File():
            return {**_write_media(part, same), **(part.extra if same else NO_EXTRA)}


def _signature(extra: Extra) -> Extra:
    """Only Gemini uses the name, so it is safe to send back from a history nobody read."""
    return {SIGNATURE: extra[SIGNATURE]} if SIGNATURE in extra else NO_EXTRA


def write_thought(part: Reasoning) -> dict[str, Json]:
    """Somebody's thinking as a thought; what is bound to another vendor is left out."""
    if part.issuer != ISSUER:
        return {"text": part.text, "thought": True}
    thought: dict[str, Json] = {"thought": True} if part.text else {}
    signed = given(thoughtSignature=part.signature)
    return {"text": part.text, **thought, **signed, **part.extra}


def write_call(call: ToolCall, same: bool) -> dict[str, Json]:
    inner: dict[str, Json] = {"name": call.name, "args": arguments_of(call)}
    named = {} if is_made_up(call.id) else given(id=call.id)
    own = call.issuer == ISSUER or (same and not call.issuer)
    extra = call.extra if own else _signature(call.extra)
    return overlaid({"functionCall": {**inner, **named}}, extra)


def _write_result(result: ToolResult, same: bool) -> dict[str, Json]:
    extra = result.extra if same else NO_EXTRA
    answer: dict[str, Json] = {} if is_made_up(result.id) else given(id=result.id)
    answer["name"] = result.name
    more = obj(extra.get("functionResponse"))
    if "response" not in more:
        answer["response"] = {"error" if result.is_error else "output": result.paragraphs}
    media = [_write_media(part, same) for part in result.content if not isinstance(part, Text)]
    return overlaid({"functionResponse": {**answer, **given(parts=[*media])}}, extra)


def _write_media(part: Image | File, same: bool) -> dict[str, Json]:
    data, mime = read_data_url(part.url) or (part.data, part.mime)
    name = part.name if same and isinstance(part, File) else ""  # only Vertex takes one
    if part.url and not data:
        kind = mime or kind_of_url(part.url)
        return {"fileData": given(fileUri=part.url, mimeType=kind, displayName=name)}
    blob: dict[str, Json] = {"mimeType": mime or kind_of(data), "data": to_base64(data)}
    return {"inlineData": {**blob, **given(displayName=name)}}


def signed(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The first call with a signature: Gemini 3 refuses a turn of tool calls without one."""
    first = next((part for part in parts if isinstance(part, ToolCall)), None)
    if first is None or (excused := signed_call(first)) is first:
        return parts
    return tuple(excused if part is first else part for part in parts)


def signed_call(call: ToolCall) -> ToolCall:
    if SIGNATURE in call.extra:
        return call
    return replace(call, issuer=ISSUER, extra={SIGNATURE: UNSIGNED})


def unsigned(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Without that excuse, which older models do not know."""
    if not any(map(_is_excused, parts)):
        return parts
    return tuple(replace(p, extra=NO_EXTRA) if _is_excused(p) else p for p in parts)


def _is_excused(part: Part) -> TypeGuard[ToolCall]:
    return isinstance(part, ToolCall) and part.extra.get(SIGNATURE) == UNSIGNED


def with_id(call: ToolCall, call_id: str) -> ToolCall:
    """A call that came without an id gets this one."""
    return call if call.id else replace(call, id=call_id)
