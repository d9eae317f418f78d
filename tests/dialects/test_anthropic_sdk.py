"""The official client reads what we write as Anthropic, and we read what it sends."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from sdk_rig import Served, served

from understudy.dialects.anthropic import Anthropic
from understudy.messages.parts import File, Image, Reasoning, Text, ToolCall, ToolResult
from understudy.messages.request import Message, Schema, ServerTool, Tool, ToolChoice, system, user
from understudy.messages.response import Event, ReasoningDelta, Response, TextDelta, Usage

anthropic = pytest.importorskip("anthropic")

DIALECT = Anthropic()
CALLS = (ToolCall("t1", "get_weather", '{"city":"Paris"}'), ToolCall("t2", "get_time"))
ANSWER = Response(
    parts=(Reasoning("let me see"), Text("Grüße, "), Text("Welt"), *CALLS),
    finish_reason="tool_calls",
    usage=Usage(100, 20, cache_read=60, reasoning=5),
    id="msg_7",
    issuer="openai",
)
HI: list[Any] = [{"role": "user", "content": "hi"}]


@pytest.fixture(scope="module")
def place() -> Iterator[Served]:
    with served() as place:
        yield place


@pytest.fixture
def client(place: Served) -> Any:
    return anthropic.Anthropic(base_url=place.url, api_key="k", max_retries=0)


def checked(message: Any) -> None:
    assert [block.type for block in message.content if block.type != "text"] == [
        "thinking",
        "tool_use",
        "tool_use",
    ]
    assert message.content[0].thinking == "let me see"
    assert "".join(b.text for b in message.content if b.type == "text") == "Grüße, Welt"
    calls = [(b.id, b.name, b.input) for b in message.content if b.type == "tool_use"]
    assert calls == [("t1", "get_weather", {"city": "Paris"}), ("t2", "get_time", {})]
    assert (message.stop_reason, message.model) == ("tool_use", "claude-x")
    usage = message.usage
    counts = (usage.input_tokens, usage.output_tokens, usage.cache_read_input_tokens)
    assert counts == (40, 20, 60)


def test_the_client_reads_a_plain_answer(place: Served, client: Any) -> None:
    place.answers(DIALECT.write_response(ANSWER, "claude-x"))
    message = client.messages.create(model="m", max_tokens=9, messages=HI)
    checked(message)
    assert message.id == "msg_7"
    assert place.path == DIALECT.path("m", stream=False)


def test_the_client_gathers_a_streamed_answer(place: Served, client: Any) -> None:
    writer = DIALECT.writer("claude-x")
    told: list[Event] = [
        ReasoningDelta("let me "),
        ReasoningDelta("see"),
        TextDelta("Grüße, "),
        TextDelta("Welt"),
    ]
    body = b"".join(writer.write_event(event) for event in [*told, *CALLS, ANSWER])
    place.answers(body, "text/event-stream")
    with client.messages.stream(model="m", max_tokens=9, messages=HI) as stream:
        assert "".join(stream.text_stream) == "Grüße, Welt"
        checked(stream.get_final_message())
    assert DIALECT.read_request(place.asked).stream


def test_the_client_gathers_an_answer_that_was_written_whole(place: Served, client: Any) -> None:
    place.answers(DIALECT.writer("claude-x").write_event(ANSWER), "text/event-stream")
    with client.messages.stream(model="m", max_tokens=9, messages=HI) as stream:
        checked(stream.get_final_message())


def test_the_client_raises_our_errors_as_its_own(place: Served, client: Any) -> None:
    place.answers(DIALECT.write_error(429, "slow down", "rate_limit"), status=429)
    with pytest.raises(anthropic.RateLimitError, match="slow down"):
        client.messages.create(model="m", max_tokens=9, messages=HI)
    writer = DIALECT.writer("m")
    broken = writer.write_event(TextDelta("a")) + writer.write_error(503, "gone", "transient")
    place.answers(broken, "text/event-stream")
    with (
        client.messages.stream(model="m", max_tokens=9, messages=HI) as stream,
        pytest.raises(anthropic.APIError, match="gone"),
    ):
        stream.get_final_message()


def test_what_the_client_sends_is_read(place: Served, client: Any) -> None:
    place.answers(DIALECT.write_response(ANSWER, "claude-x"))
    data = base64.b64encode(b"bytes").decode()
    schema: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}}
    picture = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": data},
    }
    paper = {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": data},
    }
    thought = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    call = {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Paris"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "rain", "is_error": True}
    client.messages.create(
        model="claude-x",
        max_tokens=99,
        system="be brief",
        messages=[
            {"role": "user", "content": [picture, paper, {"type": "text", "text": "look"}]},
            {"role": "assistant", "content": [thought, call]},
            {"role": "user", "content": [result]},
        ],
        tools=[
            {"name": "get_weather", "description": "d", "input_schema": schema},
            {"type": "web_search_20250305", "name": "web_search"},
        ],
        tool_choice={"type": "tool", "name": "get_weather", "disable_parallel_tool_use": True},
        output_config={"format": {"type": "json_schema", "schema": schema}, "effort": "low"},
        thinking={"type": "enabled", "budget_tokens": 2000},
        stop_sequences=["END"],
        metadata={"user_id": "u"},
    )
    found = DIALECT.read_request(place.asked)
    request = found.request
    assert (found.model, found.stream) == ("claude-x", False)
    assert request.messages == (
        system("be brief"),
        user(Image(b"bytes", "image/png"), File(b"bytes", "application/pdf"), "look"),
        Message(
            "assistant",
            (
                Reasoning("hm", "anthropic", "sig"),
                ToolCall("t1", "get_weather", '{"city":"Paris"}'),
            ),
        ),
        Message("tool", (ToolResult("t1", "get_weather", (Text("rain"),), is_error=True),)),
    )
    web = ServerTool("anthropic", {"type": "web_search_20250305", "name": "web_search"})
    assert request.tools == (Tool("get_weather", "d", schema), web)
    assert request.tool_choice == ToolChoice("tool", "get_weather", parallel=False)
    assert request.output == Schema(schema)
    told = (request.max_tokens, request.reasoning, request.reasoning_tokens)
    assert told == (99, "low", 2000)
    assert (request.stop, request.user) == (("END",), "u")
