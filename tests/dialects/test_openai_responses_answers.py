"""Responses answers as vendors write them, whole and streamed, and what is no answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from responses_rig import (
    RESPONSES,
    answer,
    answering,
    event,
    final,
    message,
    said,
    sent,
    streamed,
)

from understudy.dialects.base import Asked, Garbled, Truncated, WireError
from understudy.messages.parts import Image, Json, Opaque, Reasoning, Text, ToolCall
from understudy.messages.request import Message, Request
from understudy.messages.response import ReasoningDelta, Response, TextDelta, Usage

CALL = {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}"}
TEXT = "response.output_text.delta"


CUT: dict[str, Any] = {
    "status": "incomplete",
    "incomplete_details": {"reason": "max_output_tokens"},
}


def thought(*summary: str, **fields: Any) -> dict[str, Any]:
    pieces = [{"type": "summary_text", "text": text} for text in summary]
    return {"type": "reasoning", "id": "rs", "summary": pieces, **fields}


@pytest.mark.parametrize(
    ("body", "finish", "raw"),
    [
        (answering(message(said("a"))), "stop", "completed"),
        (answering(CALL), "tool_calls", "completed"),
        (
            answering(
                CALL, status="incomplete", incomplete_details={"reason": "max_output_tokens"}
            ),
            "length",
            "incomplete:max_output_tokens",
        ),
        (
            answering(status="incomplete", incomplete_details={"reason": "content_filter"}),
            "content_filter",
            "incomplete:content_filter",
        ),
        (answering(status="incomplete"), "other", "incomplete"),
        (answering(status="cancelled"), "other", "cancelled"),
        (answering(status="queued"), "other", "queued"),
    ],
)
def test_the_status_says_how_it_ended(body: bytes, finish: str, raw: str) -> None:
    response = RESPONSES.read_response(body)
    assert (response.finish_reason, response.finish_raw) == (finish, raw)


def test_items_become_parts_in_order_and_go_back_as_they_came() -> None:
    search = {"type": "web_search_call", "id": "ws", "status": "completed"}
    picture = {"type": "image_generation_call", "id": "ig", "result": "AAEC"}
    items = [
        thought("h", "m"),
        search,
        message(said("a", annotations=[{"type": "url_citation"}]), said("b")),
        picture,
        CALL,
    ]
    response = RESPONSES.read_response(answering(*items))
    assert (response.text, response.reasoning) == ("ab", "hm")
    assert [type(part) for part in response.parts] == [Reasoning, Opaque, Text, Image, ToolCall]
    history = Request((Message("assistant", response.parts),), issuer="responses")
    assert sent(history)["input"] == items


@pytest.mark.parametrize(
    ("item", "text", "data"),
    [
        (thought(), "", ""),
        (thought(encrypted_content="x"), "", "x"),
        (thought(content=[{"type": "reasoning_text", "text": "hm"}]), "hm", ""),
        (
            thought("short", content=[{"type": "reasoning_text", "text": "long"}]),
            "short",
            "",
        ),
    ],
)
def test_reasoning_is_its_summary_or_itself(item: dict[str, Any], text: str, data: str) -> None:
    (part,) = RESPONSES.read_response(answering(item)).parts
    assert isinstance(part, Reasoning)
    assert (part.text, part.data, part.issuer) == (text, data, "responses")


def test_a_refusal_is_no_text_but_an_answer() -> None:
    refused = message({"type": "refusal", "refusal": "I can't"})
    whole = RESPONSES.read_response(answering(refused))
    stream = final(
        event("response.output_item.added", output_index=0, item=message()),
        event("response.refusal.delta", output_index=0, delta="I "),
        event("response.refusal.delta", output_index=0, delta="can't"),
        event("response.completed", response=answer()),
    )
    for response in (whole, stream):
        assert (response.text, response.refusal, response.blank) == ("", "I can't", "")


def test_calls_keep_their_ids_and_free_text_and_lose_nothing_else() -> None:
    custom = {"type": "custom_tool_call", "id": "x", "call_id": "d", "name": "g", "input": "free"}
    nameless = {"type": "function_call", "call_id": "e", "name": "", "arguments": ""}
    unnamed = {"type": "function_call", "name": "h", "arguments": ""}
    body = answering(CALL, custom, nameless, unnamed)
    first, second, third = RESPONSES.read_response(body).tool_calls
    assert (first.id, first.name, first.arguments) == ("c", "f", "{}")
    assert (second.id, second.name, second.arguments) == ("d", "g", "free")
    assert (third.name, third.arguments) == ("h", "{}")
    assert third.id
    assert third.id == RESPONSES.read_response(body).tool_calls[2].id


def test_usage_has_its_portions() -> None:
    usage = {
        "input_tokens": 9,
        "output_tokens": 8,
        "input_tokens_details": {"cached_tokens": 7, "cache_write_tokens": 6},
        "output_tokens_details": {"reasoning_tokens": 5},
    }
    assert RESPONSES.read_response(answering(usage=usage)).usage == Usage(9, 8, 7, 6, 5)
    assert RESPONSES.read_response(answering(usage=None)).usage is None


def test_the_echo_of_the_request_is_kept_where_it_says_something() -> None:
    response = RESPONSES.read_response(
        answering(tools=[], temperature=0.5, metadata={}, top_p=None)
    )
    assert response.extra == {"temperature": 0.5}
    assert RESPONSES.write_response(response, "m")["temperature"] == 0.5


# Streams


def test_deltas_arrive_and_the_terminal_object_is_the_answer() -> None:
    done = answer(thought("hm"), message(said("ab")))
    events = streamed(
        event("response.created", response=answer(status="in_progress"))
        + event("response.reasoning_summary_text.delta", output_index=0, delta="hm")
        + event(TEXT, output_index=1, delta="a", logprobs=[], obfuscation="xyz")
        + event(TEXT, output_index=1, delta="b")
        + event("response.completed", response=done)
    )
    assert events == [
        ReasoningDelta("hm"),
        TextDelta("a"),
        TextDelta("b"),
        RESPONSES.read_response(json.dumps(done).encode()),
    ]


def test_what_is_not_understood_is_passed_over() -> None:
    events = streamed(
        event("response.queued", response=answer(status="queued"))
        + event("keepalive", sequence_number=3)
        + b": ping\n\n"
        + event("response.output_text_annotation.added", annotation={})
        + event("response.apply_patch_call_operation_diff.delta", output_index=0, delta="x")
        + event(TEXT, output_index=0, delta="a")
        + event("response.completed", response=answer(message(said("a"))))
        + b"data: [DONE]\n\n"
    )
    assert events[:-1] == [TextDelta("a")]


def test_event_lines_are_not_needed() -> None:  # Bedrock
    body = event(TEXT, delta="a") + event("response.completed", response=answer(created_at=1.5))
    bare = b"".join(line for line in body.splitlines(True) if not line.startswith(b"event:"))
    *_, response = streamed(bare)
    assert isinstance(response, Response)
    assert response.text == "a"


@pytest.mark.parametrize("terminal", [answer(), {}, {"output": []}, None])
def test_the_answer_is_put_together_when_the_terminal_object_is_bare(terminal: Any) -> None:
    item: dict[str, Any] = {"type": "function_call", "call_id": "c", "name": "f"}
    *deltas, response = streamed(
        event("response.created", response=answer(status="in_progress"))
        + event("response.output_item.added", output_index=0, item=thought())
        + event("response.reasoning_text.delta", output_index=0, delta="hm")
        + event(TEXT, output_index=1, delta="a")
        + event(TEXT, output_index=1, delta="b")
        + event("response.output_item.added", output_index=2, item={**item, "arguments": ""})
        + event("response.function_call_arguments.delta", output_index=2, delta='{"a"')
        + event("response.function_call_arguments.delta", output_index=2, delta=":1}")
        + event("response.output_item.done", output_index=3, item={**CALL, "call_id": "d"})
        + event("response.completed", response=terminal)
    )
    assert isinstance(response, Response)
    assert (response.reasoning, response.text) == ("hm", "ab")
    assert [(c.id, c.arguments) for c in response.tool_calls] == [("c", '{"a":1}'), ("d", "{}")]
    assert (response.finish_reason, response.id, response.model) == ("tool_calls", "r", "m")
    assert deltas[3:] == list(response.tool_calls)


def test_text_without_deltas_is_told_at_the_end() -> None:
    done = answer(thought(content=[{"text": "hm"}]), message(said("abc")))
    body = event(TEXT, output_index=1, delta="ab") + event("response.completed", response=done)
    assert streamed(body)[:-1] == [TextDelta("ab"), ReasoningDelta("hm"), TextDelta("c")]


def test_of_reasoning_and_its_summary_the_first_is_told() -> None:
    body = (
        event("response.reasoning_text.delta", output_index=0, delta="long")
        + event("response.reasoning_summary_text.delta", output_index=0, delta="short")
        + event("response.completed", response=answer())
    )
    assert streamed(body)[0] == ReasoningDelta("long")
    assert len(streamed(body)) == 2


@pytest.mark.parametrize(
    ("kind", "fields", "finish"),
    [
        ("response.incomplete", {"status": "incomplete"}, "other"),
        ("response.incomplete", CUT, "length"),
        ("response.completed", {"status": "in_progress"}, "stop"),
        ("response.cancelled", {}, "other"),
    ],
)
def test_the_terminal_event_says_how_it_ended(
    kind: str, fields: dict[str, Any], finish: str
) -> None:
    body = event(kind, response=answer(message(said("a")), **fields))
    assert final(body).finish_reason == finish


# What is no answer


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"error":{"message":"no","code":429}}', 429),
        (b'{"code":"invalid-argument","error":"no"}', None),
        (answering(status="failed", error={"code": "server_error", "message": "no"}), None),
        (answering(status="failed", error=None), None),
    ],
)
def test_an_error_where_an_answer_should_be_is_one(body: bytes, status: int | None) -> None:
    with pytest.raises(WireError) as caught:
        RESPONSES.read_response(body)
    assert (caught.value.body, caught.value.status) == (body, status)


@pytest.mark.parametrize("body", [b"<html>", b'{"output":[', b"{}", b'{"choices":[]}', b"[]"])
def test_something_else_entirely_is_garbled(body: bytes) -> None:
    with pytest.raises(Garbled):
        RESPONSES.read_response(body)


def test_an_answer_without_output_is_empty() -> None:
    assert RESPONSES.read_response(answering()).blank


@pytest.mark.parametrize(
    "error",
    [
        event("error", code="server_error", message="no"),
        event("error", error={"code": "server_error", "message": "no"}),
        event("response.failed", response=answer(status="failed", error={"message": "no"})),
        b'data: {"error":{"message":"no"}}\n\n',
        b"event: error\ndata: no\n\n",
        b'{"error":{"message":"no"}}\n',
    ],
)
@pytest.mark.parametrize("size", [1, 10_000])
def test_an_error_inside_a_stream_fails_it_after_what_came_before(error: bytes, size: int) -> None:
    body = event(TEXT, delta="a") + error + event(TEXT, delta="b")
    reader = RESPONSES.reader()
    events = [e for at in range(0, len(body), size) for e in reader.feed(body[at : at + size])]
    assert events == [TextDelta("a")]
    assert reader.failure is not None
    assert RESPONSES.read_error(reader.failure.body) == "no"
    assert (reader.done, reader.end()) == (False, [])


@pytest.mark.parametrize(
    "ending", [b"", b"data: [DONE]\n\n", b"event: response.com", b'data: {"type":"response.comple']
)
def test_a_stream_without_its_terminal_event_is_truncated(ending: bytes) -> None:
    with pytest.raises(Truncated):
        streamed(event(TEXT, delta="a") + ending)


@pytest.mark.parametrize("size", [1, 10_000])
def test_a_plain_answer_to_a_streaming_request_is_read(size: int) -> None:
    body = answering(message(said("a")))
    assert streamed(body, size) == [TextDelta("a"), RESPONSES.read_response(body)]


def test_a_stream_that_is_none_is_garbled() -> None:
    with pytest.raises(Garbled):
        streamed(b"<html>502</html>")


def test_a_call_in_the_making_is_a_sign_of_life_before_it_is_an_event() -> None:
    reader = RESPONSES.reader()
    assert reader.feed(event("response.created", response=answer())) == []
    assert reader.beats == 0
    assert reader.feed(event("response.function_call_arguments.delta", delta="{")) == []
    assert reader.beats == 1


def test_a_bottomless_event_is_garbled() -> None:
    deep = b'{"type":"x","y":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(Garbled):
        RESPONSES.reader().feed(b"data: " + deep + b"\n\n")


def test_half_of_a_surrogate_pair_does_not_cost_the_answer() -> None:
    half = b'data: {"type":"response.output_text.delta","delta":"a\\ud83d"}\n\n'
    body = half + event(TEXT, delta="") + event("response.completed", response=answer())
    assert streamed(body)[:-1] == [TextDelta("a")]


def test_a_message_or_a_thought_that_opens_is_no_content_yet() -> None:
    reader = RESPONSES.reader()
    for item in (message(), thought()):
        reader.feed(event("response.output_item.added", output_index=0, item=item))
    assert reader.beats == 0
    reader.feed(event("response.output_item.added", output_index=1, item=CALL))
    assert reader.beats == 1


def test_a_picture_that_was_not_painted_is_kept_as_it_is() -> None:
    failed: dict[str, Json] = {"type": "image_generation_call", "id": "ig", "result": None}
    assert RESPONSES.read_response(answering(failed)).parts == (Opaque("responses", failed),)


def test_changed_reasoning_is_not_written_as_it_came() -> None:
    (part,) = RESPONSES.read_response(answering(thought("hm", encrypted_content="x"))).parts
    assert isinstance(part, Reasoning)
    changed = Reasoning("no", "responses", data="x", extra=part.extra)
    (item,) = sent(Request((Message("assistant", (changed,)),)))["input"]
    assert item == {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "no"}],
        "encrypted_content": "x",
    }


def test_what_others_thought_in_secret_is_no_item() -> None:
    answer = Response(parts=(Reasoning(issuer="anthropic", data="secret"), Text("hi")))
    assert [item["type"] for item in RESPONSES.write_response(answer, "m")["output"]] == [
        "message"
    ]


def test_no_two_items_of_a_conversation_have_one_id() -> None:
    def ids(answer: str, *, stream: bool) -> list[str]:
        said = Response(parts=(Text("hi"), ToolCall("c", "f")), id=answer)
        body = RESPONSES.write_response(said, "m")
        if stream:
            writer = RESPONSES.writer("m", Asked(id=answer))
            told = b"".join(map(writer.write_event, (TextDelta("hi"), said.tool_calls[0], said)))
            body = json.loads(told.rsplit(b"data: ", 1)[1])["response"]
        return [item["id"] for item in body["output"]]

    assert ids("resp_1", stream=False) == ids("resp_1", stream=True)
    assert len({*ids("resp_1", stream=False), *ids("resp_2", stream=False)}) == 4
