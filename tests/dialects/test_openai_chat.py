"""Chat Completions, both ways: what goes out comes back, whatever the slicing."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from chat_rig import (
    CHAT,
    sent,
    streamed,
)
from hypothesis import given
from hypothesis import strategies as st
from strategies import chat_requests, chat_responses, told_in_pieces

from understudy.dialects.json_access import encode
from understudy.dialects.openai_chat.writer import ChatWriter
from understudy.messages.parts import (
    Opaque,
    Reasoning,
    Text,
    ToolCall,
)
from understudy.messages.request import (
    Request,
)
from understudy.messages.response import ReasoningDelta, Response, TextDelta, Usage


@given(chat_requests())
def test_a_request_comes_back_as_it_went_out(request: Request) -> None:
    inbound = CHAT.read_request(json.dumps(sent(request)).encode())
    assert inbound.request == request
    assert (inbound.model, inbound.stream) == ("m", False)


@given(chat_responses())
def test_an_answer_comes_back_as_it_went_out(response: Response) -> None:
    assert CHAT.read_response(encode(CHAT.write_response(response, response.model))) == response


def written(response: Response, size: int) -> bytes:
    writer = ChatWriter(response.model, include_usage=True, id=response.id)
    return b"".join(writer.write_event(event) for event in told_in_pieces(response, size))


@given(chat_responses(streamed=True), st.integers(1, 9))
def test_a_stream_comes_back_as_it_went_out(response: Response, size: int) -> None:
    events = streamed(written(response, size))
    assert events[-1] == response
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == response.text
    assert "".join(e.text for e in events if isinstance(e, ReasoningDelta)) == response.reasoning
    assert tuple(e for e in events if isinstance(e, ToolCall)) == response.tool_calls


@given(chat_responses(streamed=True), st.lists(st.integers(0, 4000), max_size=8), st.booleans())
def test_any_slicing_of_a_stream_gives_the_same_events(
    response: Response, cuts: list[int], crlf: bool
) -> None:
    body = written(response, 3)
    if crlf:
        body = body.replace(b"\n", b"\r\n")
    edges = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    reader = CHAT.reader()
    events = [event for a, b in pairwise(edges) for event in reader.feed(body[a:b])]
    assert events + reader.end() == streamed(body)


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_comments_pings_many_data_lines_and_a_missing_last_line_change_nothing(size: int) -> None:
    body = (
        b"\xef\xbb\xbf: hello\r\n\r\n"
        b'data: {"choices":\r\ndata: [{"delta":{"content":"h\xc3\xa9"}}]}\r\n\r\n'
        b"data: ping\n\nevent: ping\ndata: {}\n\n"
        b'data: {"choices":[{"delta":{"content":"!"},"finish_reason":"stop"}]}\n\ndata: [DONE]'
    )
    *deltas, last = streamed(body, size)
    assert deltas == [TextDelta("hé"), TextDelta("!")]
    assert isinstance(last, Response)
    assert (last.text, last.finish_reason) == ("hé!", "stop")


def test_a_stream_opens_with_the_role_and_ends_with_done() -> None:
    writer = CHAT.writer("m")
    answer = Response(text="a", usage=Usage(1, 2))
    lines = (
        (writer.write_event(TextDelta("a")) + writer.write_event(answer)).decode().split("\n\n")
    )
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]
    assert lines[-2:] == ["data: [DONE]", ""]
    assert [c["choices"][0] for c in chunks] == [
        {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None},
        {"index": 0, "delta": {"content": "a"}, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": "stop"},
    ]
    assert all(c["object"] == "chat.completion.chunk" and c["model"] == "m" for c in chunks)


def test_an_answer_without_events_before_it_is_written_whole() -> None:
    call = ToolCall("c", "f")
    answer = Response(text="a", reasoning="hm", tool_calls=(call,), finish_reason="tool_calls")
    *events, last = streamed(CHAT.writer("m").write_event(answer))
    assert events == [ReasoningDelta("hm"), TextDelta("a"), call]
    assert isinstance(last, Response)
    assert last.usage is None


def test_an_error_in_a_stream_has_no_terminator() -> None:
    reader = CHAT.reader()
    writer = CHAT.writer("m")
    reader.feed(writer.write_event(TextDelta("a")) + writer.write_error(503, "no", "transient"))
    assert reader.failure is not None
    assert CHAT.read_error(reader.failure.body) == "no"


def test_another_vendors_answer_is_shown_without_what_is_bound_to_it() -> None:
    answer = Response(
        parts=(
            Reasoning("hm", "anthropic", "signature"),
            Text("a", {"citations": [1]}),
            Opaque("anthropic", {"type": "server_tool_use"}),
            ToolCall("c", "f", "{}", "gemini", {"thoughtSignature": "s"}),
        ),
        usage=Usage(1, 2, cache_read=10, cache_apart=True),
        finish_reason="other",
        finish_raw="pause_turn",
        issuer="anthropic",
        extra={"container": "x"},
    )
    body = CHAT.write_response(answer, "m")
    assert body["choices"] == [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "a",
                "refusal": None,
                "reasoning_content": "hm",
                "tool_calls": [
                    {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
                ],
            },
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]
    assert body["usage"] == {
        "prompt_tokens": 11,
        "completion_tokens": 2,
        "total_tokens": 13,
        "prompt_tokens_details": {"cached_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
    assert "container" not in body


def test_an_error_is_written_as_openai_would() -> None:
    assert CHAT.write_error(429, "slow down", "rate_limit") == {
        "error": {
            "message": "slow down",
            "type": "rate_limit_error",
            "param": None,
            "code": "rate_limit",
        }
    }
    assert CHAT.path("m", True) == "/chat/completions"
