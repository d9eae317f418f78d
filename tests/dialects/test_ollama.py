"""The Ollama dialect: NDJSON, arguments as objects, ids and flags that the wire does not have."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_more import cuts, pieces, words
from strategies_others import ollama_requests, ollama_responses
from wire_rig import encoded, final, heard

from understudy.dialects.base import Dialect, Garbled, Inbound, Truncated, WireError
from understudy.dialects.ollama import Ollama
from understudy.messages.parts import (
    Image,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
)
from understudy.messages.request import (
    Request,
)
from understudy.messages.response import ReasoningDelta, Response, TextDelta, Usage

DIALECT: Dialect = Ollama()


def line(**fields: Any) -> bytes:
    return encoded({"model": "m", "created_at": "t", "done": False, **fields}) + b"\n"


def said(text: str) -> bytes:
    return line(message={"role": "assistant", "content": text})


LAST = line(
    message={"role": "assistant", "content": ""}, done=True, done_reason="stop", eval_count=2
)


# Laws


@given(ollama_requests(), st.booleans(), st.booleans())
def test_a_request_survives_being_written_and_read(
    request: Request, stream: bool, state_schema: bool
) -> None:
    body = encoded(Ollama(state_schema=state_schema).write_request(request, "m", stream))
    assert DIALECT.read_request(body) == Inbound("m", stream, request)


@given(ollama_responses())
def test_a_response_survives_being_written_and_read(response: Response) -> None:
    body = encoded(DIALECT.write_response(response, response.model))
    assert DIALECT.read_response(body) == response


@given(ollama_responses(), st.booleans(), st.data())
def test_a_streamed_answer_is_the_same_whatever_the_slicing(
    response: Response, whole: bool, data: st.DataObject
) -> None:
    bare = (
        replace(p, issuer="", extra={}) if isinstance(p, ToolCall) else p for p in response.parts
    )
    answer = response if whole else replace(response, parts=tuple(bare))
    writer = DIALECT.writer(answer.model)
    told = [] if whole else pieces(answer.parts)
    body = b"".join(writer.write_event(event) for event in [*told, answer])
    body = data.draw(st.sampled_from((body, body.replace(b"\n", b"\r\n\r\n"), body[:-1])))
    events, reader = heard(DIALECT, body, data.draw(cuts(len(body))))
    assert events[-1] == answer
    assert whole or events[:-1] == told
    assert (reader.done, reader.failure) == (True, None)


# Answers


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("stop", "stop"), ("length", "length"), ("load", "other"), (None, "other")],
)
def test_every_done_reason_has_its_finish(reason: str | None, finish: str) -> None:
    response = DIALECT.read_response(line(done=True, done_reason=reason))
    assert (response.finish_reason, response.finish_raw) == (finish, reason or "")


def test_a_stop_beside_calls_is_a_call_and_missing_ids_are_made_up() -> None:
    calls = [
        {"function": {"name": "f", "arguments": {"a": 1}}},
        {"function": {"name": "f", "arguments": '{"a": 2}'}},
        {"id": "x", "function": {"name": "g", "index": 2}},
        {"function": {"name": ""}},
    ]
    body = line(message={"content": "", "tool_calls": calls}, done=True, done_reason="stop")
    response = DIALECT.read_response(body)
    assert response.finish_reason == "tool_calls"
    told = [(call.name, call.arguments) for call in response.tool_calls]
    assert told == [("f", '{"a":1}'), ("f", '{"a": 2}'), ("g", "{}")]
    assert len({call.id for call in response.tool_calls}) == 3
    assert response == DIALECT.read_response(body)


def test_answers_of_api_generate_are_read_too() -> None:
    body = line(response="hi", thinking="hm", done=True, done_reason="stop", eval_count=3)
    response = DIALECT.read_response(body)
    assert response.parts == (Reasoning("hm", "ollama"), Text("hi"))
    assert response.usage == Usage(0, 3)  # a cached prompt is not counted
    assert final(DIALECT, line(response="h") + line(response="i") + LAST).text == "hi"


def test_no_message_is_an_empty_answer() -> None:
    for body in (b'{"done": true}', b'{"message": 7}', b'{"message": {"content": 7}}'):
        response = DIALECT.read_response(body)
        assert (response.parts, response.finish_reason, response.usage) == ((), "other", None)


def test_an_answer_of_another_vendor_is_shown_with_its_thinking() -> None:
    parts: tuple[Part, ...] = (
        Reasoning("hm", "anthropic", "sig"),
        Text("a"),
        Image(b"1"),
        Opaque("x", 1),
    )
    usage = Usage(1, 2, cache_read=4, reasoning=8, cache_apart=True, reasoning_apart=True)
    body = DIALECT.write_response(Response(parts=parts, usage=usage), "m")
    assert body["message"] == {"role": "assistant", "content": "a", "thinking": "hm"}
    assert (body["prompt_eval_count"], body["eval_count"], body["done_reason"]) == (5, 10, "stop")


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"message": ', b"[]", b"null"])
def test_what_is_no_answer_is_garbled(body: bytes) -> None:
    with pytest.raises(Garbled):
        DIALECT.read_response(body)


def test_errors_are_a_word() -> None:
    body = encoded(DIALECT.write_error(404, "model not found", "model_not_found"))
    assert body == b'{"error": "model not found"}'
    assert DIALECT.read_error(body) == "model not found"
    with pytest.raises(WireError):
        DIALECT.read_response(body)


# Streams


def test_thinking_text_and_calls_come_as_they_are_told() -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": {}}}
    body = (
        line(message={"content": "", "thinking": "h"})
        + line(message={"content": "", "thinking": "m"})
        + b"\n"
        + said("a")
        + said("b")
        + line(message={"content": "", "tool_calls": [call]})
        + LAST
        + b"nonsense after the end\n"
    )
    events, reader = heard(DIALECT, body)
    assert reader.feed(said("more")) == []
    told = [
        ReasoningDelta("h"),
        ReasoningDelta("m"),
        TextDelta("a"),
        TextDelta("b"),
        ToolCall("c", "f"),
    ]
    assert events[:-1] == told
    last = events[-1]
    assert isinstance(last, Response)
    assert last.parts == (Reasoning("hm", "ollama"), Text("ab"), ToolCall("c", "f"))
    assert (last.finish_reason, last.usage) == ("tool_calls", Usage(0, 2))


def test_equal_calls_in_different_lines_have_different_ids() -> None:
    call = line(message={"tool_calls": [{"function": {"name": "f"}}]})
    response = final(DIALECT, call + call + LAST)
    assert len({made.id for made in response.tool_calls}) == 2


@pytest.mark.parametrize(
    "body", [b"", b"\n\n", said("a"), said("a") + line(done=None), said("a") + b'{"mess']
)
def test_a_stream_that_is_not_done_was_cut_off(body: bytes) -> None:
    with pytest.raises(Truncated):
        heard(DIALECT, body)


@pytest.mark.parametrize("body", [b"<html>", b'{"mess', b"7\n", b'{\n"message":'])
def test_a_stream_of_something_else_is_garbled(body: bytes) -> None:
    with pytest.raises(Garbled):
        heard(DIALECT, body)


def test_an_answer_over_too_many_lines_is_refused() -> None:
    reader = DIALECT.reader()
    reader.feed(b"{\n" + b" " * (9 << 20) + b"\n")
    with pytest.raises(Garbled, match="more than"):
        reader.feed(b" " * (9 << 20) + b"\n")


def test_a_line_of_nonsense_does_not_cost_those_before_it() -> None:
    reader = DIALECT.reader()
    assert reader.feed(said("a") + b"nonsense\n" + LAST) == [TextDelta("a")]
    with pytest.raises(Garbled):
        reader.feed(LAST)
    with pytest.raises(Garbled):
        reader.end()
    assert reader.beats == 1


def test_an_error_line_keeps_what_came_before_it() -> None:
    writer = DIALECT.writer("m")
    body = writer.write_event(TextDelta("a")) + writer.write_error(500, "gone", "transient") + LAST
    events, reader = heard(DIALECT, body)
    assert (events, reader.done) == ([TextDelta("a")], False)
    assert reader.failure is not None
    assert DIALECT.read_error(reader.failure.body) == "gone"


@given(words, st.data())
def test_a_plain_answer_spread_over_lines_is_taken_too(text: str, data: st.DataObject) -> None:
    value = {"message": {"content": text}, "done": True, "done_reason": "stop"}
    body = json.dumps(value, indent=2).encode()
    events, _ = heard(DIALECT, body, data.draw(cuts(len(body))))
    assert events[0] == TextDelta(text)
