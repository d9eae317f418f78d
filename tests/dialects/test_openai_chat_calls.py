"""Tool calls in Chat Completions answers: however they come, they arrive whole."""

from __future__ import annotations

from typing import Any

import pytest
from chat_rig import (
    CHAT,
    answering,
    call_piece,
    chunk,
    final,
    sent,
    sse,
    streamed,
)

from understudy.dialects.calls import is_made_up
from understudy.messages.parts import (
    ToolCall,
)
from understudy.messages.request import (
    Request,
    assistant,
)


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        pytest.param(
            [
                [call_piece(0, id="c", name="f", arguments="")],
                [call_piece(1, id="d", name="g", arguments='{"b"')],
                [call_piece(0, arguments='{"a":1}')],
                [call_piece(1, arguments=":2}")],
            ],
            [("c", "f", '{"a":1}'), ("d", "g", '{"b":2}')],
            id="interleaved",
        ),
        pytest.param(
            [
                [call_piece(None, id="c", name="f", arguments="{}")],
                [call_piece(None, id="d", name="f", arguments="{}")],
            ],
            [("c", "f", "{}"), ("d", "f", "{}")],
            id="older Mistral: no index, whole calls",
        ),
        pytest.param(
            [
                [call_piece(None, id="c", name="f", arguments='{"a"')],
                [call_piece(None, arguments=":1}")],
            ],
            [("c", "f", '{"a":1}')],
            id="no index, in pieces",
        ),
        pytest.param(
            [
                [call_piece(0, id="c", name="f", arguments='{"a"')],
                [call_piece(0, id="c", name="f", arguments=":1}")],
            ],
            [("c", "f", '{"a":1}')],
            id="id and name repeated",
        ),
        pytest.param(
            [
                [call_piece(0, id="c", name="f", arguments="{}")],
                [call_piece(0, id="d", name="f", arguments="{}")],
            ],
            [("c", "f", "{}"), ("d", "f", "{}")],
            id="Google: every call has index 0",
        ),
        pytest.param(
            [[call_piece(0, id="c", name="f", arguments={"a": 1})]],
            [("c", "f", '{"a":1}')],
            id="arguments as an object",
        ),
        pytest.param(
            [[call_piece(0, id="c", name="f", arguments=None)], [call_piece(0)]],
            [("c", "f", "{}")],
            id="no arguments",
        ),
        pytest.param(
            [[call_piece(0, id="c", name="", arguments="")], [call_piece(1, id="d", name="g")]],
            [("d", "g", "{}")],
            id="a call without a name is none",
        ),
        pytest.param(
            [
                [call_piece(0, name="f", arguments='{"a":{}')],
                [call_piece(0, name="f", arguments="}")],
            ],
            [("", "f", '{"a":{}}')],
            id="the name repeated without an id",
        ),
        pytest.param(
            [[call_piece(0, id="c", name="get_"), call_piece(0, name="time", arguments="{}")]],
            [("c", "get_time", "{}")],
            id="a name in pieces",
        ),
    ],
)
def test_calls_in_pieces_arrive_whole(
    pieces: list[list[dict[str, Any]]], expected: list[tuple[str, str, str]]
) -> None:
    payloads = [chunk({"tool_calls": calls}) for calls in pieces]
    events = streamed(sse(*payloads, chunk({}, "tool_calls")))
    calls = [event for event in events if isinstance(event, ToolCall)]
    found = [("" if is_made_up(c.id) else c.id, c.name, c.arguments) for c in calls]
    assert found == expected
    assert events[:-1] == calls


def test_calls_without_ids_get_their_own_in_answers_too() -> None:
    calls = [call_piece(0, id="", name="f", arguments="{}")] * 2
    whole = CHAT.read_response(answering({"tool_calls": calls}, "tool_calls"))
    again = CHAT.read_response(answering({"tool_calls": calls}, "tool_calls"))
    stream = final(chunk({"tool_calls": calls[:1]}), chunk({"tool_calls": calls[1:]}))
    ids = [call.id for call in whole.tool_calls]
    assert len(set(ids)) == 2
    assert ids == [call.id for call in again.tool_calls]
    assert ids == [call.id for call in stream.tool_calls]


def test_a_custom_tool_keeps_its_free_text() -> None:
    call = {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
    whole = CHAT.read_response(answering({"tool_calls": [call]}, "tool_calls"))
    pieces = [
        {"index": 0, "id": "c", "type": "custom", "custom": {"name": "sql", "input": "SELECT"}},
        {"index": 0, "custom": {"input": " 1"}},
    ]
    stream = final(*(chunk({"tool_calls": [piece]}) for piece in pieces))
    for response in (whole, stream):
        (found,) = response.tool_calls
        assert (found.id, found.name, found.arguments) == ("c", "sql", "SELECT 1")
        body = sent(Request((assistant(found),)))
        assert body["messages"] == [{"role": "assistant", "content": None, "tool_calls": [call]}]


def test_the_old_function_call_streams_too() -> None:
    response = final(
        chunk({"function_call": {"name": "f", "arguments": ""}}),
        chunk({"function_call": {"arguments": '{"a":1}'}}),
        chunk({}, "function_call"),
    )
    (call,) = response.tool_calls
    assert (call.name, call.arguments, response.finish_reason) == ("f", '{"a":1}', "tool_calls")


def test_a_forced_tool_may_end_with_stop() -> None:  # OpenAI
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    response = CHAT.read_response(answering({"content": None, "tool_calls": [call]}, "stop"))
    assert (response.finish_reason, len(response.tool_calls)) == ("stop", 1)
