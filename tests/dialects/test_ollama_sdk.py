"""The official client reads what we write as Ollama, and we read what it sends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sdk_rig import Served, served
from strategies_others import PNG

from understudy.dialects.ollama import Ollama
from understudy.messages.parts import Image, Reasoning, Text, ToolCall, ToolResult
from understudy.messages.request import Message, Schema, Tool, system, user
from understudy.messages.response import Event, ReasoningDelta, Response, TextDelta, Usage

ollama = pytest.importorskip("ollama")

DIALECT = Ollama()
CALLS = (ToolCall("t1", "get_weather", '{"city":"Paris"}'), ToolCall("t2", "get_time"))
ANSWER = Response(
    parts=(Reasoning("let me see"), Text("Grüße, "), Text("Welt"), *CALLS),
    finish_reason="tool_calls",
    usage=Usage(100, 20),
    issuer="openai",
)
HI = [{"role": "user", "content": "hi"}]


@pytest.fixture(scope="module")
def place() -> Iterator[Served]:
    with served() as place:
        yield place


@pytest.fixture
def client(place: Served) -> Any:
    return ollama.Client(host=place.url)


def checked(answers: list[Any]) -> None:
    assert "".join(a.message.thinking or "" for a in answers) == "let me see"
    assert "".join(a.message.content or "" for a in answers) == "Grüße, Welt"
    calls = [c.function for a in answers for c in a.message.tool_calls or []]
    assert [(c.name, c.arguments) for c in calls] == [
        ("get_weather", {"city": "Paris"}),
        ("get_time", {}),
    ]
    last = answers[-1]
    assert (last.done, last.done_reason, last.model) == (True, "stop", "llama")
    assert (last.prompt_eval_count, last.eval_count) == (100, 20)


def test_the_client_reads_a_plain_answer(place: Served, client: Any) -> None:
    place.answers(DIALECT.write_response(ANSWER, "llama"))
    checked([client.chat(model="llama", messages=HI)])
    assert place.path == DIALECT.path("llama", stream=False)


def test_the_client_gathers_a_streamed_answer(place: Served, client: Any) -> None:
    writer = DIALECT.writer("llama")
    told: list[Event] = [
        ReasoningDelta("let me "),
        ReasoningDelta("see"),
        TextDelta("Grüße, "),
        TextDelta("Welt"),
    ]
    body = b"".join(writer.write_event(event) for event in [*told, *CALLS, ANSWER])
    place.answers(body, "application/x-ndjson")
    checked(list(client.chat(model="llama", messages=HI, stream=True)))


def test_the_client_raises_our_errors_as_its_own(place: Served, client: Any) -> None:
    place.answers(DIALECT.write_error(404, "no such model", "model_not_found"), status=404)
    with pytest.raises(ollama.ResponseError, match="no such model"):
        client.chat(model="llama", messages=HI)
    writer = DIALECT.writer("llama")
    broken = writer.write_event(TextDelta("a")) + writer.write_error(500, "gone", "transient")
    place.answers(broken, "application/x-ndjson")
    with pytest.raises(ollama.ResponseError, match="gone"):
        list(client.chat(model="llama", messages=HI, stream=True))


def test_what_the_client_sends_is_read(place: Served, client: Any) -> None:
    place.answers(DIALECT.write_response(ANSWER, "llama"))
    schema: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}}
    function = {"name": "f", "description": "d", "parameters": schema}
    client.chat(
        model="llama",
        messages=[
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "look", "images": [PNG]},
            {
                "role": "assistant",
                "content": "",
                "thinking": "hm",
                "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}],
            },
            {"role": "tool", "content": "ERROR: no", "tool_name": "f"},
        ],
        tools=[{"type": "function", "function": function}],
        format=schema,
        options={"num_predict": 99, "temperature": 0.5, "stop": ["END"], "num_ctx": 512},
        think="low",
        keep_alive="5m",
    )
    found = DIALECT.read_request(place.asked)
    request = found.request
    call = request.messages[2].tool_calls[0]
    assert (found.model, found.stream) == ("llama", False)
    assert request.messages == (
        system("be brief"),
        user("look", Image(PNG, "image/png")),
        Message("assistant", (Reasoning("hm", "ollama"), ToolCall(call.id, "f", '{"a":1}'))),
        Message("tool", (ToolResult(call.id, "f", (Text("no"),), is_error=True),)),
    )
    assert request.tools == (Tool("f", "d", schema),)
    assert request.output == Schema(schema)
    assert (request.max_tokens, request.temperature, request.stop) == (99, 0.5, ("END",))
    assert request.reasoning == "low"
    assert request.extra == {"options": {"num_ctx": 512}, "keep_alive": "5m"}
