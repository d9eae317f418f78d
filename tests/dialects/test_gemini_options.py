"""generateContent options: shapes of the answer, tool choice and thinking."""

from __future__ import annotations

from typing import Any

import pytest
from wire_rig import encoded

from understudy.dialects.base import Dialect
from understudy.dialects.gemini import Gemini
from understudy.messages.parts import (
    Json,
)
from understudy.messages.request import (
    Request,
    Schema,
    Tool,
    ToolChoice,
    user,
)

DIALECT: Dialect = Gemini()
MODEL = "gemini-2.5-flash"


def asked(request: Request, model: str = MODEL) -> dict[str, Any]:
    return DIALECT.write_request(request, model, stream=False)


def read(body: dict[str, Any]) -> Request:
    return DIALECT.read_request(encoded({"contents": [], **body}), MODEL).request


def config(**options: Any) -> Request:
    return read({"generationConfig": options})


def test_google_s_flavour_of_schema_is_read_as_json_schema_and_goes_back_as_it_came() -> None:
    own: dict[str, Json] = {
        "type": "OBJECT",
        "properties": {
            "type": {"type": "STRING", "nullable": True},
            "list": {"type": "ARRAY", "items": {"type": "INTEGER"}, "min_items": 1},
            "odd": 3,
        },
        "any_of": [{"type": "NUMBER"}, 1],
        "enum": ["A"],
        "default": {"type": "KEPT"},
    }
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {
            "type": {"type": ["string", "null"]},
            "list": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
            "odd": 3,
        },
        "anyOf": [{"type": "number"}, 1],
        "enum": ["A"],
        "default": {"type": "KEPT"},
    }
    tools = [{"functionDeclarations": [{"name": "f", "parameters": own}]}]
    shape = {"responseMimeType": "application/json", "responseSchema": own}
    request = read({"tools": tools, "generationConfig": shape})
    assert request.tools[0] == Tool("f", parameters=schema, extra={"parameters": own})
    assert request.output == Schema(schema)
    written = asked(request)
    assert (written["tools"], written["generationConfig"]) == (tools, shape)


def test_schemas_of_others_are_sent_as_json_schema() -> None:
    schema: dict[str, Json] = {"type": "object", "additionalProperties": False}
    body = asked(
        Request(messages=(user("a"),), tools=(Tool("f", "d", schema),), output=Schema(schema))
    )
    assert body["tools"] == [
        {
            "functionDeclarations": [
                {"name": "f", "description": "d", "parametersJsonSchema": schema}
            ]
        }
    ]
    assert body["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseJsonSchema": schema,
    }
    assert asked(Request(messages=(user("a"),), output=Schema()))["generationConfig"] == {
        "responseMimeType": "application/json"
    }


def test_shapes_that_are_not_json_stay_google_s_own() -> None:
    shape = {
        "responseMimeType": "text/x.enum",
        "responseSchema": {"type": "STRING", "enum": ["a"]},
    }
    request = config(**shape)
    assert request.output is None
    assert asked(request)["generationConfig"] == shape


CHOICES: list[tuple[dict[str, Any], ToolChoice | None]] = [
    ({"mode": "AUTO"}, ToolChoice("auto")),
    ({"mode": "NONE"}, ToolChoice("none")),
    ({"mode": "ANY"}, ToolChoice("required")),
    ({"mode": "ANY", "allowedFunctionNames": ["f"]}, ToolChoice("tool", "f")),
    (
        {"mode": "ANY", "allowedFunctionNames": ["f", "g"]},
        ToolChoice("required", only=("f", "g")),
    ),
    ({"mode": "VALIDATED"}, None),
]


@pytest.mark.parametrize(("calling", "choice"), CHOICES)
def test_tool_choices_have_their_own_words(
    calling: dict[str, Any], choice: ToolChoice | None
) -> None:
    tools = [{"functionDeclarations": [{"name": "f"}, {"name": "g"}]}]
    body = {"tools": tools, "toolConfig": {"functionCallingConfig": calling, "other": 1}}
    request = read(body)
    assert request.tool_choice == choice
    assert asked(request)["toolConfig"] == body["toolConfig"]
    assert "toolConfig" not in asked(Request(messages=(user("a"),), tool_choice=choice))


THINKING: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("gemini-2.0-flash", {"reasoning": "high"}, {}),
    ("gemini-2.5-flash", {"reasoning": "none"}, {"thinkingBudget": 0}),
    ("gemini-2.5-pro", {"reasoning": "none"}, {"thinkingBudget": 128}),
    ("gemini-2.5-flash", {"reasoning": "medium"}, {"thinkingBudget": 8192}),
    ("gemini-2.5-flash", {"reasoning": "max"}, {"thinkingBudget": 24576}),
    ("gemini-3-flash-preview", {"reasoning": "none"}, {"thinkingLevel": "MINIMAL"}),
    ("gemini-3.1-pro-preview", {"reasoning": "minimal"}, {"thinkingLevel": "LOW"}),
    ("gemini-3.5-flash", {"reasoning": "xhigh"}, {"thinkingLevel": "HIGH"}),
    ("gemini-flash-latest", {"reasoning_tokens": 99}, {"thinkingBudget": 99}),
    ("gemini-flash-latest", {}, {}),
]


@pytest.mark.parametrize(("model", "options", "written"), THINKING)
def test_effort_is_asked_for_as_each_generation_wants_it(
    model: str, options: dict[str, Any], written: dict[str, Any]
) -> None:
    body = asked(Request(messages=(user("a"),), **options), model)
    assert body.get("generationConfig", {}).get("thinkingConfig", {}) == written


OWN_THINKING: list[dict[str, Any]] = [
    {"includeThoughts": True},
    {"thinkingBudget": -1},
    {"thinkingBudget": 0},
    {"thinkingBudget": 50, "includeThoughts": False},
    {"thinkingLevel": "LOW", "includeThoughts": True},
    {"thinkingLevel": "LOW", "thinkingBudget": 5},
]


@pytest.mark.parametrize("thinking", OWN_THINKING)
def test_thinking_asked_for_in_google_s_own_words_is_repeated(thinking: dict[str, Any]) -> None:
    assert asked(config(thinkingConfig=thinking))["generationConfig"] == {
        "thinkingConfig": thinking
    }
