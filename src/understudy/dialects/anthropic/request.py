"""Requests of the Messages API, read and written.

System prompts are collected at the top, turns alternate, and the results of a turn's tool calls
come first in the user turn after it, because Anthropic insists on all three.
"""

from __future__ import annotations

from dataclasses import replace

from understudy.core.errors import ProviderError
from understudy.core.faults import Fault
from understudy.dialects.anthropic.blocks import ISSUER, is_welcome, read_block, write_block
from understudy.dialects.anthropic.models import habits_of
from understudy.dialects.anthropic.options import read_options, write_options
from understudy.dialects.base import Inbound
from understudy.dialects.calls import Roll
from understudy.dialects.extras import given, kept, overlaid
from understudy.dialects.json_access import Node, obj
from understudy.dialects.schemas import NO_PARAMETERS, is_open, of_object
from understudy.dialects.tellable import tellable
from understudy.dialects.turns import asked, merged, split
from understudy.messages.parts import NO_EXTRA, Json, Opaque, Part, Text, ToolCall, ToolResult
from understudy.messages.request import Message, Request, Role, ServerTool, Tool
from understudy.messages.schema import instruction, state_schema

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}


def read_request(body: bytes, model: str) -> Inbound:
    root = Node.root(body)
    name = root["model"].opt_text() or model
    if not name:
        root["model"].refuse("the name of a model")
    if root["messages"].value is None:
        root["messages"].refuse("an array")
    messages = [*_read_system(root["system"]), *_read_messages(root["messages"])]
    tools = tuple(_read_tool(tool) for tool in root["tools"].opt_nodes())
    request = Request(messages=tuple(messages), tools=tools, issuer=ISSUER)
    return Inbound(name, bool(root["stream"].opt_flag()), read_options(root, request))


def _read_system(node: Node) -> list[Message]:
    if isinstance(node.value, str):
        parts: list[Part] = [Text(node.value)] if node.value else []
    else:
        parts = [read_block(block) for block in node.opt_nodes()]
    return [Message("system", tuple(parts))] if parts else []


def _read_messages(node: Node) -> list[Message]:
    messages: list[Message] = []
    roll = Roll()
    for turn in node.nodes():
        role = _ROLES[turn["role"].word(*_ROLES)]
        extra = kept(turn.obj(), ("role", "content"))
        parts = [_named(part, roll) for part in _read_content(turn["content"])]
        for kind, run in split(role, parts):
            messages.append(Message(kind, run, extra))
            extra = NO_EXTRA
    return messages


def _read_content(node: Node) -> list[Part]:
    if isinstance(node.value, str):
        return [Text(node.value)]
    return [read_block(block) for block in node.nodes()]


def _named(part: Part, roll: Roll) -> Part:
    """A result told the name of its call, which other vendors want and this wire leaves out."""
    if isinstance(part, ToolCall):
        roll.called(part)
    if not isinstance(part, ToolResult):
        return part
    return replace(part, name=roll.names.get(part.id, ""))


def _read_tool(node: Node) -> Tool | ServerTool:
    kind = node["type"].opt_text()
    if kind not in (None, "custom"):
        return ServerTool(ISSUER, node.value)
    schema = node["input_schema"].opt_obj()
    return Tool(
        node["name"].text(),
        node["description"].opt_text() or "",
        None if schema == NO_PARAMETERS else schema,
        kept(node.obj(), ("name", "description", "input_schema")),
    )


def write_request(request: Request, model: str, stream: bool) -> dict[str, Json]:
    same = request.issuer == ISSUER
    request = tellable(request, ISSUER)
    if not same and request.output and is_open(request.output.schema or {}):
        request = state_schema(request)  # refused; closed, it would be another one
    top, turns = _split(request.messages if same else asked(request.messages), same)
    if not same:
        turns = _open_ended(turns, model)
    body: dict[str, Json] = {"model": model, "messages": _write_turns(turns, same)}
    body |= write_options(request, model)
    body |= given(
        system=_write_system(top, request, same),
        tools=[tool for tool in (_write_tool(t, same) for t in request.tools) if tool],
    )
    if "tools" not in body:
        body.pop("tool_choice", None)  # refused without tools
    if stream:
        body["stream"] = True
    return overlaid(body, request.extra) if same else body


def _open_ended(turns: list[Message], model: str) -> list[Message]:
    """An answer that was begun must not end in blanks; later models go on with none."""
    match turns:
        case [*before, Message(role="assistant", parts=(*parts, Text() as last)) as turn]:
            if not habits_of(model).begun:
                begun = f"{model} goes on with no answer that was begun"
                raise ProviderError(Fault.UNSUPPORTED, message=begun, billing="not_sent")
            stripped = replace(last, text=last.text.rstrip())
            return [*before, replace(turn, parts=(*parts, stripped))]
    return turns


def _split(messages: tuple[Message, ...], same: bool) -> tuple[list[Message], list[Message]]:
    """System prompts, and turns. Later ones stay in place only if they stood there on the wire."""
    top: list[Message] = []
    turns: list[Message] = []
    for message in messages:
        leading = message.role == "system" and not (turns and same)
        (top if leading else turns).append(message)
    return top, turns


def _write_system(top: list[Message], request: Request, same: bool) -> Json:
    parts = [part for message in top for part in message.parts if isinstance(part, Text | Opaque)]
    if request.output and request.output.schema is None:
        parts.append(Text(instruction(None)))  # there is no JSON mode without a schema
    blocks = [block for block in (write_block(part, same) for part in parts) if block]
    return _simple(blocks)


def _simple(blocks: list[dict[str, Json]]) -> Json:
    """A lone plain text is written as a string."""
    lone = blocks[0] if len(blocks) == 1 else {}
    plain = len(lone) == 2 and lone["type"] == "text"  # the other field is what it says
    return lone["text"] if plain else list(blocks)


def _write_turns(messages: list[Message], same: bool) -> list[Json]:
    """Turns in alternation. One that held only what must not go to Anthropic leaves no trace."""
    welcome = (_welcome(message) for message in messages)
    turns = [_write_turn(turn, same) for turn in merged(m for m in welcome if m.parts)]
    if messages and not turns:
        blank = "anthropic takes no conversation of nothing but blanks"
        raise ProviderError(Fault.UNSUPPORTED, message=blank)
    return turns


def _welcome(message: Message) -> Message:
    parts = tuple(filter(is_welcome, message.parts))
    return message if len(parts) == len(message.parts) else replace(message, parts=parts)


def _write_turn(turn: Message, same: bool) -> Json:
    blocks = [block for block in (write_block(part, same) for part in turn.parts) if block]
    return {"role": turn.role, "content": _simple(blocks), **(turn.extra if same else NO_EXTRA)}


def _write_tool(tool: Tool | ServerTool, same: bool) -> dict[str, Json] | None:
    if isinstance(tool, ServerTool):
        return obj(tool.value) if tool.issuer == ISSUER else None
    schema = NO_PARAMETERS if tool.parameters is None else tool.parameters
    if not same:
        schema = of_object(schema)
    fields: dict[str, Json] = {"name": tool.name, **given(description=tool.description)}
    extra = tool.extra if same else NO_EXTRA
    return {**fields, "input_schema": schema, **extra}
