"""The official SDK as judge: it reads what we write, and we read what it sends.

Skips without the `openai` package. A small server on loopback plays the answers.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from understudy.dialects.base import Asked
from understudy.dialects.json_access import encode
from understudy.dialects.openai_chat import OpenAIChat
from understudy.dialects.openai_chat.writer import ChatWriter
from understudy.dialects.openai_responses import OpenAIResponses
from understudy.messages.parts import Image, Json, Reasoning, Text, ToolCall, ToolResult
from understudy.messages.request import (
    Message,
    Request,
    Schema,
    Tool,
    ToolChoice,
    assistant,
    system,
    user,
)
from understudy.messages.response import (
    Event,
    ReasoningDelta,
    Response,
    TextDelta,
    Usage,
)

openai = pytest.importorskip("openai")

CHAT, RESPONSES = OpenAIChat(), OpenAIResponses()
CALLS = (ToolCall("c1", "weather", '{"city":"Bonn"}'), ToolCall("c2", "time"))
ANSWER = Response(
    parts=(Reasoning("Let me see."), Text("It is wärm ☀"), *CALLS),
    finish_reason="tool_calls",
    usage=Usage(11, 7, cache_read=3, reasoning=2),
    id="answer-1",
)
EVENTS: list[Event] = [
    ReasoningDelta("Let me "),
    ReasoningDelta("see."),
    TextDelta("It is "),
    TextDelta("wärm ☀"),
    *CALLS,
    ANSWER,
]


@dataclass
class Stage:
    """What the server will say next, and what it was asked."""

    url: str = ""
    kind: str = "application/json"
    answer: bytes = b""
    status: int = 200
    asked: list[bytes] = field(default_factory=list)

    def plays(self, answer: bytes, kind: str = "application/json", status: int = 200) -> None:
        self.answer, self.kind, self.status = answer, kind, status

    def client(self) -> Any:
        return openai.OpenAI(base_url=self.url, api_key="none", max_retries=0)


@pytest.fixture
def stage() -> Iterator[Stage]:
    play = Stage()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            play.asked.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(play.status)
            self.send_header("content-type", play.kind)
            self.send_header("content-length", str(len(play.answer)))
            self.end_headers()
            self.wfile.write(play.answer)

        def log_message(self, *args: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        play.url = f"http://127.0.0.1:{server.server_port}/v1"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield play
        server.shutdown()
        thread.join()


MESSAGES = [{"role": "user", "content": "hi"}]


def chat_stream(events: list[Event]) -> bytes:
    writer = ChatWriter("m", include_usage=True, id="answer-1")
    return b"".join(map(writer.write_event, events))


def responses_stream(events: list[Event]) -> bytes:
    writer = RESPONSES.writer("m", Asked(id="resp_1"))
    return b"".join(map(writer.write_event, events))


# It reads what we write


def test_a_chat_answer(stage: Stage) -> None:
    stage.plays(encode(CHAT.write_response(ANSWER, "m")))
    with stage.client() as client:
        answer = client.chat.completions.create(model="m", messages=MESSAGES)
    check_chat(answer)
    assert answer.id == "answer-1"


def check_chat(answer: Any) -> None:
    (choice,) = answer.choices
    assert choice.message.content == "It is wärm ☀"
    assert choice.message.reasoning_content == "Let me see."
    calls = [(c.id, c.function.name, c.function.arguments) for c in choice.message.tool_calls]
    assert calls == [("c1", "weather", '{"city":"Bonn"}'), ("c2", "time", "{}")]
    assert (choice.finish_reason, answer.model) == ("tool_calls", "m")
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (11, 7)
    assert answer.usage.total_tokens == 18
    assert answer.usage.prompt_tokens_details.cached_tokens == 3
    assert answer.usage.completion_tokens_details.reasoning_tokens == 2


@pytest.mark.parametrize("events", [EVENTS, [ANSWER]], ids=["deltas", "whole"])
def test_a_chat_stream_accumulates(stage: Stage, events: list[Event]) -> None:
    stage.plays(chat_stream(events), "text/event-stream")
    with (
        stage.client() as client,
        client.chat.completions.stream(model="m", messages=MESSAGES) as stream,
    ):
        answer = stream.get_final_completion()
    check_chat(answer)


def test_a_refusal_in_a_chat_stream(stage: Stage) -> None:
    stage.plays(chat_stream([Response(refusal="I can't")]), "text/event-stream")
    with (
        stage.client() as client,
        client.chat.completions.stream(model="m", messages=MESSAGES) as stream,
    ):
        answer = stream.get_final_completion()
    assert answer.choices[0].message.refusal == "I can't"


def test_an_error_in_a_chat_stream_is_raised(stage: Stage) -> None:
    writer = CHAT.writer("m")
    body = writer.write_event(TextDelta("a")) + writer.write_error(503, "gone", "transient")
    stage.plays(body, "text/event-stream")
    with stage.client() as client:
        stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        with stream, pytest.raises(openai.APIError, match="gone"):
            list(stream)


@pytest.mark.parametrize("dialect", [CHAT, RESPONSES], ids=["chat", "responses"])
def test_an_error_body_is_raised_by_status(
    stage: Stage, dialect: OpenAIChat | OpenAIResponses
) -> None:
    stage.plays(encode(dialect.write_error(429, "slow down", "rate_limit")), status=429)
    with stage.client() as client, pytest.raises(openai.RateLimitError) as caught:
        client.chat.completions.create(model="m", messages=MESSAGES)
    assert "slow down" in str(caught.value)
    assert caught.value.code == "rate_limit"


def test_a_responses_answer(stage: Stage) -> None:
    stage.plays(encode(RESPONSES.write_response(ANSWER, "m")))
    with stage.client() as client:
        check_responses(client.responses.create(model="m", input="hi"))


def check_responses(answer: Any) -> None:
    thought, spoken, *calls = answer.output
    assert thought.summary[0].text == "Let me see."
    assert answer.output_text == spoken.content[0].text == "It is wärm ☀"
    found = [(call.call_id, call.name, call.arguments) for call in calls]
    assert found == [("c1", "weather", '{"city":"Bonn"}'), ("c2", "time", "{}")]
    assert (answer.status, answer.model) == ("completed", "m")
    usage = answer.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (11, 7, 18)
    assert usage.input_tokens_details.cached_tokens == 3
    assert usage.output_tokens_details.reasoning_tokens == 2


@pytest.mark.parametrize("events", [EVENTS, [ANSWER]], ids=["deltas", "whole"])
def test_a_responses_stream_accumulates(stage: Stage, events: list[Event]) -> None:
    stage.plays(responses_stream(events), "text/event-stream")
    with stage.client() as client, client.responses.stream(model="m", input="hi") as stream:
        kinds = [event.type for event in stream]
        answer = stream.get_final_response()
    check_responses(answer)
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"


def test_a_responses_stream_can_be_cut_short(stage: Stage) -> None:
    answer = Response(text="It is", finish_reason="length")
    stage.plays(responses_stream([TextDelta("It is"), answer]), "text/event-stream")
    with stage.client() as client:
        stream = client.responses.create(model="m", input="hi", stream=True)
        *_, last = stream
    assert last.type == "response.incomplete"
    assert last.response.incomplete_details.reason == "max_output_tokens"
    assert last.response.output_text == "It is"


def test_an_error_in_a_responses_stream_is_raised_or_told(stage: Stage) -> None:
    writer = RESPONSES.writer("m")
    body = writer.write_event(TextDelta("a")) + writer.write_error(503, "gone", "transient")
    stage.plays(body, "text/event-stream")
    with stage.client() as client:
        stream = client.responses.create(model="m", input="hi", stream=True)
        with pytest.raises(openai.APIError, match="gone"):
            raise_errors(stream)


def raise_errors(stream: Any) -> None:
    """The SDK hands error events on, or raises them itself, depending on its version."""
    for event in stream:
        if event.type == "error":
            raise openai.APIError(event.message, request=None, body=None)


# We read what it sends

SCHEMA: dict[str, Json] = {"type": "object", "properties": {"city": {"type": "string"}}}
PIXEL = "data:image/png;base64,iVBORw0KGgo="


def test_a_chat_request_of_the_sdk_is_read(stage: Stage) -> None:
    stage.plays(encode(CHAT.write_response(ANSWER, "m")))
    tool = {"name": "weather", "description": "Say it", "parameters": SCHEMA}
    called = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    form = {"name": "report", "schema": SCHEMA, "strict": True}
    content = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    ]
    with stage.client() as client:
        client.chat.completions.create(
            model="gpt",
            messages=[
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": content},
                {"role": "assistant", "tool_calls": [called]},
                {"role": "tool", "tool_call_id": "c", "content": "12 °C"},
            ],
            tools=[{"type": "function", "function": tool}],
            tool_choice="required",
            parallel_tool_calls=False,
            response_format={"type": "json_schema", "json_schema": form},
            max_completion_tokens=9,
            temperature=0.5,
            stop=["x"],
            seed=4,
            reasoning_effort="low",
            logprobs=True,
        )
    inbound = CHAT.read_request(stage.asked[0])
    assert (inbound.model, inbound.stream) == ("gpt", False)
    assert inbound.request == Request(
        messages=(
            system("be brief"),
            user(
                "look",
                Image(b"\x89PNG\r\n\x1a\n", "image/png", extra={"detail": "low"}),
                Image(url="https://example.com/a.png"),
            ),
            assistant(ToolCall("c", "weather")),
            Message("tool", (ToolResult("c", "weather", (Text("12 °C"),)),)),
        ),
        tools=(Tool("weather", "Say it", SCHEMA),),
        tool_choice=ToolChoice("required", parallel=False),
        output=Schema(SCHEMA, "report", True),
        max_tokens=9,
        temperature=0.5,
        stop=("x",),
        seed=4,
        reasoning="low",
        issuer="openai",
        extra={"logprobs": True},
    )


def test_a_responses_request_of_the_sdk_is_read(stage: Stage) -> None:
    stage.plays(encode(RESPONSES.write_response(ANSWER, "m")))
    tool = {"type": "function", "name": "weather", "parameters": SCHEMA, "strict": False}
    content = [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": PIXEL, "detail": "auto"},
    ]
    with stage.client() as client:
        client.responses.create(
            model="gpt",
            instructions="be brief",
            input=[
                {"role": "user", "content": content},
                {"type": "function_call", "call_id": "c", "name": "weather", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "12 °C"},
            ],
            tools=[tool],
            tool_choice={"type": "function", "name": "weather"},
            reasoning={"effort": "low"},
            max_output_tokens=9,
            store=False,
        )
    inbound = RESPONSES.read_request(stage.asked[0])
    assert inbound.request == Request(
        messages=(
            system("be brief"),
            user("look", Image(b"\x89PNG\r\n\x1a\n", "image/png", extra={"detail": "auto"})),
            assistant(ToolCall("c", "weather")),
            Message("tool", (ToolResult("c", "weather", (Text("12 °C"),)),)),
        ),
        tools=(Tool("weather", "", SCHEMA, {"strict": False}),),
        tool_choice=ToolChoice("tool", "weather"),
        max_tokens=9,
        reasoning="low",
        issuer="responses",
        extra={"store": False},
    )


def test_an_answer_of_the_sdk_goes_back_into_a_history(stage: Stage) -> None:
    """Clients send the SDK's own objects back: what we wrote, we must read again."""
    stage.plays(encode(RESPONSES.write_response(ANSWER, "m")))
    with stage.client() as client:
        first = client.responses.create(model="m", input="hi")
        client.responses.create(model="m", input=list(first.output))
    (turn,) = RESPONSES.read_request(stage.asked[1]).request.messages
    assert turn.text == "It is wärm ☀"
    assert turn.parts[0] == Reasoning("Let me see.")
    assert [(c.id, c.name, c.arguments) for c in turn.tool_calls] == [
        (c.id, c.name, c.arguments) for c in CALLS
    ]
    stage.plays(encode(CHAT.write_response(ANSWER, "m")))
    with stage.client() as client:
        said = client.chat.completions.create(model="m", messages=MESSAGES).choices[0].message
        client.chat.completions.create(model="m", messages=[*MESSAGES, said])
    last = CHAT.read_request(stage.asked[3]).request.messages[-1]
    assert last.parts == (Reasoning("Let me see.", "openai"), Text("It is wärm ☀"), *CALLS)
