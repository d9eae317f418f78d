"""Messages options: limits, sampling, thinking and the shape of the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from wire_rig import encoded

from understudy.dialects.anthropic import Anthropic
from understudy.dialects.base import Dialect
from understudy.messages.parts import (
    Json,
    Reasoning,
    ToolCall,
)
from understudy.messages.request import (
    Request,
    Schema,
    Tool,
    ToolChoice,
    assistant,
    system,
    tool_result,
    user,
)

DIALECT: Dialect = Anthropic()
MODEL = "claude-opus-4-8"


def asked(request: Request, model: str = MODEL) -> dict[str, Any]:
    return DIALECT.write_request(request, model, stream=False)


def read(body: dict[str, Any]) -> Request:
    whole = {"model": MODEL, "max_tokens": 9, "messages": [], **body}
    return DIALECT.read_request(encoded(whole)).request


def test_the_limit_that_claude_insists_on_has_a_default() -> None:
    assert asked(Request(messages=(user("a"),)))["max_tokens"] == 4096


THINKING: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    # model, options, what is written of them
    ("claude-3-haiku-20240307", {"reasoning": "high"}, {}),
    (
        "claude-3-7-sonnet-20250219",
        {"reasoning": "medium"},
        {"max_tokens": 12288, "thinking": {"type": "enabled", "budget_tokens": 8192}},
    ),
    (
        "claude-sonnet-4-5",
        {"reasoning": "high", "max_tokens": 3000},
        {"max_tokens": 3000, "thinking": {"type": "enabled", "budget_tokens": 2400}},
    ),
    ("claude-sonnet-4-5", {"reasoning": "high", "max_tokens": 800}, {"max_tokens": 800}),
    (
        "claude-haiku-4-5-20251001",
        {"reasoning_tokens": 2000},
        {"max_tokens": 6096, "thinking": {"type": "enabled", "budget_tokens": 2000}},
    ),
    (
        "us.anthropic.claude-opus-4-6-v1",
        {"reasoning": "minimal"},
        {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
    ),
    (
        "claude-fable-5-1",
        {"reasoning": "xhigh", "temperature": 0.3},
        {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}},
    ),
    ("claude-opus-4-8", {"reasoning_tokens": 4000}, {"thinking": {"type": "adaptive"}}),
    ("claude-opus-4-8", {"reasoning": "none"}, {}),
    (
        "some-alias",
        {"reasoning": "low"},
        {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
    ),
]


@pytest.mark.parametrize(("model", "options", "written"), THINKING)
def test_effort_is_asked_for_as_each_generation_wants_it(
    model: str, options: dict[str, Any], written: dict[str, Any]
) -> None:
    body = asked(Request(messages=(user("a"),), issuer="openai", **options), model)
    told = {k: v for k, v in body.items() if k not in ("model", "messages")}
    assert told == {"max_tokens": 4096, **written}


SAMPLING = [
    (
        "claude-3-5-sonnet-20241022",
        {"temperature": 1.7, "top_p": 0.5},
        {"temperature": 1.0, "top_p": 0.5},
    ),
    (
        "claude-sonnet-4-5",
        {"temperature": 0.2, "top_p": 0.5, "top_k": 3},
        {"temperature": 0.2, "top_k": 3},
    ),
    ("claude-sonnet-4-5", {"top_p": 0.5}, {"top_p": 0.5}),
    ("claude-opus-4-8", {"temperature": 0.2, "top_k": 3}, {}),
]


@pytest.mark.parametrize(("model", "options", "written"), SAMPLING)
def test_sampling_that_a_generation_refuses_is_left_out(
    model: str, options: dict[str, Any], written: dict[str, Any]
) -> None:
    body = asked(Request(messages=(user("a"),), issuer="openai", **options), model)
    assert {k: body[k] for k in ("temperature", "top_p", "top_k") if k in body} == written


def test_claude_does_not_think_where_it_could_not_have_begun_to() -> None:
    call = ToolCall("c", "f")
    loop = Request(messages=(user("a"), assistant(call), tool_result(call, "1")), reasoning="low")
    own = assistant(Reasoning("t", "anthropic", "sig"), call)
    signed = replace(loop, messages=(user("a"), own, tool_result(call, "1")))
    forced = Request(
        messages=(user("a"),),
        tools=(Tool("f"),),
        tool_choice=ToolChoice("required"),
        reasoning="low",
    )
    assert "thinking" not in asked(loop, "claude-sonnet-4-5")
    assert "thinking" in asked(signed, "claude-sonnet-4-5")
    assert "thinking" in asked(loop, "claude-opus-4-8")
    assert "thinking" not in asked(forced)


OWN_THINKING: list[dict[str, Any]] = [
    {"thinking": {"type": "adaptive"}},
    {"thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"effort": "xhigh"}},
    {"thinking": {"type": "disabled"}},
    {"thinking": {"type": "disabled"}, "output_config": {"effort": "low"}},
    {"thinking": {"type": "enabled", "budget_tokens": 2000, "display": "summarized"}},
    {"output_config": {"effort": "high"}, "temperature": 0.1, "top_p": 0.2},
]


@pytest.mark.parametrize("body", OWN_THINKING)
def test_thinking_asked_for_in_claudes_own_words_is_repeated(body: dict[str, Any]) -> None:
    written = asked(read({**body, "messages": [{"role": "user", "content": "a"}]}))
    assert {
        k: v for k, v in written.items() if k not in ("model", "messages", "max_tokens")
    } == body


def test_structured_output_is_asked_for_by_either_name() -> None:
    shape: dict[str, Json] = {"type": "json_schema", "schema": {"type": "object"}}
    new, old = read({"output_config": {"format": shape}}), read({"output_format": shape})
    assert new.output == old.output == Schema({"type": "object"})
    assert asked(old)["output_config"] == {"format": shape}


def test_a_schema_of_another_dialect_is_closed_and_what_claude_refuses_is_put_into_words() -> None:
    item: dict[str, Json] = {
        "type": "object",
        "properties": {"minimum": {"type": "integer", "minimum": 1}},
    }
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {"items": {"type": "array", "items": item, "maxItems": 3}},
        "anyOf": [item, True],
        "default": {"type": "object"},
    }
    closed = {
        "type": "object",
        "properties": {"minimum": {"type": "integer", "description": "(minimum: 1)"}},
        "additionalProperties": False,
    }
    items = {"type": "array", "items": closed, "description": "(maxItems: 3)"}
    body = asked(Request(messages=(user("a"),), output=Schema(schema)))
    assert body["output_config"]["format"]["schema"] == {
        "type": "object",
        "properties": {"items": items},
        "anyOf": [closed, True],
        "default": {"type": "object"},
        "additionalProperties": False,
    }
    assert item == {"type": "object", "properties": {"minimum": {"type": "integer", "minimum": 1}}}


def test_json_without_a_schema_is_asked_for_in_words() -> None:
    body = asked(Request(messages=(system("be brief"), user("a")), output=Schema()))
    assert "output_config" not in body
    assert "JSON" in body["system"][1]["text"]
