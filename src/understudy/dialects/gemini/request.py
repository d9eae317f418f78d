"""Requests of generateContent, read and written. Model and stream are in the URL, not in here.

A function's response must follow its call at once, matched by id or, where the wire has none, by
order; made-up ids are therefore not written, and results are put into the order of the calls.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby

from understudy.dialects.base import Inbound
from understudy.dialects.calls import Roll, is_made_up, made_up
from understudy.dialects.extras import given, kept, overlaid
from understudy.dialects.gemini.models import is_signed
from understudy.dialects.gemini.options import read_options, write_options
from understudy.dialects.gemini.parts import (
    ISSUER,
    cased,
    is_welcome,
    read_part,
    signed,
    unsigned,
    with_id,
    write_part,
)
from understudy.dialects.json_access import Node, obj
from understudy.dialects.schemas import json_schema, of_object
from understudy.dialects.tellable import tellable
from understudy.dialects.turns import asked, merged, split
from understudy.messages.parts import NO_EXTRA, Json, Part, Text, ToolCall, ToolResult
from understudy.messages.request import Message, Request, ServerTool, Tool

_KNOWN = ("contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "model")


def read_request(body: bytes, model: str, stream: bool) -> Inbound:
    root = cased(Node.root(body))
    name = model or (root["model"].opt_text() or "").removeprefix("models/")
    if not name:
        root["model"].refuse("the name of a model")
    if root["contents"].value is None:
        root["contents"].refuse("an array")
    messages = [*_read_system(root["systemInstruction"]), *_read_contents(root["contents"])]
    tools = tuple(tool for node in _listed(root["tools"]) for tool in _read_tools(cased(node)))
    extra = kept(root.obj(), _KNOWN)
    request = Request(messages=tuple(messages), tools=tools, issuer=ISSUER, extra=extra)
    return Inbound(name, stream, read_options(root, request))


def _listed(node: Node) -> list[Node]:
    """A list, or one object standing for a list of one, as Google allows."""
    return [node] if isinstance(node.value, dict) else node.opt_nodes()


def _read_system(node: Node) -> list[Message]:
    if node.value is None:
        return []
    if isinstance(node.value, str):
        return [Message("system", (Text(node.value),))]
    parts = tuple(read_part(part) for part in _listed(node["parts"]))
    return [Message("system", parts, kept(node.obj(), ("parts",)))] if parts else []


def _read_contents(node: Node) -> list[Message]:
    messages: list[Message] = []
    roll = Roll()
    if isinstance(node.value, str):
        return [Message("user", (Text(node.value),))]
    for index, content in enumerate(_listed(node)):
        own = "assistant" if content["role"].opt_text() == "model" else "user"
        parts = [read_part(part) for part in _listed(content["parts"])]
        told = [_told(part, roll, f"{index}.{at}") for at, part in enumerate(parts)]
        extra = kept(content.obj(), ("role", "parts"))
        for role, run in split("assistant" if own == "assistant" else "user", told):
            messages.append(Message(role, run, extra))
            extra = NO_EXTRA
    return messages


def _told(part: Part, roll: Roll, place: str) -> Part:
    """A part whose ids are filled in: those of calls made up, those of results looked up."""
    if isinstance(part, ToolResult):
        return replace(part, id=roll.answered(part.id, part.name) or made_up(place, part.name))
    if isinstance(part, ToolCall):
        call = with_id(part, made_up(place, part.name, part.arguments))
        roll.called(call)
        return call
    return part


def _read_tools(node: Node) -> list[Tool | ServerTool]:
    tools: list[Tool | ServerTool] = []
    for key, value in node.obj().items():
        if key == "functionDeclarations":
            tools += [_read_function(cased(function)) for function in node[key].nodes()]
        elif value is not None:
            tools.append(ServerTool(ISSUER, {key: value}))
    return tools


def _read_function(node: Node) -> Tool:
    schema, own = node["parametersJsonSchema"].opt_obj(), node["parameters"].opt_obj()
    if schema is None and own is not None:
        schema = json_schema(own)  # Google's flavour stays in `extra` as it is
    extra = kept(node.obj(), ("name", "description", "parametersJsonSchema"))
    return Tool(node["name"].text(), node["description"].opt_text() or "", schema, extra)


def write_request(request: Request, model: str) -> dict[str, Json]:
    same = request.issuer == ISSUER
    request = tellable(request, ISSUER)
    messages = request.messages if same else asked(request.messages)
    system = [message for message in messages if message.role == "system"]
    turns = [message for message in messages if message.role != "system"]
    if not is_signed(model):
        turns = [replace(turn, parts=unsigned(turn.parts)) for turn in turns]
        turns = turns if same else list(map(_beside, turns))
    elif not same:
        turns = [replace(turn, parts=signed(turn.parts)) for turn in turns]
    body: dict[str, Json] = {"contents": _write_contents(turns, same)}
    body |= given(systemInstruction=_write_system(system, same), tools=_write_tools(request, same))
    body |= write_options(request, model)
    return overlaid(body, request.extra) if same else body


def _write_system(messages: list[Message], same: bool) -> dict[str, Json]:
    texts = (part for m in messages for part in m.parts if isinstance(part, Text))
    parts: list[Json] = [write_part(text, same) for text in texts if is_welcome(text, same)]
    extra = {k: v for m in messages for k, v in m.extra.items()} if same else {}
    return {"parts": parts, **extra} if parts else {}


def _beside(message: Message) -> Message:
    """A turn with media beside its results: within them they are new with Gemini 3."""
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    moved = [item for part in results for item in part.content if not isinstance(item, Text)]
    if not moved:
        return message
    kept = tuple(_worded(part) for part in message.parts)
    return replace(message, parts=(*kept, *moved))


def _worded(part: Part) -> Part:
    if not isinstance(part, ToolResult):
        return part
    return replace(part, content=tuple(item for item in part.content if isinstance(item, Text)))


def _write_contents(messages: list[Message], same: bool) -> list[Json]:
    names = {c.id: (at, c.name) for at, c in enumerate(c for m in messages for c in m.tool_calls)}
    welcome = (
        replace(m, parts=tuple(p for p in m.parts if is_welcome(p, same))) for m in messages
    )
    contents: list[Json] = []
    for turn in merged(message for message in welcome if message.parts):
        extra = turn.extra if same else NO_EXTRA
        for _, run in split(turn.role, _answers(turn.parts, names)):  # Vertex: responses apart
            role = "model" if turn.role == "assistant" else "user"
            parts: list[Json] = [write_part(part, same) for part in run]
            contents.append({"role": role, "parts": parts, **extra})
            extra = NO_EXTRA
    return contents


def _answers(parts: tuple[Part, ...], names: dict[str, tuple[int, str]]) -> list[Part]:
    """Results told the name of their call, those without ids of their own in its order."""
    named = [
        replace(part, name=part.name or names.get(part.id, (0, part.id))[1])
        if isinstance(part, ToolResult)
        else part
        for part in parts
    ]
    results = [part for part in named if isinstance(part, ToolResult)]
    if any(is_made_up(part.id) for part in results):
        results.sort(key=lambda part: names.get(part.id, (len(names), ""))[0])
    return [*results, *(part for part in named if not isinstance(part, ToolResult))]


def _write_tools(request: Request, same: bool) -> list[Json]:
    written: list[Json] = []
    for function, run in groupby(request.tools, key=lambda tool: isinstance(tool, Tool)):
        if function:
            declared = [_write_function(tool, same) for tool in run if isinstance(tool, Tool)]
            written.append({"functionDeclarations": [*declared]})
        else:
            written += [t.value for t in run if isinstance(t, ServerTool) and t.issuer == ISSUER]
    return written


def _write_function(tool: Tool, same: bool) -> dict[str, Json]:
    extra = tool.extra if same else NO_EXTRA
    schema = None if "parameters" in extra else tool.parameters
    if not same and schema is not None and "type" not in schema:
        schema = of_object(schema) if schema else None
    shape = {} if schema is None else {"parametersJsonSchema": obj(schema)}
    return {"name": tool.name, **given(description=tool.description), **shape, **extra}
