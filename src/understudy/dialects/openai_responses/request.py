"""A Responses request: its options and tools, read strictly and written back."""

from __future__ import annotations

from understudy.dialects.calls import free_text, is_free
from understudy.dialects.json_access import Node, Wire, obj, text, without
from understudy.dialects.openai_models import lacks_word
from understudy.dialects.openai_responses.items import ISSUER
from understudy.dialects.openai_responses.messages import read_input, write_input
from understudy.dialects.schemas import of_object
from understudy.dialects.spelling import Spelling, unsaid
from understudy.dialects.tellable import tellable
from understudy.dialects.tool_ids import fitted_user
from understudy.messages.parts import NO_EXTRA, Json
from understudy.messages.request import Message, Request, Schema, ServerTool, Tool, ToolChoice
from understudy.messages.schema import instruction

_ENVELOPE = frozenset(("model", "input", "stream", "tools", "instructions"))


def read_request(root: Node) -> Request:
    options = read_options(root)
    said = root["instructions"].opt_text() or ""
    return Request(
        messages=read_input(root["input"], said),
        tools=options.tools,
        tool_choice=options.tool_choice,
        output=options.output,
        max_tokens=options.max_tokens,
        temperature=options.temperature,
        top_p=options.top_p,
        reasoning=options.reasoning,
        user=options.user,
        issuer=ISSUER,
        extra=_kept(root, options) or NO_EXTRA,
    )


def _kept(root: Node, options: Request) -> Wire:
    wire = root.obj()
    kept = unsaid(wire, write_options(options), _ENVELOPE)
    if isinstance(wire.get("input"), str):
        kept["input"] = wire["input"]  # one text: as good as a list of one turn
    for key in ("tools", "instructions"):
        if key in wire and not wire[key]:
            kept[key] = wire[key]
    return kept


def read_options(root: Node) -> Request:
    """Everything but the items. Null and missing are the same."""
    return Request(
        tools=tuple(_read_tool(node) for node in root["tools"].opt_nodes()),
        tool_choice=_read_choice(root),
        output=_read_output(root["text"]),
        max_tokens=root["max_output_tokens"].opt_whole(),
        temperature=root["temperature"].opt_number(),
        top_p=root["top_p"].opt_number(),
        reasoning=_within(root["reasoning"], "effort").opt_text(),
        user=root["user"].opt_text(),
        issuer=ISSUER,
    )


def _within(node: Node, key: str) -> Node:
    return node if node.value is None else node[key]


def _read_tool(node: Node) -> Tool | ServerTool:
    if node["type"].value == "custom":
        said = node["description"].opt_text() or ""
        return Tool(node["name"].text(), said, free_text(node.obj()), node.obj())
    if node["type"].value != "function":
        node.obj()
        return ServerTool(ISSUER, node.value)
    parameters = node["parameters"].opt_obj()
    said = node["description"].opt_text() or ""
    known = {"type", "name"}
    known |= {"parameters"} if parameters is not None else set()
    known |= {"description"} if said else set()
    return Tool(node["name"].text(), said, parameters, without(node.obj(), known))


def _read_choice(root: Node) -> ToolChoice | None:
    parallel = root["parallel_tool_calls"].opt_flag()
    match root["tool_choice"].value:
        case "auto" | "none" | "required" as mode:
            return ToolChoice(mode, parallel=parallel)
        case {"type": "function" | "custom", "name": str(name)}:
            return ToolChoice("tool", name, parallel)
        case {"type": "allowed_tools", "mode": "auto" | "required" as mode, "tools": list(tools)}:
            only = tuple(filter(None, (text(obj(tool).get("name")) for tool in tools)))
            return ToolChoice(mode, parallel=parallel, only=only)
    return None if parallel is None else ToolChoice(parallel=parallel)


def _read_output(node: Node) -> Schema | None:
    form = _within(node, "format")
    match form.value:
        case {"type": "json_object"}:
            return Schema()
        case {"type": "json_schema"}:
            return Schema(
                form["schema"].opt_obj() or {},
                form["name"].opt_text() or "response",
                form["strict"].opt_flag(),
                form["description"].opt_text() or "",
            )
    form.opt_obj()
    return None


_SPELLING = Spelling(
    frozenset(
        [
            "tool_choice",
            "parallel_tool_calls",
            "text",
            "max_output_tokens",
            "temperature",
            "top_p",
            "reasoning",
            "user",
        ]
    ),
    read_options,
)


def write_request(request: Request) -> Wire:
    same = request.issuer == ISSUER
    request = tellable(request, ISSUER)
    instructions, said = write_input(request.messages, same)
    body: Wire = {"input": said, **write_options(request)}
    if instructions:
        body["instructions"] = instructions
    if not same:
        if request.output and request.output.schema is None and lacks_word(_turns(request)):
            body["input"] = [{"role": "system", "content": instruction(None)}, *said]
        return body
    if said == [{"role": "user", "content": request.extra.get("input")}]:
        body["input"] = request.extra["input"]
    if not said and "prompt" in request.extra:
        del body["input"]  # all of it is in the stored prompt
    return _SPELLING.over(body, request.extra)


def _turns(request: Request) -> list[Message]:
    """Without `instructions`, where the word is not looked for."""
    return [message for message in request.messages if message.role != "system"]


def write_options(request: Request) -> Wire:
    same = request.issuer == ISSUER
    written = [_write_tool(tool, same) for tool in request.tools]
    tools: list[Json] = [tool for tool in written if tool is not None]
    form = _write_output(request.output)
    fields: Wire = {
        "tools": tools or None,
        # Choosing among tools that were all left out is refused.
        **(_write_choice(request.tool_choice) if tools or not request.tools else {}),
        "text": {"format": form} if form else None,
        "max_output_tokens": request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "reasoning": {"effort": request.reasoning} if request.reasoning else None,
        "user": request.user if same else fitted_user(request.user),
    }
    return {key: value for key, value in fields.items() if value is not None}


def _write_tool(tool: Tool | ServerTool, same: bool) -> Json:
    if isinstance(tool, ServerTool):
        return tool.value if tool.issuer == ISSUER else None
    if same and is_free(tool):
        return {**tool.extra, "name": tool.name}
    # Unless told otherwise this API makes schemas strict, and with that optional fields required.
    fields: Wire = dict(tool.extra) if same else {"strict": False}
    fields |= {"type": "function", "name": tool.name}
    if tool.description:
        fields["description"] = tool.description
    if tool.parameters is not None:
        fields["parameters"] = tool.parameters if same else of_object(tool.parameters)
    return fields


def _write_choice(choice: ToolChoice | None) -> Wire:
    if choice is None:
        return {}
    fields: Wire = {"parallel_tool_calls": choice.parallel}
    if choice.only:
        named: list[Json] = [{"type": "function", "name": name} for name in choice.only]
        fields["tool_choice"] = {"type": "allowed_tools", "mode": choice.mode, "tools": named}
    elif choice.mode == "tool":
        fields["tool_choice"] = {"type": "function", "name": choice.name}
    elif choice.mode != "auto" or choice.parallel is None:
        fields["tool_choice"] = choice.mode
    return fields


def _write_output(output: Schema | None) -> Wire | None:
    if output is None:
        return None
    if output.schema is None:
        return {"type": "json_object"}
    fields: Wire = {"type": "json_schema", "name": output.name, "schema": output.schema}
    if output.strict is not None:
        fields["strict"] = output.strict
    if output.description:
        fields["description"] = output.description
    return fields
