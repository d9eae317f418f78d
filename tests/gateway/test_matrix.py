"""Every surface over every outbound dialect, plain and streaming (contract G1), on real sockets.

The client is our own provider speaking the surface's dialect; behind the gateway is a provider
speaking the outbound dialect to a second gateway, which stands in front of a fake.
"""

from __future__ import annotations

import json

import pytest

from tests.rig import run
from tests.served import house, listening, provider
from understudy import (
    Image,
    Request,
    Response,
    Schema,
    Tool,
    ToolCall,
    ToolChoice,
    Usage,
    assistant,
    system,
    tool_result,
    user,
)
from understudy.messages.parts import Image as ImagePart
from understudy.messages.response import Event, TextDelta
from understudy.providers.base import Call
from understudy.testing import Chunks, Fake

INBOUND = ["openai", "responses", "anthropic", "gemini", "ollama"]
OUTBOUND = ["openai", "responses", "anthropic", "gemini", "ollama"]
PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00"
    b"\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99="
    b"\x1d\x00\x00\x00\x00IEND\xaeB`\x82"
)
WEATHER = Tool(
    "weather",
    "What the weather is",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


async def through(inbound: str, outbound: str, fake: Fake, call: Request, *, stream: bool):  # type: ignore[no-untyped-def]
    """The request sent in one dialect, answered through another."""
    async with listening(house(fake, m="f/x")) as far:
        middle = provider(outbound, far, "mid")
        async with listening(house(middle, chat="mid/m")) as near:
            client = provider(inbound, near, "client")
            if not stream:
                return await client.generate(Call("chat", call))
            return [event async for event in client.stream(Call("chat", call))]


pairs = pytest.mark.parametrize("outbound", OUTBOUND)
doors = pytest.mark.parametrize("inbound", INBOUND)


@doors
@pairs
def test_text_and_usage_come_through(inbound: str, outbound: str) -> None:
    fake = Fake("f").script("x", Response("Grüezi, 世界", usage=Usage(7, 5)))
    request = Request(messages=(system("be brief"), user("hello")), max_tokens=99)
    reply = run(through(inbound, outbound, fake, request, stream=False))
    assert (reply.text, reply.finish_reason) == ("Grüezi, 世界", "stop")
    assert (reply.usage.total_input, reply.usage.total_output) == (7, 5)
    ((_, seen),) = fake.calls
    assert [(m.role, m.text) for m in seen.messages] == [("system", "be brief"), ("user", "hello")]
    assert seen.max_tokens == 99


@doors
@pairs
def test_a_stream_comes_through_piece_by_piece(inbound: str, outbound: str) -> None:
    fake = Fake("f").script("x", Chunks("one ", "two ", "three"))
    request = Request(messages=(user("count"),), max_tokens=99)
    events: list[Event] = run(through(inbound, outbound, fake, request, stream=True))
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["one ", "two ", "three"]
    last = events[-1]
    assert isinstance(last, Response)
    assert (last.text, last.finish_reason) == ("one two three", "stop")


CALLS = (
    ToolCall("call_1", "weather", '{"city":"Bern"}'),
    ToolCall("call_2", "weather", '{"city":"Basel"}'),
)


@doors
@pairs
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_parallel_tool_calls_come_through_whole(inbound: str, outbound: str, stream: bool) -> None:
    answer = Response("let me see", tool_calls=CALLS, finish_reason="tool_calls")
    fake = Fake("f").script("x", answer)
    request = Request(
        messages=(user("weather?"),),
        tools=(WEATHER,),
        tool_choice=ToolChoice("required"),
        max_tokens=99,
    )
    told = run(through(inbound, outbound, fake, request, stream=stream))
    reply = told[-1] if stream else told
    assert [(c.name, json.loads(c.arguments)) for c in reply.tool_calls] == [
        ("weather", {"city": "Bern"}),
        ("weather", {"city": "Basel"}),
    ]
    assert len({c.id for c in reply.tool_calls}) == 2
    assert reply.finish_reason == "tool_calls"
    ((_, seen),) = fake.calls
    (tool,) = seen.tools
    assert (tool.name, tool.parameters) == (WEATHER.name, WEATHER.parameters)
    if "ollama" not in (inbound, outbound):  # that wire has no word for it
        assert seen.tool_choice is not None
        assert seen.tool_choice.mode == "required"


@doors
@pairs
def test_tool_results_and_images_come_through(inbound: str, outbound: str) -> None:
    fake = Fake("f").script("x", "fine")
    request = Request(
        messages=(
            user("what is this?", Image(PNG, "image/png")),
            assistant(*CALLS),
            tool_result(CALLS[0], "sunny"),
            tool_result(CALLS[1], "rain"),
        ),
        tools=(WEATHER,),
        max_tokens=99,
    )
    run(through(inbound, outbound, fake, request, stream=False))
    ((_, seen),) = fake.calls
    parts = [part for message in seen.messages for part in message.parts]
    assert [p.data for p in parts if isinstance(p, ImagePart)] == [PNG]
    results = [r for m in seen.messages if m.role == "tool" for r in m.parts]
    assert [r.text for r in results] == ["sunny", "rain"]
    called = [c for m in seen.messages for c in m.tool_calls]
    assert [c.id for c in called] == [r.id for r in results]


@doors
@pairs
def test_structured_output_comes_through(inbound: str, outbound: str) -> None:
    fake = Fake("f").script("x", '{"city":"Bern"}')
    schema = Schema({**WEATHER.parameters, "additionalProperties": False}, "place")  # type: ignore[dict-item]
    request = Request(messages=(user("where?"),), output=schema, max_tokens=99)
    reply = run(through(inbound, outbound, fake, request, stream=False))
    assert json.loads(reply.text) == {"city": "Bern"}
    ((_, seen),) = fake.calls
    assert seen.output is not None
    assert seen.output.schema == schema.schema
