"""Chat Completions: what is no answer, or stops being one."""

from __future__ import annotations

import pytest
from chat_rig import (
    CHAT,
    answering,
    call_piece,
    chunk,
    final,
    sse,
    streamed,
)

from understudy.dialects.base import Garbled, Truncated, WireError
from understudy.messages.parts import (
    ToolCall,
)
from understudy.messages.response import ReasoningDelta, TextDelta


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        (b'{"error":{"message":"no","code":429}}', 429, "no"),
        (b'{"error":{"message":"no","code":"rate_limit"}}', None, "no"),
        (b'{"error":{"message":"no","code":"503"},"choices":[]}', 503, "no"),
        (b'{"error":"no"}', None, "no"),
        (b'{"object":"error","message":"no","code":404}', 404, "no"),
        (b'{"detail":"no"}', None, "no"),
        (b'{"detail":[{"loc":["body"],"msg":"no"}]}', None, "no"),
        (b'{"error_code":"BAD_REQUEST","message":"no"}', None, "no"),
        (b'[{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}]', 400, "no"),
        (b'{"errors":[{"message":"no","code":1000}],"success":false}', None, "no"),
        (
            b'{"choices":[{"error":{"code":502,"message":"no"},"finish_reason":"error"}]}',
            None,
            "no",
        ),
        (  # Z.ai
            b'{"choices":[{"message":{"content":"par"},"finish_reason":"network_error"}]}',
            None,
            "the answer broke off: network_error",
        ),
    ],
)
def test_an_error_where_an_answer_should_be_is_one(
    body: bytes, status: int | None, sentence: str
) -> None:
    with pytest.raises(WireError) as caught:
        CHAT.read_response(body)
    assert (caught.value.body, caught.value.status) == (body, status)
    assert CHAT.read_error(body) == sentence


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"<html><body>502</body></html>", ""),
        (b"", ""),
        (b'{"error": {"mess', ""),
        (b"upstream connect error\nmore", "upstream connect error"),
        (b'event: error\ndata: {"error":{"message":"no"}}\n\n', "no"),
        (b"data: nothing", "data: nothing"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"[" * 100_000, ""),
        (b'"Unauthorized"', "Unauthorized"),
        (b'{"response":{"error":{"message":"no"}}}', "no"),
        (b"1", ""),
    ],
)
def test_an_error_body_gives_its_sentence_or_nothing(body: bytes, sentence: str) -> None:
    assert CHAT.read_error(body) == sentence


@pytest.mark.parametrize(
    "body", [b"<html>", b"", b'{"choices":[{"mess', b"{}", b"[]", b'"a"', b"1"]
)
def test_something_else_entirely_is_garbled(body: bytes) -> None:
    with pytest.raises(Garbled):
        CHAT.read_response(body)


@pytest.mark.parametrize("choices", [b"[]", b"null", b"[{}]", b'[{"message":null}]'])
def test_an_answer_without_choices_is_empty(choices: bytes) -> None:
    response = CHAT.read_response(b'{"choices":' + choices + b"}")
    assert (response.parts, response.finish_reason) == ((), "other")
    assert response.blank


ERRORS = [
    'data: {"error":{"message":"no","code":429}}\n\n',
    'event: error\ndata: {"error":{"message":"no","code":429}}\n\n',
    'event: error\ndata: {"message":"no","code":429}\n\n',
    'data: {"choices":[{"finish_reason":"error"}],"error":{"code":429,"message":"no"}}\n\n',
    '{"error":{"message":"no","code":429}}\n',
    'data: {"object":"error","message":"no","code":429}\n\n',
]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("size", [1, 10_000])
def test_an_error_inside_a_stream_fails_it_after_what_came_before(error: str, size: int) -> None:
    body = sse(chunk({"content": "a"}), ending=error) + sse(chunk({"content": "b"}))
    reader = CHAT.reader()
    events = [e for at in range(0, len(body), size) for e in reader.feed(body[at : at + size])]
    assert events == [TextDelta("a")]
    assert reader.failure is not None
    assert reader.failure.status == 429
    assert CHAT.read_error(reader.failure.body) == "no"
    assert not reader.done
    assert reader.end() == []


@pytest.mark.parametrize(
    "error",
    [
        'data: {"choices":[{"delta":{"content":""},"finish_reason":"error"}]}\n\n',
        'data: {"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}\n\n',
        "event: error\ndata: it broke\n\n",
        'data: {"error":{"message":"no"}}\n\n',
    ],
)
def test_an_error_before_any_content_fails_the_stream_too(error: str) -> None:
    with pytest.raises(WireError):
        streamed(error.encode())


def test_a_null_error_is_none() -> None:
    assert final(chunk({"content": "a"}, "stop", error=None)).text == "a"


def test_a_frame_that_is_cut_json_is_garbled_after_what_came_before() -> None:
    reader = CHAT.reader()
    assert reader.feed(sse(chunk({"content": "a"}), '{"choices":[{"del')) == [TextDelta("a")]
    with pytest.raises(Garbled, match="not JSON"):
        reader.feed(b"data: [DONE]\n\n")
    with pytest.raises(Garbled, match="not JSON"):
        reader.end()


def test_a_frame_that_is_cut_json_is_garbled_at_once_when_alone() -> None:
    reader = CHAT.reader()
    assert reader.feed(sse(chunk({"content": "a"}), ending="")) == [TextDelta("a")]
    with pytest.raises(Garbled, match="not JSON"):
        reader.feed(b'data: {"choices":[{"del\n\n')
    with pytest.raises(Garbled, match="not JSON"):
        reader.end()


@pytest.mark.parametrize("size", [1, 10_000])
def test_a_plain_answer_to_a_streaming_request_is_read(size: int) -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": "{}"}}
    message = {"content": "a", "reasoning_content": "hm", "tool_calls": [call]}
    body = b"\n" + answering(message, "tool_calls")
    *events, response = streamed(body, size)
    assert events == [ReasoningDelta("hm"), TextDelta("a"), ToolCall("c", "f")]
    assert response == CHAT.read_response(body)


def test_a_plain_error_to_a_streaming_request_fails_it() -> None:
    reader = CHAT.reader()
    assert reader.feed(b'{"error":{"message":"no","code":401}}') == []
    assert reader.end() == []
    assert reader.failure is not None
    assert reader.failure.status == 401


@pytest.mark.parametrize("body", [b"<html>502</html>", b'{"choices":[', b"hello\n\n"])
def test_a_stream_that_is_none_is_garbled(body: bytes) -> None:
    with pytest.raises(Garbled):
        streamed(body)


@pytest.mark.parametrize("body", [b"", b"\n\n", b": ping\n\n"])
def test_a_stream_without_events_is_no_answer(body: bytes) -> None:
    with pytest.raises((Truncated, Garbled)):
        streamed(body)


def test_nothing_follows_the_end() -> None:
    reader = CHAT.reader()
    body = sse(chunk({"content": "a"}, "stop"))
    assert len(reader.feed(body)) == 2
    assert reader.feed(sse(chunk({"content": "b"}))) == []
    assert reader.end() == []


def test_a_call_in_the_making_is_a_sign_of_life_before_it_is_an_event() -> None:
    reader = CHAT.reader()
    assert reader.feed(sse(chunk({"role": "assistant", "content": ""}), ending="")) == []
    assert reader.beats == 0
    assert reader.feed(sse(chunk({"tool_calls": [call_piece(0, name="f")]}), ending="")) == []
    assert reader.beats == 1


def test_an_endless_or_bottomless_error_body_gives_nothing() -> None:
    assert CHAT.read_error(b"data: " + b"x" * (17 * 1024 * 1024)).startswith("data: xxx")
    deep = b'{"error":' * 20 + b'"no"' + b"}" * 20
    assert CHAT.read_error(deep) == ""


def test_a_bottomless_chunk_is_garbled() -> None:
    reader = CHAT.reader()
    reader.feed(sse(chunk({"content": "a"}), ending=""))
    deep = b'{"choices":[{"delta":{"content":"b"}}],"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(Garbled):
        reader.feed(b"data: " + deep + b"\n\n")
