"""Arguments of tool calls where a wire wants an object, and the model wrote no whole one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import objects

from understudy.dialects.anthropic import Anthropic
from understudy.dialects.base import Dialect
from understudy.dialects.calls import arguments_of
from understudy.dialects.gemini import Gemini
from understudy.dialects.ollama import Ollama
from understudy.messages.parts import Json, ToolCall
from understudy.messages.request import Request, assistant, user
from understudy.messages.response import Response


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("", {}),
        (" \n", {}),
        ("null", {}),
        ('{"a": 1}', {"a": 1}),
        ('{"a": 1, "b": "xy', {"a": 1}),
        ('{"a": 1, "b": [1, 2', {"a": 1, "b": [1, 2]}),
        ('{"a": 1, "b": [{"c": 2, "d": tr', {"a": 1, "b": [{"c": 2}]}),
        ('{"a": "{[,\\"", "b": "}', {"a": '{[,"'}),
        ('{"a": "x\\', {}),
        ('{"a": {"b"', {"a": {}}),
        ('{"a": 1.', {}),
        ('{"a', {}),
        ("{", {}),
        ("[1]", {"input": [1]}),
        ("[1", {"input": "[1"}),
        ("SELECT 1", {"input": "SELECT 1"}),
        ('{"a": 1}{"a": 1}', {"input": '{"a": 1}{"a": 1}'}),
        ("{'a': 1}", {"input": "{'a': 1}"}),
        ("[" * 5000, {"input": "[" * 5000}),
    ],
)
def test_what_is_whole_of_the_arguments_is_given(said: str, found: dict[str, Json]) -> None:
    assert arguments_of(ToolCall("c", "f", said)) == found


@pytest.mark.parametrize("said", ["{", '{"a": 1, "b', '{"a": 1}', "SELECT 1"])
@pytest.mark.parametrize(
    ("issuer", "kind"), [("openai", "custom"), ("responses", "custom_tool_call")]
)
def test_free_text_is_never_taken_for_arguments(said: str, issuer: str, kind: str) -> None:
    assert arguments_of(ToolCall("c", "f", said, issuer, {"type": kind})) == {"input": said}


@given(objects, st.booleans(), st.data())
def test_arguments_cut_anywhere_are_what_anthropics_sdk_makes_of_them(
    value: dict[str, Json], ascii_only: bool, data: st.DataObject
) -> None:
    jiter = pytest.importorskip("jiter")
    spelled = json.dumps(value, ensure_ascii=ascii_only)
    cut = spelled[: data.draw(st.integers(1, len(spelled)))]
    partly = jiter.from_json(cut.encode(), partial_mode=True)
    assert arguments_of(ToolCall("c", "f", cut)) == partly


CUT = ToolCall("c", "f", '{"a": 1, "b": "xy')


def anthropic_input(body: Any) -> Any:
    return next(block["input"] for block in body["content"] if block["type"] == "tool_use")


def gemini_args(body: Any) -> Any:
    content = body["candidates"][0]["content"] if "candidates" in body else body
    return next(p["functionCall"]["args"] for p in content["parts"] if "functionCall" in p)


def ollama_arguments(body: Any) -> Any:
    return body.get("message", body)["tool_calls"][0]["function"]["arguments"]


@pytest.mark.parametrize(
    ("dialect", "turns", "arguments"),
    [
        (Anthropic(), "messages", anthropic_input),
        (Gemini(), "contents", gemini_args),
        (Ollama(), "messages", ollama_arguments),
    ],
    ids=["anthropic", "gemini", "ollama"],
)
def test_a_cut_call_reaches_nobody_with_a_parameter_that_nobody_sent(
    dialect: Dialect, turns: str, arguments: Any
) -> None:
    answer = Response(tool_calls=(CUT,), finish_reason="length")
    assert arguments(dialect.write_response(answer, "m")) == {"a": 1}
    writer = dialect.writer("m")
    stream = writer.write_event(CUT) + writer.write_event(answer)
    reader = dialect.reader()
    last = [*reader.feed(stream), *reader.end()][-1]
    assert isinstance(last, Response)
    assert json.loads(last.tool_calls[0].arguments) == {"a": 1}
    history: Any = dialect.write_request(Request((user("a"), assistant(CUT))), "m", stream=False)
    assert arguments(history[turns][1]) == {"a": 1}
