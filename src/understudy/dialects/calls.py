"""Tool calls on wires that are loose about them: ids made up, arguments as objects, who is asked.

A made-up id (contract M4) depends on its seed alone and is told by its prefix, so that a dialect
that had none on the wire writes none back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TypeGuard

from understudy.core.errors import InvalidRequest
from understudy.dialects.base import Garbled
from understudy.dialects.json_access import decode, encode, obj, text
from understudy.messages.parts import Json, ToolCall
from understudy.messages.request import Request, Tool

_PREFIX = "made_up_"
# What OpenAI's wires call a call of a tool that takes free text.
_FREE = {"openai": "custom", "responses": "custom_tool_call"}
_NONE: frozenset[str] = frozenset()
# A text, cut or whole, or a sign of structure.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[{}\[\],]', re.DOTALL)
_CLOSERS = {"{": "}", "[": "]"}


def made_up(*seed: str | int) -> str:
    """An id for a call that came without one; the same seed gives the same id."""
    told = "\x1f".join(map(str, seed)).encode("utf-8", "replace")
    return _PREFIX + sha256(told).hexdigest()[:16]


def is_made_up(call_id: str) -> bool:
    return call_id.startswith(_PREFIX)


def arguments_of(call: ToolCall) -> dict[str, Json]:
    """The arguments as an object; of a cut one, what is whole of it. Free text is wrapped."""
    said = call.arguments
    if call.extra and call.extra.get("type") in _FREE.values():
        return {"input": said}
    value = _value(said)
    if value is None:
        value = {} if said.strip() in ("", "null") else _begun(said)
    return value if isinstance(value, dict) else {"input": value}


def raw_arguments(call: ToolCall) -> str:
    """The arguments as raw JSON text; free text is wrapped."""
    if call.extra and call.extra.get("type") in _FREE.values():
        return encode(arguments_of(call)).decode()
    return call.arguments


def free_text(definition: Mapping[str, Json]) -> dict[str, Json]:
    """What a tool that takes free text takes on wires where all is JSON."""
    form = obj(obj(definition.get("format")).get("grammar")) or obj(definition.get("format"))
    grammar = text(form.get("definition"))
    said = f"Follows this grammar ({text(form.get('syntax'))}):\n{grammar}" if grammar else ""
    field: dict[str, Json] = {"type": "string", **({"description": said} if said else {})}
    return {"type": "object", "properties": {"input": field}, "required": ["input"]}


def is_free(tool: object) -> TypeGuard[Tool]:
    """Does the tool take free text on the wire it was read from?"""
    return isinstance(tool, Tool) and tool.extra.get("type") == "custom"


def free_tools(request: Request) -> frozenset[str]:
    """The names of those, if the client speaks a wire that has any."""
    known = request.issuer in _FREE
    return frozenset(tool.name for tool in request.tools if is_free(tool)) if known else _NONE


def freed(call: ToolCall, issuer: str) -> ToolCall:
    """A call told as its client asked for it: with the text alone, where we had it wrapped."""
    value = _value(call.arguments)
    said = value.get("input") if isinstance(value, dict) else None
    free = said if isinstance(said, str) else call.arguments
    return ToolCall(call.id, call.name, free, issuer, {"type": _FREE[issuer]})


def _begun(said: str) -> Json:
    """What is whole of an object that was cut, as Anthropic's SDK gives it; else the text."""
    open_ones: list[str] = []
    end = 0
    for found in _TOKEN.finditer(said):
        sign = found[0]
        if sign in _CLOSERS:
            open_ones.append(_CLOSERS[sign])
        elif sign in "]}" and open_ones:
            open_ones.pop()
        elif sign != ",":
            continue
        end = found.start() if sign == "," else found.end()
    closing = "".join(reversed(open_ones))
    # The last number or word may be whole.
    values = (_value(kept + closing) for kept in (said, said[:end]))
    return next((value for value in values if isinstance(value, dict)), said)


def _value(said: str) -> Json:
    """The JSON value of a text; None if it holds none."""
    try:
        return decode(said.encode("utf-8", "replace"))
    except Garbled:
        return None


def spelled(arguments: Json) -> str:
    """Arguments as raw JSON text; some servers send the text itself."""
    if isinstance(arguments, str):
        return arguments or "{}"
    try:
        return encode({} if arguments is None else arguments).decode()
    except RecursionError as error:
        raise InvalidRequest("arguments: nested too deeply") from error


@dataclass(slots=True)
class Roll:
    """The calls of a history as it is read: their names, and who has not been answered yet."""

    names: dict[str, str] = field(default_factory=dict)
    waiting: list[ToolCall] = field(default_factory=list)

    def called(self, call: ToolCall) -> None:
        self.names[call.id] = call.name
        self.waiting.append(call)

    def answered(self, call_id: str, name: str = "") -> str:
        """The id of the call this result belongs to, or "": by id, else the first of that name."""
        for call in self.waiting:
            if call.id == call_id or (not call_id and call.name == name):
                self.waiting.remove(call)
                return call.id
        return call_id
