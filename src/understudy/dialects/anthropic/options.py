"""What a Messages request asks for besides its messages: limits, sampling, choice, thinking."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from understudy.dialects.anthropic.blocks import ISSUER
from understudy.dialects.anthropic.models import BUDGETS, EFFORTS, Habits, habits_of
from understudy.dialects.extras import given, kept
from understudy.dialects.json_access import Node
from understudy.dialects.longest import longest_of
from understudy.dialects.schemas import closed
from understudy.dialects.tool_ids import fitted_user
from understudy.messages.parts import Json, Part, Reasoning
from understudy.messages.request import Request, Schema, ToolChoice

DEFAULT_MAX_TOKENS = 4096  # the wire insists on a number
_LEAST_BUDGET = 1024

_KNOWN = frozenset(
    [
        "model",
        "messages",
        "system",
        "tools",
        "stream",
        "max_tokens",
        "temperature",
        "top_p",
        "top_k",
        "stop_sequences",
        "tool_choice",
        "thinking",
        "output_config",
        "output_format",
        "metadata",
    ]
)
_CHOICES = {"auto": "auto", "any": "required", "tool": "tool", "none": "none"}
_WRITTEN_CHOICES = {ours: theirs for theirs, ours in _CHOICES.items()}


def read_options(root: Node, request: Request) -> Request:
    """`request` with the options of this body."""
    config = root["output_config"]
    config.opt_obj()
    effort, thinking = _field(config, "effort").opt_text(), root["thinking"]
    off = _field(thinking, "type").value == "disabled" and effort is None
    tokens = _field(thinking, "budget_tokens").opt_whole()
    stop = tuple(item.text() for item in root["stop_sequences"].opt_nodes())
    extra = dict(kept(root.obj(), _KNOWN))
    extra |= given(
        output_config=_rest(config, "format", "effort"),
        metadata=_rest(root["metadata"], "user_id"),
        thinking=_rest(thinking, *_told(off, tokens)),
    )
    return replace(
        request,
        tool_choice=_read_choice(root["tool_choice"]),
        output=_read_format(_field(config, "format")) or _read_format(root["output_format"]),
        max_tokens=root["max_tokens"].opt_whole(),
        temperature=root["temperature"].opt_number(),
        top_p=root["top_p"].opt_number(),
        top_k=root["top_k"].opt_whole(),
        stop=stop,
        reasoning="none" if off else effort,
        reasoning_tokens=tokens,
        user=_field(root["metadata"], "user_id").opt_text(),
        extra=extra,
    )


def _told(off: bool, tokens: int | None) -> tuple[str, ...]:
    """The fields of `thinking` that the neutral options already say."""
    return ("type",) if off else ("type", "budget_tokens") if tokens is not None else ()


def _field(node: Node, key: str) -> Node:
    return node if node.value is None else node[key]


def _rest(node: Node, *known: str) -> dict[str, Json]:
    return dict(kept(node.opt_obj() or {}, known))


def _read_choice(node: Node) -> ToolChoice | None:
    if node.value is None:
        return None
    kind = node["type"].word(*_CHOICES)
    single = node["disable_parallel_tool_use"].opt_flag()
    parallel = None if single is None else not single
    match kind:
        case "tool":
            return ToolChoice("tool", node["name"].text(), parallel)
        case "any":
            return ToolChoice("required", parallel=parallel)
        case "none":
            return ToolChoice("none", parallel=parallel)
    return ToolChoice("auto", parallel=parallel)


def _read_format(node: Node) -> Schema | None:
    return None if node.value is None else Schema(node["schema"].opt_obj())


def write_options(request: Request, model: str) -> dict[str, Json]:
    if request.issuer == ISSUER:
        limit = DEFAULT_MAX_TOKENS if request.max_tokens is None else request.max_tokens
        thinking, effort = _own_thinking(request), request.reasoning
        sampling = Sampling(request.temperature, request.top_p, request.top_k)
        return _options(request, Thoughts(limit, thinking, effort), sampling)
    return _foreign(request, habits_of(model), longest_of(model))


class Thoughts(NamedTuple):
    """How much may be said, and how much of it is thinking."""

    limit: int  # tokens
    thinking: dict[str, Json] | None = None
    effort: str | None = None


class Sampling(NamedTuple):
    """How the next token is chosen."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None


def _options(request: Request, thoughts: Thoughts, sampling: Sampling) -> dict[str, Json]:
    limit, thinking, effort = thoughts
    config: dict[str, Json] = {}
    user = request.user if request.issuer == ISSUER else fitted_user(request.user)
    if effort and effort != "none":
        config["effort"] = effort
    if (form := _write_format(request)) is not None:
        config["format"] = form
    written: dict[str, Json] = {"max_tokens": limit}
    return written | given(
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        stop_sequences=list(request.stop),
        tool_choice=_write_choice(request.tool_choice),
        thinking=thinking,
        output_config=config,
        metadata={"user_id": user} if user else None,
    )


def _own_thinking(request: Request) -> dict[str, Json] | None:
    if request.reasoning_tokens is not None:
        if _mid_loop(request):
            return {"type": "disabled"}  # Claude did not think before these calls
        return {"type": "enabled", "budget_tokens": request.reasoning_tokens}
    return {"type": "disabled"} if request.reasoning == "none" else None


def _foreign(request: Request, habits: Habits, longest: int | None) -> dict[str, Json]:
    """Options of a request that was made for another vendor, bent to what this model takes."""
    thoughts = Thoughts(request.max_tokens or DEFAULT_MAX_TOKENS)
    if _wants_thinking(request):
        if habits.thinking == "adaptive":
            thoughts = Thoughts(thoughts.limit, {"type": "adaptive"}, _effort(request))
        elif habits.thinking == "budget" and not _mid_loop(request):
            thoughts = Thoughts(*_budgeted(request, longest))
    return _options(request, thoughts, _sampled(request, habits, thoughts.thinking is not None))


def _wants_thinking(request: Request) -> bool:
    forced = request.tool_choice and request.tool_choice.mode in ("required", "tool")
    if forced or request.reasoning == "none":
        return False  # a forced tool call and thinking exclude each other
    return bool(request.reasoning or request.reasoning_tokens)


def _effort(request: Request) -> str | None:
    return EFFORTS.get(request.reasoning, "max") if request.reasoning else None


def _mid_loop(request: Request) -> bool:
    """Whether tools are just being answered without Claude's own thinking before the calls.

    With a budget, such a turn must begin with a thinking block, which nobody can make up.
    """
    if not request.messages or request.messages[-1].role != "tool":
        return False
    return not any(isinstance(p, Reasoning) and p.issuer == ISSUER for p in _asking(request))


def _asking(request: Request) -> tuple[Part, ...]:
    """The turn of a model that came last."""
    turns = (m.parts for m in reversed(request.messages) if m.role == "assistant")
    return next(turns, ())


def _budgeted(request: Request, longest: int | None) -> tuple[int, dict[str, Json] | None]:
    """A limit and a budget below it; no thinking where the caller's limit leaves no room."""
    wanted = request.reasoning_tokens or BUDGETS.get(request.reasoning or "", BUDGETS["max"])
    wanted = max(wanted, _LEAST_BUDGET)
    limit = request.max_tokens or DEFAULT_MAX_TOKENS + wanted
    limit = min(limit, longest or limit)
    budget = min(wanted, limit * 4 // 5)  # what is thought must leave room for what is said
    if budget < _LEAST_BUDGET:
        return limit, None
    return limit, {"type": "enabled", "budget_tokens": budget}


def _sampled(request: Request, habits: Habits, thinks: bool) -> Sampling:
    """Without the sampling options this model refuses. Claude's temperature ends at 1."""
    if habits.sampling == "none" or thinks:
        return Sampling()
    temperature = request.temperature
    if temperature is None:
        return Sampling(None, request.top_p, request.top_k)
    top_p = None if habits.sampling == "one" else request.top_p
    return Sampling(min(temperature, 1.0), top_p, request.top_k)


def _write_choice(choice: ToolChoice | None) -> dict[str, Json] | None:
    if choice is None:
        return None
    written: dict[str, Json] = {"type": _WRITTEN_CHOICES[choice.mode]}
    if choice.mode == "tool":
        written["name"] = choice.name
    if choice.parallel is not None and choice.mode != "none":
        written["disable_parallel_tool_use"] = not choice.parallel
    return written


def _write_format(request: Request) -> dict[str, Json] | None:
    if request.output is None or request.output.schema is None:
        return None
    schema = request.output.schema
    own = request.issuer == ISSUER
    return {"type": "json_schema", "schema": schema if own else closed(schema)}
