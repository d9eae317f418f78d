"""The Responses API, both ways: what goes out comes back, whatever the slicing."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from responses_rig import RESPONSES, sent, streamed
from strategies import responses_requests, responses_responses, told_in_pieces

from understudy.dialects.base import Asked
from understudy.dialects.json_access import encode
from understudy.messages.parts import Image, Opaque, Reasoning, Text, ToolCall
from understudy.messages.request import Request
from understudy.messages.response import Event, ReasoningDelta, Response, TextDelta, Usage


@given(responses_requests())
def test_a_request_comes_back_as_it_went_out(request: Request) -> None:
    inbound = RESPONSES.read_request(json.dumps(sent(request)).encode())
    assert inbound.request == request
    assert (inbound.model, inbound.stream) == ("m", False)


@given(responses_responses())
def test_an_answer_comes_back_as_it_went_out(response: Response) -> None:
    body = encode(RESPONSES.write_response(response, response.model))
    assert RESPONSES.read_response(body) == response


def written(response: Response, size: int) -> bytes:
    writer = RESPONSES.writer(response.model, Asked(id=response.id))
    return b"".join(writer.write_event(event) for event in told_in_pieces(response, size))


@given(responses_responses(streamed=True), st.integers(1, 9))
def test_a_stream_comes_back_as_it_went_out(response: Response, size: int) -> None:
    events = streamed(written(response, size))
    assert events[-1] == response
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == response.text
    assert "".join(e.text for e in events if isinstance(e, ReasoningDelta)) == response.reasoning
    assert tuple(e for e in events if isinstance(e, ToolCall)) == response.tool_calls


@given(responses_responses(streamed=True), st.lists(st.integers(0, 9000), max_size=8))
def test_any_slicing_of_a_stream_gives_the_same_events(
    response: Response, cuts: list[int]
) -> None:
    body = written(response, 3)
    edges = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    reader = RESPONSES.reader()
    events = [event for a, b in pairwise(edges) for event in reader.feed(body[a:b])]
    assert events + reader.end() == streamed(body)


def kinds(body: bytes) -> list[str]:
    lines = body.decode().splitlines()
    payloads = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    names = [line[7:] for line in lines if line.startswith("event: ")]
    assert [p["sequence_number"] for p in payloads] == list(range(len(payloads)))
    assert [p["type"] for p in payloads] == names
    return [name.removeprefix("response.") for name in names]


def test_every_item_is_opened_grown_and_closed() -> None:
    call = ToolCall("c", "f", '{"a":1}')
    answer = Response(
        parts=(Reasoning("hm"), Text("ab"), call), finish_reason="tool_calls", refusal="no"
    )
    writer = RESPONSES.writer("m")
    events: list[Event] = [ReasoningDelta("hm"), TextDelta("a"), TextDelta("b"), call, answer]
    assert kinds(b"".join(map(writer.write_event, events))) == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "refusal.delta",
        "refusal.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]


def test_an_answer_without_events_before_it_is_written_whole() -> None:
    call = ToolCall("c", "f")
    search = Opaque("responses", {"type": "web_search_call", "id": "ws"})
    picture = Image(b"\0", "image/png")
    parts = (search, Reasoning("hm"), Text("a"), picture, call)
    answer = Response(parts=parts, issuer="responses", finish_reason="length")
    *events, last = streamed(RESPONSES.writer("m").write_event(answer))
    assert events == [ReasoningDelta("hm"), TextDelta("a"), call]
    assert isinstance(last, Response)
    assert [type(part) for part in last.parts] == [type(part) for part in parts]
    assert last.finish_raw == "incomplete:max_output_tokens"


def test_another_vendors_answer_is_shown_without_what_is_bound_to_it() -> None:
    answer = Response(
        parts=(
            Reasoning("hm", "anthropic", "signature", "data"),
            Text("a", {"citations": [1]}),
            Opaque("anthropic", {"type": "server_tool_use"}),
            ToolCall("c", "f", "{}", "gemini", {"thoughtSignature": "s"}),
        ),
        usage=Usage(1, 2, cache_read=10, reasoning=3, cache_apart=True, reasoning_apart=True),
        finish_reason="other",
        finish_raw="pause_turn",
        issuer="anthropic",
        extra={"container": "x"},
    )
    body: Any = RESPONSES.write_response(answer, "m")
    thought, spoken, called = body["output"]
    assert thought["summary"] == [{"type": "summary_text", "text": "hm"}]
    assert "encrypted_content" not in thought
    assert spoken["content"][0]["text"] == "a"
    assert set(called) == {"id", "type", "status", "call_id", "name", "arguments"}
    assert (body["status"], body["incomplete_details"]) == ("completed", None)
    assert body["usage"]["input_tokens"] == 11
    assert body["usage"]["output_tokens"] == 5
    assert "container" not in body


def test_an_error_in_a_stream_has_no_terminator() -> None:
    reader, writer = RESPONSES.reader(), RESPONSES.writer("m")
    reader.feed(writer.write_event(TextDelta("a")) + writer.write_error(503, "no", "transient"))
    assert reader.failure is not None
    assert RESPONSES.read_error(reader.failure.body) == "no"
    assert not reader.done


def test_an_error_is_written_as_openai_would() -> None:
    assert RESPONSES.write_error(500, "it broke", "unknown") == {
        "error": {"message": "it broke", "type": "server_error", "param": None, "code": "unknown"}
    }
    assert RESPONSES.path("m", True) == "/responses"


def test_a_free_text_call_and_an_empty_thought_are_streamed() -> None:
    call = ToolCall("c", "f", "free", "responses", {"type": "custom_tool_call"})
    answer = Response(parts=(Reasoning(issuer="responses", data="x"), call), issuer="responses")
    *events, last = streamed(RESPONSES.writer("m").write_event(answer))
    assert isinstance(last, Response)
    assert [e for e in events if isinstance(e, ToolCall)] == list(last.tool_calls)
    (found,) = last.tool_calls
    assert (found.id, found.arguments) == ("c", "free")
