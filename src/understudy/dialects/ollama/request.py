"""Requests of /api/chat, read and written. Ollama streams unless it is told not to."""

from __future__ import annotations

from collections.abc import Sequence

from understudy.dialects.base import Inbound
from understudy.dialects.extras import given, kept, overlaid
from understudy.dialects.json_access import Node
from understudy.dialects.ollama.messages import ISSUER, read_messages, write_messages
from understudy.dialects.tellable import tellable
from understudy.messages.parts import NO_EXTRA, Json
from understudy.messages.request import Message, Request, Schema, ServerTool, Tool, system
from understudy.messages.schema import instruction

_KNOWN = ("model", "messages", "tools", "stream", "format", "options", "think")
_OPTIONS = ("num_predict", "temperature", "top_p", "top_k", "stop", "seed")
_LEVELS = {"minimal": "low", "low": "low", "medium": "medium"}  # else "high"


def read_request(body: bytes) -> Inbound:
    root = Node.root(body)
    model = root["model"].text()
    options = root["options"]
    options = Node(options.opt_obj() or {}, options.parent, options.key)
    output = _read_format(root["format"])
    messages = read_messages(root["messages"].nodes())
    effort, think = _read_think(root["think"])
    rest = given(options=dict(kept(options.obj(), _OPTIONS)), think=think)
    request = Request(
        messages=tuple(_without_instruction(messages, output)),
        tools=tuple(_read_tool(tool) for tool in root["tools"].opt_nodes()),
        output=output,
        max_tokens=options["num_predict"].opt_whole(),
        temperature=options["temperature"].opt_number(),
        top_p=options["top_p"].opt_number(),
        top_k=options["top_k"].opt_whole(),
        stop=tuple(_texts(options["stop"])),
        seed=options["seed"].opt_whole(),
        reasoning=effort,
        issuer=ISSUER,
        extra={**kept(root.obj(), _KNOWN), **rest} or NO_EXTRA,
    )
    stream = root["stream"].opt_flag()
    return Inbound(model, stream is None or stream, request)


def _texts(node: Node) -> list[str]:
    return [node.value] if isinstance(node.value, str) else [t.text() for t in node.opt_nodes()]


def _read_format(node: Node) -> Schema | None:
    if node.value in (None, ""):
        return None
    return Schema() if node.value == "json" else Schema(node.obj())


def _read_think(node: Node) -> tuple[str | None, Json]:
    """Effort, and `think` itself where it is a plain yes, which names no effort."""
    if node.value is True:
        return "medium", True
    return ("none" if node.value is False else node.opt_text()), None


def _with_instruction(messages: tuple[Message, ...], output: Schema) -> tuple[Message, ...]:
    """With the schema in words, after the system prompts that stand at the top."""
    at = _leading(messages)
    return (*messages[:at], system(instruction(output.schema)), *messages[at:])


def _without_instruction(messages: list[Message], output: Schema | None) -> list[Message]:
    """Without the schema in words, if that is how `write_request` stated it."""
    at = _leading(messages)
    if output and at and messages[at - 1] == system(instruction(output.schema)):
        return [*messages[: at - 1], *messages[at:]]
    return messages


def _leading(messages: Sequence[Message]) -> int:
    """How many system prompts stand at the top."""
    places = (at for at, message in enumerate(messages) if message.role != "system")
    return next(places, len(messages))


def _read_tool(node: Node) -> Tool | ServerTool:
    function = node["function"]
    if node["type"].opt_text() not in (None, "function") or function.value is None:
        return ServerTool(ISSUER, node.value)
    return Tool(
        function["name"].text(),
        function["description"].opt_text() or "",
        function["parameters"].opt_obj(),
        kept(function.obj(), ("name", "description", "parameters")),
    )


def write_request(
    request: Request, model: str, stream: bool, state_schema: bool
) -> dict[str, Json]:
    same = request.issuer == ISSUER
    request = tellable(request, ISSUER)
    messages = request.messages
    if request.output and state_schema:
        messages = _with_instruction(messages, request.output)
    body: dict[str, Json] = {
        "model": model,
        "messages": write_messages(messages, same),
        "stream": stream,
    }
    body |= given(
        tools=_write_tools(request, same),
        options=_write_options(request),
    )
    if request.output is not None:
        schema = request.output.schema
        body["format"] = "json" if schema is None else schema
    if (think := _write_think(request)) is not None:
        body["think"] = think
    return overlaid(body, request.extra) if same else body


def _write_tools(request: Request, same: bool) -> list[Json]:
    if request.tool_choice and request.tool_choice.mode == "none":
        return []  # the wire has no choice: what must not be called is not offered
    return [tool for tool in (_write_tool(t, same) for t in request.tools) if tool]


def _write_tool(tool: Tool | ServerTool, same: bool) -> Json:
    if isinstance(tool, ServerTool):
        return tool.value if tool.issuer == ISSUER else None
    function: dict[str, Json] = {"name": tool.name, **given(description=tool.description)}
    if tool.parameters is not None:
        function["parameters"] = tool.parameters
    return {"type": "function", "function": {**function, **(tool.extra if same else NO_EXTRA)}}


def _write_options(request: Request) -> dict[str, Json]:
    return given(
        num_predict=request.max_tokens,
        temperature=request.temperature,
        top_p=request.top_p,
        top_k=request.top_k,
        stop=list(request.stop),
        seed=request.seed,
    )


def _write_think(request: Request) -> bool | str | None:
    effort = request.reasoning
    if effort is None:
        return True if request.reasoning_tokens else None
    if effort == "none":
        return False
    return effort if request.issuer == ISSUER else _LEVELS.get(effort, "high")
