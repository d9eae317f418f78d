"""Functions, as Chat Completions had them before there were tools: kept, and still answered."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from chat_rig import CHAT, answering, asking, chunk, final, read, rewritten, sent, streamed

from understudy.dialects.base import UNASKED, Asked
from understudy.dialects.openai_chat import wants_functions
from understudy.messages.parts import Json, Reasoning, Text, ToolCall, ToolResult
from understudy.messages.request import Tool, ToolChoice
from understudy.messages.response import Event, ReasoningDelta, Response, TextDelta

CALLED = {"name": "f", "arguments": '{"a": 1}'}
ASKED = asking(
    {"role": "user", "content": "a"},
    {"role": "assistant", "content": None, "function_call": CALLED},
    {"role": "function", "name": "f", "content": "1"},
    functions=[{"name": "f", "parameters": {}, "strict": True}, {"name": "g"}],
    function_call={"name": "f"},
    max_tokens=5,
)
OLD = Asked(read(ASKED))


@pytest.mark.parametrize(
    "wire",
    [
        ASKED,
        {**ASKED, "function_call": "auto"},
        {**ASKED, "functions": []},
        asking(
            {"role": "assistant", "content": "", "name": "bob", "function_call": CALLED},
            {"role": "function", "name": "f", "content": [{"type": "text", "text": "1"}]},
            {"role": "assistant", "content": "b", "function_call": {"name": "g"}},
            {"role": "function", "name": "g", "content": "ERROR: no disk"},
        ),
    ],
)
def test_functions_are_written_back_as_they_came(wire: dict[str, Any]) -> None:
    assert rewritten(wire) == wire


def test_functions_are_tools_and_reach_other_dialects_as_such() -> None:
    request = read(ASKED)
    (call,) = request.messages[1].tool_calls
    strict: dict[str, Json] = {"function": {"strict": True}}
    assert request.tools == (Tool("f", parameters={}, extra=strict), Tool("g"))
    assert request.tool_choice == ToolChoice("tool", "f")
    (result,) = request.messages[2].parts
    assert isinstance(result, ToolResult)
    assert (result.id, result.name, result.text) == (call.id, "f", "1")
    body = sent(replace(request, issuer="anthropic"))
    inner = {"id": call.id, "type": "function", "function": CALLED}
    assert body["messages"][1:] == [
        {"role": "assistant", "content": None, "tool_calls": [inner]},
        {"role": "tool", "tool_call_id": call.id, "content": "1"},
    ]
    assert [tool["function"]["name"] for tool in body["tools"]] == ["f", "g"]
    assert not {"functions", "function_call"} & set(body)


def test_changed_functions_are_written_as_tools() -> None:
    body = sent(read(ASKED).having(tools=(Tool("h"),), tool_choice=ToolChoice("required")))
    assert body["tools"] == [{"type": "function", "function": {"name": "h"}}]
    assert body["tool_choice"] == "required"
    assert not {"functions", "function_call"} & set(body)


def test_an_answer_in_the_old_style_is_written_back_in_it() -> None:
    message = {"role": "assistant", "content": None, "function_call": CALLED}
    whole = CHAT.read_response(answering(message, "function_call"))
    pieces = [{"name": "f", "arguments": ""}, {"arguments": CALLED["arguments"]}]
    stream = final(*(chunk({"function_call": p}) for p in pieces), chunk({}, "function_call"))
    for response in (whole, stream):
        (choice,) = choices(CHAT.write_response(response, "m"))
        assert choice["message"] == {**message, "refusal": None}
        assert choice["finish_reason"] == "function_call"
        assert told([*response.tool_calls, response]) == [
            {"role": "assistant", "content": ""},
            {"function_call": CALLED},
            "function_call",
        ]


def test_a_call_told_in_both_styles_is_one_call() -> None:  # llama-cpp-python
    call = {"index": 0, "id": "c", "type": "function", "function": CALLED}
    response = final(chunk({"function_call": CALLED, "tool_calls": [call]}, "tool_calls"))
    assert response.tool_calls == (ToolCall("c", "f", CALLED["arguments"]),)


FOREIGN = Response(
    parts=(
        Reasoning("hm", "anthropic", "sig"),
        Text("b"),
        ToolCall("t1", "f", CALLED["arguments"], "anthropic", {"caller": 1}),
        ToolCall("t2", "g"),
    ),
    finish_reason="tool_calls",
    finish_raw="tool_use",
    issuer="anthropic",
)


def test_a_client_that_asked_with_functions_is_answered_with_one() -> None:
    (choice,) = choices(CHAT.write_response(FOREIGN, "m", OLD))
    assert choice["finish_reason"] == "function_call"
    assert choice["message"] == {
        "role": "assistant",
        "content": "b",
        "reasoning_content": "hm",
        "function_call": CALLED,
        "refusal": None,
    }
    events: list[Event] = [ReasoningDelta("hm"), TextDelta("b"), *FOREIGN.tool_calls, FOREIGN]
    ending = [{"function_call": CALLED}, "function_call"]
    assert told(events, legacy=True)[3:] == ending
    assert told([FOREIGN], legacy=True)[-2:] == ending


def test_who_is_answered_without_a_call_notices_nothing() -> None:
    plain = Response(text="b")
    assert CHAT.write_response(plain, "m", OLD) == CHAT.write_response(plain, "m")
    assert told([TextDelta("b"), plain], legacy=True) == told([TextDelta("b"), plain])


def test_who_asks_with_functions_is_known() -> None:
    assert wants_functions(read(ASKED))
    for none in ({**ASKED, "functions": None}, asking({"role": "user", "content": "a"})):
        assert not wants_functions(read(none))
    assert not wants_functions(replace(read(ASKED), issuer="gemini"))


def choices(body: dict[str, Any]) -> list[Any]:
    found: list[Any] = body["choices"]
    return found


def told(events: list[Event], *, legacy: bool = False) -> list[Any]:
    """The deltas that say something, and the word for the end, of a stream of ours."""
    writer = CHAT.writer("m", OLD if legacy else UNASKED)
    body = b"".join(map(writer.write_event, events))
    assert streamed(body)
    frames = [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: {")]
    found = [frame["choices"][0] for frame in frames]
    return [choice["delta"] or choice["finish_reason"] for choice in found]
