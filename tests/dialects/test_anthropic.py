"""The Messages dialect: laws, and answers that came whole."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_more import (
    anthropic_requests,
    anthropic_responses,
    cuts,
    pieces,
    spoken,
    words,
)
from wire_rig import encoded, heard

from understudy.dialects.anthropic import COUNT_TOKENS_PATH, Anthropic
from understudy.dialects.base import Dialect, Garbled, Inbound, WireError
from understudy.messages.parts import (
    Image,
    Json,
    Opaque,
    Part,
    Reasoning,
    Text,
)
from understudy.messages.request import (
    Request,
)
from understudy.messages.response import Response, Usage

DIALECT: Dialect = Anthropic()
MODEL = "claude-opus-4-8"


# Laws


@given(anthropic_requests(), st.booleans())
def test_a_request_survives_being_written_and_read(request: Request, stream: bool) -> None:
    body = encoded(DIALECT.write_request(request, MODEL, stream))
    assert DIALECT.read_request(body) == Inbound(MODEL, stream, request)


@given(anthropic_responses())
def test_a_response_survives_being_written_and_read(response: Response) -> None:
    body = encoded(DIALECT.write_response(response, response.model))
    assert DIALECT.read_response(body) == response


@given(anthropic_responses())
def test_a_response_survives_being_streamed_whole(response: Response) -> None:
    body = DIALECT.writer(response.model).write_event(response)
    assert heard(DIALECT, body)[0][-1] == response


@given(anthropic_responses(), spoken(st.builds(Reasoning, words)), st.data())
def test_a_streamed_answer_is_the_same_whatever_the_slicing(
    response: Response, parts: tuple[Part, ...], data: st.DataObject
) -> None:
    answer = replace(response, parts=parts, text="", reasoning="", tool_calls=())
    writer = DIALECT.writer(answer.model)
    told = pieces(parts)
    lines = b"".join(writer.write_event(event) for event in [*told, answer])
    body = b': comment\n\nevent: ping\ndata: {"type": "ping"}\n\n' + lines
    body = data.draw(st.sampled_from((body, body.replace(b"\n", b"\r\n"))))
    events, reader = heard(DIALECT, body, data.draw(cuts(len(body))))
    last = events.pop()
    assert isinstance(last, Response)
    assert events == told
    assert replace(last, id=answer.id) == answer  # the envelope was out before the id was known
    assert (reader.done, reader.failure) == (True, None)


# Answers


@pytest.mark.parametrize(
    ("raw", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "content_filter"),
        ("pause_turn", "other"),
        ("something_new", "other"),
        (None, "other"),
    ],
)
def test_every_stop_reason_has_its_finish(raw: str | None, finish: str) -> None:
    response = DIALECT.read_response(
        encoded({"type": "message", "content": [], "stop_reason": raw})
    )
    assert (response.finish_reason, response.finish_raw) == (finish, raw or "")


def test_an_answer_of_another_vendor_is_shown_with_its_thinking_and_claudes_way_of_counting() -> (
    None
):
    response = Response(
        parts=(
            Reasoning("hm", "openai", "enc"),
            Reasoning(issuer="openai", data="secret"),
            Text("hi", {"logprobs": 1}),
            Image(b"1", "image/png"),
            Opaque("openai", {"type": "x"}),
        ),
        finish_reason="other",
        usage=Usage(100, 50, cache_read=60, cache_write=10, reasoning=20),
        issuer="openai",
        extra={"system_fingerprint": "f"},
    )
    body = DIALECT.write_response(response, "m")
    assert body["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": ""},
        {"type": "text", "text": "hi"},
    ]
    assert body["usage"] == {
        "input_tokens": 30,
        "output_tokens": 50,
        "cache_read_input_tokens": 60,
        "cache_creation_input_tokens": 10,
    }
    assert (body["stop_reason"], body["model"]) == (None, "m")
    assert "system_fingerprint" not in body


def test_thinking_that_was_counted_apart_is_part_of_the_output_here() -> None:
    usage = Usage(10, 5, reasoning=7, tool_input=2, reasoning_apart=True)
    body = DIALECT.write_response(Response("hi", usage=usage), "m")
    assert body["usage"] == {"input_tokens": 12, "output_tokens": 12}


def test_a_refusal_is_shown_as_text() -> None:
    response = Response(refusal="I will not", finish_reason="content_filter")
    body = DIALECT.write_response(response, "m")
    assert (body["content"], body["stop_reason"]) == (
        [{"type": "text", "text": "I will not"}],
        "refusal",
    )
    assert b"I will not" in DIALECT.writer("m").write_event(response)


def test_an_end_turn_without_content_is_an_empty_answer_not_an_error() -> None:
    body = {
        "type": "message",
        "content": [],
        "stop_reason": "end_turn",
        "usage": {"output_tokens": 2},
    }
    response = DIALECT.read_response(encoded(body))
    assert (response.parts, response.finish_reason) == ((), "stop")
    assert response.blank


def test_blocks_without_sense_do_not_cost_the_answer() -> None:
    content: list[Json] = [7, {"type": "text"}, {"type": "tool_use", "id": "t", "name": ""}]
    body: dict[str, Json] = {
        "content": [*content, {"type": "text", "text": "hi"}, {"type": "text", "text": ""}]
    }
    assert DIALECT.read_response(encoded(body)).parts == (Text("hi"),)
    assert DIALECT.read_response(b'{"content": "hi"}').text == "hi"
    assert DIALECT.read_response(b'{"content": ""}').parts == ()


def test_provider_run_tools_are_no_tool_calls() -> None:
    content: list[Json] = [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        {"type": "advisor_tool_result", "tool_use_id": "a", "content": []},
    ]
    response = DIALECT.read_response(encoded({"content": content, "stop_reason": "end_turn"}))
    assert response.tool_calls == ()
    assert response.parts == tuple(Opaque("anthropic", value) for value in content)


ERROR: dict[str, Json] = {
    "type": "error",
    "error": {"type": "overloaded_error", "message": "Overloaded"},
}


def test_an_error_under_status_200_is_an_error() -> None:
    with pytest.raises(WireError) as caught:
        DIALECT.read_response(encoded(ERROR))
    assert caught.value.body == encoded(ERROR)
    assert DIALECT.read_error(encoded(ERROR)) == "Overloaded"


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"content": [', b"[]", b"null", b'"hi"'])
def test_what_is_no_message_is_garbled(body: bytes) -> None:
    with pytest.raises(Garbled):
        DIALECT.read_response(body)
    assert DIALECT.read_error(b"<html>") == ""
    assert DIALECT.read_error(b'{"Message":"User is not authorized"}') == "User is not authorized"


@pytest.mark.parametrize(
    ("status", "word"),
    [
        (401, "authentication_error"),
        (429, "rate_limit_error"),
        (503, "overloaded_error"),
        (500, "api_error"),
        (422, "invalid_request_error"),
    ],
)
def test_errors_are_written_in_the_words_of_the_dialect(status: int, word: str) -> None:
    body = DIALECT.write_error(status, "no", "transient")
    assert body == {"type": "error", "error": {"type": word, "message": "no", "code": "transient"}}
    assert DIALECT.read_error(encoded(body)) == "no"


def test_tokens_are_counted_beside_the_messages() -> None:
    dialect = Anthropic()
    assert f"{dialect.path('m', stream=True)}/count_tokens" == COUNT_TOKENS_PATH
    assert dialect.read_token_count(b'{"input_tokens": 14}') == 14
    with pytest.raises(WireError):
        dialect.read_token_count(encoded(ERROR))
    with pytest.raises(Garbled):
        dialect.read_token_count(b"{}")
