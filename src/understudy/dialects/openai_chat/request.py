"""A Chat Completions request: its options and tools, read strictly and written back.

Fields that our own writing would not reproduce ride in `Request.extra` in the caller's spelling
(`max_tokens`, `functions`, OpenRouter's `reasoning`), and are written back in it as long as the
option still has the value they spell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from understudy.dialects.calls import free_text, is_free
from understudy.dialects.json_access import Node, Wire, obj, text, without
from understudy.dialects.openai_chat.messages import read_messages, write_messages
from understudy.dialects.openai_chat.parts import ISSUER
from understudy.dialects.schemas import of_object
from understudy.dialects.spelling import Spelling, unsaid
from understudy.dialects.tellable import tellable
from understudy.dialects.tool_ids import fitted_user
from understudy.messages.parts import NO_EXTRA, Extra, Json
from understudy.messages.request import Request, Schema, ServerTool, Tool, ToolChoice

Asked = dict[str, Any]  # fields of a Request

_ENVELOPE = frozenset(("model", "messages", "stream", "tools"))
# Written as they were read; and those of which only their writing tells whether they are.
_ALIKE = frozenset(("max_completion_tokens", "temperature", "top_p", "top_k", "seed", "user"))
_RESPELLED = frozenset(
    [
        "tools",
        "functions",
        "tool_choice",
        "function_call",
        "parallel_tool_calls",
        "response_format",
        "stop",
        "reasoning_effort",
        "reasoning",
    ]
)


def read_request(root: Node) -> Request:
    asked = _asked(root)
    extra = _kept(root.obj(), asked)
    messages = read_messages(root["messages"])
    return Request(messages, issuer=ISSUER, extra=extra or NO_EXTRA, **asked)


def _kept(wire: Wire, asked: Asked) -> Wire:
    if wire.keys().isdisjoint(_RESPELLED):
        own = {k: v for k, v in wire.items() if k not in _ENVELOPE}
        return {k: v for k, v in own.items() if k not in _ALIKE or v is None}
    kept = unsaid(wire, write_options(Request(issuer=ISSUER, **asked)), _ENVELOPE)
    if "tools" in wire and not wire["tools"]:
        kept["tools"] = wire["tools"]
    return kept


def read_options(root: Node) -> Request:
    """Everything but the messages. Null and missing are the same."""
    return Request(issuer=ISSUER, **_asked(root))


def _asked(root: Node) -> Asked:
    """Fields of `Request`. Only what the caller wrote is looked at."""
    asked: Asked = {}
    for key in root.obj():
        for name, read in _READERS.get(key, ()):
            asked[name] = read(root)
    return asked


def _read_limit(root: Node) -> int | None:
    most = root.opt("max_completion_tokens").opt_whole()
    return root.opt("max_tokens").opt_whole() if most is None else most


def _read_seed(root: Node) -> int | None:
    seed = root.opt("seed").opt_whole()
    return root.opt("random_seed").opt_whole() if seed is None else seed


def _read_effort(root: Node) -> str | None:
    effort = root.opt("reasoning_effort").opt_text()
    node = root.opt("reasoning")
    return effort or node["effort"].opt_text() if isinstance(node.value, dict) else effort


def _read_budget(root: Node) -> int | None:
    node = root.opt("reasoning")
    return node["max_tokens"].opt_whole() if isinstance(node.value, dict) else None


def _read_stop(root: Node) -> tuple[str, ...]:
    node = root.opt("stop")
    if isinstance(node.value, str):
        return (node.value,)
    return tuple(item.text() for item in node.opt_nodes())


def _read_tools(root: Node) -> tuple[Tool | ServerTool, ...]:
    tools = [_read_tool(node) for node in root.opt("tools").opt_nodes()]
    old = [_read_function(node, NO_EXTRA) for node in root.opt("functions").opt_nodes()]
    return (*tools, *old)


def _read_tool(node: Node) -> Tool | ServerTool:
    if node["type"].value == "custom" and isinstance(node["custom"].value, dict):
        inner = node["custom"]
        said = inner["description"].opt_text() or ""
        return Tool(inner["name"].text(), said, free_text(inner.obj()), node.obj())
    if node["type"].value != "function" or not isinstance(node["function"].value, dict):
        return ServerTool(ISSUER, node.value)
    return _read_function(node["function"], without(node.obj(), ("type", "function")))


def _read_function(node: Node, outer: Extra) -> Tool:
    parameters = node["parameters"].opt_obj()
    known = {"name", "parameters"} | ({"description"} if node["description"].value else set())
    inner = without(node.obj(), known if parameters is not None else known - {"parameters"})
    extra = {**outer, "function": dict(inner)} if inner else outer
    return Tool(node["name"].text(), node["description"].opt_text() or "", parameters, extra)


def _read_choice(root: Node) -> ToolChoice | None:
    parallel = root.opt("parallel_tool_calls").opt_flag()
    node = root.opt("tool_choice")
    node = node if node.value else root.opt("function_call")
    match node.value:
        case "auto" | "none" | "required" as mode:
            return ToolChoice(mode, parallel=parallel)
        case "any":  # Mistral's word
            return ToolChoice("required", parallel=parallel)
        case (
            {"type": "function", "function": {"name": str(name)}}
            | {"type": "custom", "custom": {"name": str(name)}}
            | {"name": str(name)}
        ):
            return ToolChoice("tool", name, parallel)
        case {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "auto" | "required" as mode, "tools": list(tools)},
        }:
            return ToolChoice(mode, parallel=parallel, only=tuple(_names(tools)))
    return None if parallel is None else ToolChoice(parallel=parallel)


def _names(tools: list[Json]) -> Iterator[str]:
    for tool in map(obj, tools):
        if name := text(obj(tool.get(text(tool.get("type")))).get("name")):
            yield name


def _read_output(root: Node) -> Schema | None:
    node = root.opt("response_format")
    match node.value:
        case {"type": "json_object"}:
            return Schema()
        case {"type": "json_schema", "json_schema": dict()}:
            inner = node["json_schema"]
            return Schema(
                inner["schema"].opt_obj() or {},
                inner["name"].opt_text() or "response",
                inner["strict"].opt_flag(),
                inner["description"].opt_text() or "",
            )
    node.opt_obj()
    return None


# By a field of the wire: what of a Request it tells, and how that is read.
_READERS: dict[str, tuple[tuple[str, Callable[[Node], object]], ...]] = {
    "tools": (("tools", _read_tools),),
    "functions": (("tools", _read_tools),),
    "tool_choice": (("tool_choice", _read_choice),),
    "parallel_tool_calls": (("tool_choice", _read_choice),),
    "function_call": (("tool_choice", _read_choice),),
    "response_format": (("output", _read_output),),
    "max_completion_tokens": (("max_tokens", _read_limit),),
    "max_tokens": (("max_tokens", _read_limit),),
    "temperature": (("temperature", lambda root: root.opt("temperature").opt_number()),),
    "top_p": (("top_p", lambda root: root.opt("top_p").opt_number()),),
    "top_k": (("top_k", lambda root: root.opt("top_k").opt_whole()),),
    "stop": (("stop", _read_stop),),
    "seed": (("seed", _read_seed),),
    "random_seed": (("seed", _read_seed),),
    "user": (("user", lambda root: root.opt("user").opt_text()),),
    "reasoning_effort": (("reasoning", _read_effort),),
    "reasoning": (("reasoning", _read_effort), ("reasoning_tokens", _read_budget)),
}
_OTHERS = {
    "max_tokens": "max_completion_tokens",
    "random_seed": "seed",
    "reasoning": "reasoning_effort",
    "functions": "tools",
    "function_call": "tool_choice",
}
_LEGACY = Spelling(frozenset(_READERS), read_options, _OTHERS)
# Tools are spelled in one way since, and long to read: they are not compared.
_SPELLING = Spelling(_LEGACY.options - {"tools", "functions"}, read_options, _OTHERS)


def write_request(request: Request) -> Wire:
    same = request.issuer == ISSUER
    request = tellable(request, ISSUER)
    body: Wire = {"messages": write_messages(request.messages, same), **write_options(request)}
    if not same:
        return body
    spelling = _LEGACY if wants_functions(request) else _SPELLING
    return spelling.over(body, request.extra)


def wants_functions(request: Request) -> bool:
    """Did this client ask with `functions`, as before there were tools?"""
    return request.issuer == ISSUER and bool(request.extra.get("functions"))


def write_options(request: Request) -> Wire:
    same = request.issuer == ISSUER
    written = [_write_tool(tool, same) for tool in request.tools]
    tools: list[Json] = [tool for tool in written if tool is not None]
    budget = request.reasoning_tokens if same else None
    fields: Wire = {
        "tools": tools or None,
        # Choosing among no tools is refused.
        **(_write_choice(request.tool_choice) if tools or (same and not request.tools) else {}),
        "response_format": _write_output(request.output),
        "max_completion_tokens": request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "top_k": request.top_k if same else None,
        "stop": list[Json](request.stop) or None,
        "seed": request.seed,
        "user": request.user if same else fitted_user(request.user),
        "reasoning_effort": request.reasoning if budget is None else None,
        "reasoning": _write_budget(request.reasoning, budget),
    }
    return {key: value for key, value in fields.items() if value is not None}


def _write_budget(effort: str | None, budget: int | None) -> Json:
    """OpenRouter's object; OpenAI itself knows no budgets."""
    if budget is None:
        return None
    return {"max_tokens": budget, **({"effort": effort} if effort else {})}


def _write_tool(tool: Tool | ServerTool, same: bool) -> Json:
    if isinstance(tool, ServerTool):
        return tool.value if tool.issuer == ISSUER else None
    if same and is_free(tool):
        return {**tool.extra, "custom": {**obj(tool.extra.get("custom")), "name": tool.name}}
    extra = dict(tool.extra) if same else {}
    inner: Wire = {**obj(extra.pop("function", None)), "name": tool.name}
    if tool.description:
        inner["description"] = tool.description
    if tool.parameters is not None:
        inner["parameters"] = tool.parameters if same else of_object(tool.parameters)
    return {**extra, "type": "function", "function": inner}


def _write_choice(choice: ToolChoice | None) -> Wire:
    if choice is None:
        return {}
    fields: Wire = {"parallel_tool_calls": choice.parallel}
    if choice.only:
        named: list[Json] = [{"type": "function", "function": {"name": n}} for n in choice.only]
        allowed: Wire = {"mode": choice.mode, "tools": named}
        fields["tool_choice"] = {"type": "allowed_tools", "allowed_tools": allowed}
    elif choice.mode == "tool":
        fields["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
    elif choice.mode != "auto" or choice.parallel is None:
        fields["tool_choice"] = choice.mode
    return fields


def _write_output(output: Schema | None) -> Json:
    if output is None:
        return None
    if output.schema is None:
        return {"type": "json_object"}
    inner: Wire = {"name": output.name, "schema": output.schema}
    if output.strict is not None:
        inner["strict"] = output.strict
    if output.description:
        inner["description"] = output.description
    return {"type": "json_schema", "json_schema": inner}
