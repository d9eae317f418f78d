"""Whatever bytes come, reading them ends in an answer or in one of three errors, never another."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import chat_responses, json_values, responses_responses, told_in_pieces

from understudy.core.errors import InvalidRequest, ProviderError
from understudy.core.faults import Fault
from understudy.dialects.base import Dialect, Garbled, Truncated, WireError
from understudy.dialects.json_access import encode
from understudy.dialects.openai_chat import OpenAIChat
from understudy.dialects.openai_responses import OpenAIResponses
from understudy.messages.parts import Json
from understudy.messages.response import Event

CHAT, RESPONSES = OpenAIChat(), OpenAIResponses()
BOTH = pytest.mark.parametrize("dialect", [CHAT, RESPONSES], ids=["chat", "responses"])
ANSWERS = {
    "openai": chat_responses(streamed=True),
    "responses": responses_responses(streamed=True),
}
SHAPES: dict[str, dict[str, Any]] = {
    "openai": {
        "id": "r",
        "choices": [
            {
                "index": 0,
                "delta": {"content": "a", "tool_calls": [{"index": 0, "function": {}}]},
                "message": {"content": [{"type": "text", "text": "a"}], "tool_calls": [{}]},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1}},
        "messages": [{"role": "assistant", "content": "a", "tool_calls": [{"id": "c"}]}],
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "response_format": {"type": "json_schema", "json_schema": {"schema": {}}},
    },
    "responses": {
        "type": "response.completed",
        "response": {"status": "completed", "output": [{"type": "message", "content": [{}]}]},
        "output": [{"type": "function_call", "name": "f"}, {"type": "reasoning", "summary": [{}]}],
        "output_index": 0,
        "item": {"type": "message"},
        "delta": "a",
        "usage": {"input_tokens": 1},
        "input": [{"role": "user", "content": [{"type": "input_image", "image_url": "u"}]}],
        "tools": [{"type": "function", "name": "f"}],
        "text": {"format": {"type": "json_schema"}},
    },
}


@st.composite
def bent(draw: st.DrawFn, value: Json) -> Json:
    """A value with one of its fields, however deep, replaced by something else."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 3)) == 0:
        return draw(json_values)
    if isinstance(value, dict):
        key = draw(st.sampled_from(sorted(value)))
        return {**value, key: draw(bent(value[key]))}
    index = draw(st.integers(0, len(value) - 1))
    return [*value[:index], draw(bent(value[index])), *value[index + 1 :]]


def outcome(dialect: Dialect, chunks: list[bytes]) -> tuple[list[Event], str]:
    """The events, and how it ended."""
    reader = dialect.reader()
    events: list[Event] = []
    try:
        for chunk in chunks:
            events += reader.feed(chunk)
        events += reader.end()
    except (Garbled, Truncated) as error:
        return events, type(error).__name__
    return events, "failed" if reader.failure else "done"


@BOTH
@given(st.data())
def test_a_bent_answer_is_read_or_refused(dialect: Dialect, data: st.DataObject) -> None:
    body = encode(data.draw(bent(SHAPES[dialect.name])))
    dialect.read_error(body)
    outcome(dialect, [b"data: " + body + b"\n\n", b"data: [DONE]\n\n"])
    try:
        response = dialect.read_response(body)
    except (WireError, Garbled):
        return
    for other in (CHAT, RESPONSES):
        other.read_response(encode(other.write_response(response, "m")))


@BOTH
@given(st.data())
def test_a_bent_request_is_read_or_refused(dialect: Dialect, data: st.DataObject) -> None:
    try:
        request = dialect.read_request(encode(data.draw(bent(SHAPES[dialect.name]))), "m").request
    except InvalidRequest:
        return
    for other in (CHAT, RESPONSES):
        try:
            json.loads(encode(other.write_request(request, "m", True)))
        except ProviderError as error:  # it points to a file, or seems to
            assert (error.fault, other) != (Fault.UNSUPPORTED, dialect)  # noqa: PT017


@BOTH
@given(st.data())
def test_a_damaged_stream_ends_alike_in_any_slices(dialect: Dialect, data: st.DataObject) -> None:
    response = data.draw(ANSWERS[dialect.name])
    writer = dialect.writer("m")
    body = b"".join(map(writer.write_event, told_in_pieces(response, 4)))
    hole = data.draw(st.integers(0, len(body)))
    after = data.draw(st.integers(hole, len(body)))
    body = body[:hole] + data.draw(st.binary(max_size=3)) + body[after:]
    cuts = data.draw(st.lists(st.integers(0, len(body)), max_size=6).map(sorted))
    chunks = [body[a:b] for a, b in pairwise([0, *cuts, len(body)])]
    assert outcome(dialect, chunks) == outcome(dialect, [body])
