"""What a generateContent request asks for besides its contents: limits, choice, thinking."""

from __future__ import annotations

from dataclasses import replace

from understudy.dialects.extras import given, kept
from understudy.dialects.gemini.models import budget_of, form_of, level_of
from understudy.dialects.gemini.parts import ISSUER, cased
from understudy.dialects.json_access import Node, obj
from understudy.dialects.schemas import json_schema
from understudy.messages.parts import NO_EXTRA, Json
from understudy.messages.request import Request, Schema, Tool, ToolChoice

_JSON = "application/json"
_CONFIG = frozenset(
    (
        "maxOutputTokens",
        "temperature",
        "topP",
        "topK",
        "stopSequences",
        "seed",
        "responseMimeType",
        "responseJsonSchema",
        "thinkingConfig",
    )
)
_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY", "tool": "ANY"}


def read_options(root: Node, request: Request) -> Request:
    """`request` with the options of this body, whose keys are cased."""
    config = _object(root, "generationConfig")
    output, shape = _read_shape(config)
    choice, tool_config = _read_choice(_object(root, "toolConfig"))
    effort, tokens, thinking = _read_thinking(_object(config, "thinkingConfig"))
    more = {**kept(config.obj(), _CONFIG), **shape, **given(thinkingConfig=thinking)}
    rest = given(generationConfig=more, toolConfig=tool_config)
    return replace(
        request,
        tool_choice=choice,
        output=output,
        max_tokens=config["maxOutputTokens"].opt_whole(),
        temperature=config["temperature"].opt_number(),
        top_p=config["topP"].opt_number(),
        top_k=config["topK"].opt_whole(),
        stop=tuple(item.text() for item in config["stopSequences"].opt_nodes()),
        seed=config["seed"].opt_whole(),
        reasoning=effort,
        reasoning_tokens=tokens,
        extra={**request.extra, **rest} or NO_EXTRA,
    )


def _object(node: Node, key: str) -> Node:
    """A field that is an object or missing, with its keys cased."""
    inner = node[key]
    return cased(Node(inner.opt_obj() or {}, inner.parent, inner.key))


def _read_shape(config: Node) -> tuple[Schema | None, dict[str, Json]]:
    """The shape of the answer, and the fields about it that must be written as they came."""
    mime = config["responseMimeType"].opt_text()
    if mime != _JSON:
        keys = ("responseMimeType", "responseJsonSchema")
        return None, {key: config[key].value for key in keys if config[key].value is not None}
    own = config["responseSchema"].opt_obj()  # Google's flavour stays in `extra` as it is
    schema = config["responseJsonSchema"].opt_obj()
    return Schema(json_schema(own) if schema is None and own is not None else schema), {}


def _read_choice(config: Node) -> tuple[ToolChoice | None, dict[str, Json]]:
    calling = _object(config, "functionCallingConfig")
    mode = (calling["mode"].opt_text() or "").upper()
    names = [name.text() for name in calling["allowedFunctionNames"].opt_nodes()]
    told: tuple[str, ...] = ("mode",)
    choice: ToolChoice | None = None
    match mode:
        case "ANY" if len(names) == 1:
            choice, told = ToolChoice("tool", names[0]), ("mode", "allowedFunctionNames")
        case "ANY":
            choice = ToolChoice("required", only=tuple(names))
        case "NONE":
            choice = ToolChoice("none")
        case "AUTO":
            choice = ToolChoice("auto")
        case _:
            told = ()
    rest = given(functionCallingConfig=dict(kept(calling.obj(), told)))
    return choice, {**kept(config.obj(), ("functionCallingConfig",)), **rest}


def _read_thinking(config: Node) -> tuple[str | None, int | None, dict[str, Json]]:
    """Effort, budget, and the rest; a dynamic budget (-1) is Google's own notion."""
    level, budget = config["thinkingLevel"].opt_text(), config["thinkingBudget"].opt_whole()
    told = ["thinkingLevel"]
    if budget is not None and budget >= 0:
        told.append("thinkingBudget")
    effort = level.lower() if level else "none" if budget == 0 else None
    tokens = budget if budget is not None and budget > 0 else None
    return effort, tokens, dict(kept(config.obj(), told))


def write_options(request: Request, model: str) -> dict[str, Json]:
    config = given(
        maxOutputTokens=request.max_tokens,
        temperature=request.temperature,
        topP=request.top_p,
        topK=request.top_k,
        stopSequences=list(request.stop),
        seed=request.seed,
        thinkingConfig=_write_thinking(request, model),
    )
    return given(
        generationConfig={**config, **_write_shape(request)},
        toolConfig=given(functionCallingConfig=_write_choice(request)),
    )


def _write_shape(request: Request) -> dict[str, Json]:
    if request.output is None:
        return {}
    own = request.issuer == ISSUER and obj(request.extra.get("generationConfig"))
    schema = None if own and "responseSchema" in own else request.output.schema
    shape: dict[str, Json] = {"responseMimeType": _JSON}
    return shape if schema is None else {**shape, "responseJsonSchema": schema}


def _write_choice(request: Request) -> dict[str, Json] | None:
    choice = request.tool_choice
    if choice is None or not any(isinstance(tool, Tool) for tool in request.tools):
        return None  # refused without functions
    named: dict[str, Json] = {"allowedFunctionNames": [choice.name]}
    return {"mode": _MODES[choice.mode], **(named if choice.mode == "tool" else {})}


def _write_thinking(request: Request, model: str) -> dict[str, Json]:
    form = "level" if request.issuer == ISSUER else form_of(model)
    effort, tokens = request.reasoning, request.reasoning_tokens
    if form == "none":
        return {}
    if tokens is not None:
        return {"thinkingBudget": tokens, **_own_level(request)}
    if effort is None:
        return {}
    if request.issuer == ISSUER:
        return {"thinkingBudget": 0} if effort == "none" else _own_level(request)
    if form == "budget":
        return {"thinkingBudget": budget_of(effort, model)}
    return {"thinkingLevel": level_of(effort, model)}


def _own_level(request: Request) -> dict[str, Json]:
    own = request.issuer == ISSUER and request.reasoning
    return {"thinkingLevel": request.reasoning.upper()} if own and request.reasoning else {}
