"""Messages streams, as careful and as careless servers send them."""

from __future__ import annotations

from typing import Any

import pytest
from wire_rig import encoded, final, heard

from understudy.dialects.anthropic import Anthropic
from understudy.dialects.base import Dialect, Garbled, Truncated
from understudy.messages.parts import (
    Json,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
)
from understudy.messages.request import (
    Request,
    assistant,
    user,
)
from understudy.messages.response import Event, ReasoningDelta, Response, TextDelta, Usage

DIALECT: Dialect = Anthropic()
MODEL = "claude-opus-4-8"


def frames(*events: dict[str, Any]) -> bytes:
    return b"".join(b"event: %s\ndata: %s\n\n" % (e["type"].encode(), encoded(e)) for e in events)


START: dict[str, Any] = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": 12, "output_tokens": 1, "cache_read_input_tokens": 3},
    },
}
ERROR: dict[str, Json] = {
    "type": "error",
    "error": {"type": "overloaded_error", "message": "Overloaded"},
}
STOP: dict[str, Any] = {"type": "message_stop"}


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def ending(reason: str | None, **usage: int) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


HELLO = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Grüß"})


def test_counts_at_the_end_replace_those_at_the_start() -> None:
    body = frames(START, *HELLO, ending("end_turn", input_tokens=3460, output_tokens=9), STOP)
    response = heard(DIALECT, body)[0][-1]
    assert isinstance(response, Response)
    assert response.usage == Usage(3460, 9, cache_read=3, cache_apart=True)


def test_a_tool_call_arrives_whole_whatever_its_pieces() -> None:
    json_pieces = ["", '{"city": "Pa', 'ris"}']
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in json_pieces]
    start = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    bare = {"type": "tool_use", "id": "t2", "name": "g", "input": {}}
    body = frames(
        START, *HELLO, *block(1, start, *deltas), *block(2, bare), ending("tool_use"), STOP
    )
    events, _ = heard(DIALECT, body)
    first, second = ToolCall("t1", "f", '{"city": "Paris"}'), ToolCall("t2", "g")
    assert events[:-1] == [TextDelta("Grüß"), first, second]
    last = events[-1]
    assert isinstance(last, Response)
    assert last.tool_calls == (first, second)


def test_arguments_cut_by_the_limit_do_not_cost_the_call() -> None:
    start = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    cut = block(0, start, {"type": "input_json_delta", "partial_json": '{"a": "b'})
    events, _ = heard(DIALECT, frames(START, *cut, ending("max_tokens"), STOP))
    assert events[0] == ToolCall("t1", "f", '{"a": "b')
    history = Request(messages=(user("a"), assistant(ToolCall("t1", "f", '{"a": "b'))))
    again: dict[str, Any] = DIALECT.write_request(history, MODEL, stream=False)
    assert again["messages"][1]["content"][0]["input"] == {}


def test_thinking_citations_and_provider_run_tools_are_gathered() -> None:
    thinking = block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "signature_delta", "signature": "sig"},
    )
    search = block(
        1,
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "input_json_delta", "partial_json": '{"query": "q"}'},
    )
    cited = block(
        2,
        {"type": "text", "text": "", "citations": []},
        {"type": "citations_delta", "citation": {"url": "u"}},
        {"type": "text_delta", "text": "hi"},
        {"type": "future_delta", "mood": "good"},
    )
    hidden = block(3, {"type": "redacted_thinking", "data": "x"})
    events, _ = heard(
        DIALECT, frames(START, *thinking, *search, *cited, *hidden, ending("end_turn"), STOP)
    )
    assert events[:2] == [ReasoningDelta("hm"), TextDelta("hi")]
    last = events[2]
    assert isinstance(last, Response)
    assert last.parts == (
        Reasoning("hm", "anthropic", "sig"),
        Opaque(
            "anthropic",
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
        ),
        Text("hi", {"citations": [{"url": "u"}], "mood": "good"}),
        Reasoning(issuer="anthropic", data="x"),
    )


def test_careless_servers_are_understood() -> None:
    """Text in the start, no start, no stop of a block, unknown events, another's terminator."""
    body = frames(
        START,
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": "a"},
        },
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "thinking", "thinking": "b"},
        },
        {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "c"}},
        {"type": "content_block_stop", "index": 9},
        {"type": "weather", "sunny": True},
        {
            "type": "content_block_start",
            "index": 3,
            "content_block": {"type": "tool_use", "id": "t", "name": "f"},
        },
        ending("end_turn"),
    )
    body += b"data: [DONE]\n\ndata: " + encoded(STOP) + b"\n\ndata: nonsense after the end\n\n"
    events, reader = heard(DIALECT, body)
    told = [TextDelta("a"), ReasoningDelta("b"), TextDelta("c"), ToolCall("t", "f")]
    assert (events[:-1], reader.done) == (told, True)
    last = events[-1]
    assert isinstance(last, Response)
    assert last.parts == (Text("a"), Reasoning("b"), Text("c"), ToolCall("t", "f"))


def test_a_strange_event_is_passed_over_whatever_its_fields_are() -> None:
    strange = {"type": "weather", "index": "north", "delta": {"type": "rain", "text": 5}}
    response = heard(DIALECT, frames(START, strange, *HELLO, ending("end_turn"), STOP))[0][-1]
    assert isinstance(response, Response)
    assert response.parts == (Text("Grüß"),)


def test_a_strange_delta_says_nothing_over_what_the_known_ones_said() -> None:
    strange = {"type": "mood_delta", "text": "gone", "mood": "good"}
    said = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "a"}, strange)
    response = heard(DIALECT, frames(START, *said, ending("end_turn"), STOP))[0][-1]
    assert isinstance(response, Response)
    assert response.parts == (Text("a", {"mood": "good"}),)


def test_after_a_fallback_the_model_that_served_is_named() -> None:
    fell = block(0, {"type": "fallback", "to": {"model": "claude-sonnet-4-6"}})
    response = heard(DIALECT, frames(START, *fell, *HELLO, ending("end_turn"), STOP))[0][-1]
    assert isinstance(response, Response)
    assert (response.model, response.text) == ("claude-sonnet-4-6", "Grüß")


def test_blocks_that_came_with_the_envelope_are_the_answer_too() -> None:
    """So Claude goes on when a program of its own asks the client for one more tool."""
    ran: dict[str, Json] = {
        "type": "code_execution_tool_result",
        "tool_use_id": "s",
        "content": {},
    }
    call = {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}}
    said = {"type": "text", "text": "Now"}
    message = {**START["message"], "content": [ran, said, call], "stop_reason": "tool_use"}
    events, reader = heard(DIALECT, frames({**START, "message": message}, STOP))
    wanted = ToolCall("t1", "f", '{"a":1}')
    assert events[:-1] == [TextDelta("Now"), wanted]
    last = events[-1]
    assert isinstance(last, Response)
    assert last.parts == (Opaque("anthropic", ran), Text("Now"), wanted)
    assert (last.finish_reason, reader.beats > 0) == ("tool_calls", True)


def test_an_event_is_known_by_its_name_where_its_data_has_no_type() -> None:
    events = [START, *HELLO, ending("end_turn", output_tokens=2), STOP]
    body = b"event: ping\ndata: {}\n\nevent: ping\ndata: still here\n\n"
    for event in events:
        bare = {key: value for key, value in event.items() if key != "type"}
        body += b"event: %s\ndata: %s\n\n" % (event["type"].encode(), encoded(bare))
    response = final(DIALECT, body)
    assert (response.text, response.finish_reason, response.id) == ("Grüß", "stop", "msg_1")


@pytest.mark.parametrize("lost", [{}, {"id": None}, {"id": ""}])
@pytest.mark.parametrize("streaming", [True, False])
def test_a_call_without_an_id_gets_one_of_its_own(
    lost: dict[str, Any], *, streaming: bool
) -> None:
    calls = [{"type": "tool_use", "name": "f", "input": {}, **lost} for _ in "ab"]
    if streaming:
        blocks = [*block(0, calls[0]), *block(1, calls[1])]
        events, _ = heard(DIALECT, frames(START, *blocks, ending("tool_use"), STOP))
        told = [event for event in events if isinstance(event, ToolCall)]
    else:
        whole = {**START["message"], "content": calls, "stop_reason": "tool_use"}
        events, told = [DIALECT.read_response(encoded(whole))], None
    last = events[-1]
    assert isinstance(last, Response)
    assert [call.name for call in last.tool_calls] == ["f", "f"]
    assert len({call.id for call in last.tool_calls if call.id}) == 2
    assert told is None or tuple(told) == last.tool_calls


def test_a_stream_beats_with_every_piece_of_content_and_with_nothing_else() -> None:
    call = block(
        0, {"type": "tool_use", "id": "t", "name": "f", "input": {}}, {"type": "input_json_delta"}
    )
    silent = block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": ""})
    mute = block(2, {"type": "thinking"}, {"type": "thinking_delta", "thinking": ""})
    told = block(3, {"type": "text", "text": ""}, {"type": "text_delta", "text": "a"})
    reader = DIALECT.reader()
    beats = []
    for frame in [START, {"type": "ping"}, *call, *silent, *mute, *told]:
        reader.feed(frames(frame))
        beats.append(reader.beats)
    assert beats == [0, 0, 1, 2, 2, *[2] * 7, 3, 3]


def test_the_cut_input_of_a_provider_run_tool_is_kept_as_text() -> None:
    start: dict[str, Json] = {"type": "server_tool_use", "id": "s", "name": "web_search"}
    cut = block(0, start, {"type": "input_json_delta", "partial_json": '{"query": "q'})
    part = final(DIALECT, frames(START, *cut, ending("max_tokens"), STOP)).parts[0]
    assert part == Opaque("anthropic", {**start, "input": '{"query": "q'})


def test_half_a_surrogate_pair_does_not_break_the_stream() -> None:
    half = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":'
    half += b'{"type":"text_delta","text":"a\\ud83d"}}\n\n'
    events, _ = heard(DIALECT, frames(START) + half + frames(ending("end_turn"), STOP))
    assert events[0] == TextDelta("a")


@pytest.mark.parametrize(
    "payload",
    [
        b"event: error\ndata: " + encoded(ERROR),
        b"data: " + encoded(ERROR),
        b'data: {"error": {"message": "Overloaded"}}',
        b'event: error\ndata: {"message": "Overloaded"}',
        b'data: {"error": "Overloaded", "index": "?"}',
    ],
)
def test_an_error_event_keeps_what_came_before_it(payload: bytes) -> None:
    body = frames(START, *HELLO) + payload + b"\n\n" + frames(ending("end_turn"), STOP)
    events, reader = heard(DIALECT, body)
    assert (events, reader.done) == ([TextDelta("Grüß")], False)
    assert reader.failure is not None
    assert DIALECT.read_error(reader.failure.body) == "Overloaded"


@pytest.mark.parametrize(
    "body", [b"", b"\n\n", frames(START, *HELLO), frames(START, *HELLO, ending("end_turn"))]
)
def test_a_stream_without_message_stop_is_no_answer(body: bytes) -> None:
    with pytest.raises(Truncated):
        heard(DIALECT, body)


@pytest.mark.parametrize(
    "body", [b"data: {oops\n\n", b"data: 7\n\n", b'data: {"type": 7}\n\n', b'{"content": [']
)
def test_a_stream_of_something_else_is_garbled(body: bytes) -> None:
    with pytest.raises(Garbled):
        heard(DIALECT, body)


def test_a_plain_answer_to_a_streaming_request_is_told_as_events() -> None:
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hi"}]
    body = encoded({"type": "message", "content": content, "stop_reason": "end_turn"})
    events, reader = heard(DIALECT, body, [1, 9])
    assert events[:-1] == [ReasoningDelta("hm"), TextDelta("hi")]
    assert reader.done
    failed, reader = heard(DIALECT, encoded(ERROR))
    assert failed == []
    assert reader.failure is not None


def test_a_written_stream_has_the_envelope_the_blocks_and_the_terminator_in_order() -> None:
    writer = DIALECT.writer("m")
    call = ToolCall("t", "f", '{"a":1}')
    usage = Usage(3, 5)
    events: list[Event] = [ReasoningDelta("hm"), TextDelta("h"), TextDelta("i"), call]
    body = b"".join(map(writer.write_event, events))
    body += writer.write_event(Response("hi", (call,), "hm", "tool_calls", usage))
    named = [line[7:].decode() for line in body.splitlines() if line.startswith(b"event: ")]
    grown = ["content_block_start", "content_block_delta", "content_block_stop"]
    text = [
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
    ]
    assert named == ["message_start", *grown, *text, *grown, "message_delta", "message_stop"]


def test_an_error_in_a_written_stream_is_no_end() -> None:
    writer = DIALECT.writer("m")
    body = writer.write_event(TextDelta("h")) + writer.write_error(503, "gone", "transient")
    events, reader = heard(DIALECT, body)
    assert (events, reader.done) == ([TextDelta("h")], False)
    assert reader.failure is not None
    assert b"message_stop" not in body


def test_what_no_delta_told_is_written_with_the_end() -> None:
    writer = DIALECT.writer("m")
    call, opaque = ToolCall("t", "f"), Opaque("anthropic", {"type": "server_tool_use", "id": "s"})
    response = Response(
        parts=(Text("hi"), call, opaque), finish_raw="tool_use", issuer="anthropic"
    )
    body = writer.write_event(TextDelta("hi")) + writer.write_event(response)
    last = heard(DIALECT, body)[0][-1]
    assert isinstance(last, Response)
    assert last.parts == response.parts
