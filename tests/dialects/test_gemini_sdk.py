"""The official client reads what we write as Gemini, and we read what it sends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sdk_rig import Served, served

from understudy.dialects.gemini import Gemini
from understudy.messages.parts import File, Image, Reasoning, Text, ToolCall, ToolResult
from understudy.messages.request import Message, Request, ServerTool, Tool, ToolChoice, user
from understudy.messages.response import Event, ReasoningDelta, Response, TextDelta, Usage

genai = pytest.importorskip("google.genai")

DIALECT = Gemini()
CALLS = (ToolCall("t1", "get_weather", '{"city":"Paris"}'), ToolCall("t2", "get_time"))
ANSWER = Response(
    parts=(Reasoning("let me see"), Text("Grüße, "), Text("Welt"), *CALLS),
    finish_reason="tool_calls",
    usage=Usage(100, 20, cache_read=60, reasoning=5),
    id="r7",
    issuer="openai",
)


@pytest.fixture(scope="module")
def place() -> Iterator[Served]:
    with served() as place:
        yield place


@pytest.fixture
def client(place: Served) -> Iterator[Any]:
    options = {"base_url": place.url, "api_version": "v1beta"}
    found = genai.Client(api_key="k", http_options=options)
    yield found
    found.close()


def parts_of(answers: list[Any]) -> list[Any]:
    found = [answer.candidates[0].content for answer in answers if answer.candidates]
    return [part for content in found if content for part in content.parts or []]


def checked(answers: list[Any]) -> None:
    parts = parts_of(answers)
    assert "".join(p.text for p in parts if p.text and p.thought) == "let me see"
    assert "".join(p.text for p in parts if p.text and not p.thought) == "Grüße, Welt"
    calls = [p.function_call for p in parts if p.function_call]
    assert [(c.id, c.name, c.args) for c in calls] == [
        ("t1", "get_weather", {"city": "Paris"}),
        ("t2", "get_time", {}),
    ]
    last = answers[-1]
    assert last.candidates[0].finish_reason == genai.types.FinishReason.STOP
    usage = last.usage_metadata
    counts = (usage.prompt_token_count, usage.candidates_token_count, usage.thoughts_token_count)
    assert counts == (100, 15, 5)
    assert (usage.cached_content_token_count, usage.total_token_count) == (60, 120)
    assert (last.model_version, last.response_id) == ("gemini-x", "r7")


def test_the_client_reads_a_plain_answer(place: Served, client: Any) -> None:
    place.answers(DIALECT.write_response(ANSWER, "gemini-x"))
    checked([client.models.generate_content(model="m", contents="hi")])
    assert place.path == DIALECT.path("m", stream=False)


def test_the_client_gathers_a_streamed_answer(place: Served, client: Any) -> None:
    writer = DIALECT.writer("gemini-x")
    told: list[Event] = [
        ReasoningDelta("let me "),
        ReasoningDelta("see"),
        TextDelta("Grüße, "),
        TextDelta("Welt"),
    ]
    body = b"".join(writer.write_event(event) for event in [*told, *CALLS, ANSWER])
    place.answers(body, "text/event-stream")
    checked(list(client.models.generate_content_stream(model="m", contents="hi")))
    assert place.path == DIALECT.path("m", stream=True)


def test_the_client_raises_our_errors_as_its_own(place: Served, client: Any) -> None:
    place.answers(DIALECT.write_error(429, "slow down", "rate_limit"), status=429)
    with pytest.raises(genai.errors.ClientError, match="slow down") as caught:
        client.models.generate_content(model="m", contents="hi")
    assert (caught.value.code, caught.value.status) == (429, "RESOURCE_EXHAUSTED")


def sent(place: Served, client: Any, contents: Any, **config: Any) -> Request:
    place.answers(DIALECT.write_response(ANSWER, "gemini-x"))
    client.models.generate_content(model="m", contents=contents, config=config)
    return DIALECT.read_request(place.asked, "m").request


def test_the_media_and_histories_the_client_sends_are_read(place: Served, client: Any) -> None:
    types = genai.types
    call = types.Part(
        function_call=types.FunctionCall(name="f", args={"a": 1}, id="t1"),
        thought_signature=b"sig",
    )
    answer = types.Part(
        function_response=types.FunctionResponse(name="f", id="t1", response={"error": "no"})
    )
    contents = [
        types.Content(
            role="user",
            parts=[
                types.Part.from_text(text="look"),
                types.Part.from_bytes(data=b"\xff\xfe", mime_type="image/png"),
                types.Part.from_uri(file_uri="gs://x/a.pdf", mime_type="application/pdf"),
            ],
        ),
        types.Content(role="model", parts=[call]),
        types.Content(role="user", parts=[answer]),
    ]
    request = sent(place, client, contents)
    signed = {"thoughtSignature": "c2ln"}
    assert request.messages == (
        user(
            "look",
            Image(b"\xff\xfe", "image/png"),
            File(mime="application/pdf", url="gs://x/a.pdf"),
        ),
        Message("assistant", (ToolCall("t1", "f", '{"a":1}', "gemini", signed),)),
        Message("tool", (ToolResult("t1", "f", (Text("no"),), is_error=True),)),
    )


def test_the_options_the_client_sends_are_read(place: Served, client: Any) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    function = {"name": "f", "description": "d", "parameters_json_schema": schema}
    google = {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}
    other = {"name": "g", "parameters": google}
    request = sent(
        place,
        client,
        "hi",
        system_instruction="be brief",
        max_output_tokens=99,
        temperature=0.5,
        top_k=3,
        stop_sequences=["END"],
        seed=7,
        tools=[{"function_declarations": [function, other]}, {"google_search": {}}],
        tool_config={"function_calling_config": {"mode": "ANY", "allowed_function_names": ["f"]}},
        response_mime_type="application/json",
        response_json_schema=schema,
        thinking_config={"thinking_level": "low", "include_thoughts": True},
    )
    assert [(message.role, message.text) for message in request.messages] == [
        ("system", "be brief"),
        ("user", "hi"),
    ]
    third, first, second = request.tools  # the client puts Google's own first
    assert first == Tool("f", "d", schema)
    assert isinstance(second, Tool)
    assert second.parameters == schema
    assert third == ServerTool("gemini", {"googleSearch": {}})
    assert request.tool_choice == ToolChoice("tool", "f")
    assert request.output is not None
    assert request.output.schema == schema
    told = (request.max_tokens, request.temperature, request.top_k, request.stop, request.seed)
    assert told == (99, 0.5, 3, ("END",), 7)
    assert request.reasoning == "low"
    written: Any = DIALECT.write_request(request, "m", stream=False)
    assert written["generationConfig"]["thinkingConfig"]["includeThoughts"] is True
