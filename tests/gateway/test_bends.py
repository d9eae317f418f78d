"""Stops and names that a model cannot be told as the client said them come back as it did."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.gateway.desk import DONE, Asked, Plays, Upstream, answer, chunk
from tests.rig import run
from tests.served import house, listening, provider
from understudy import Request, Response, Tool, ToolCall, user
from understudy.messages.response import Event, TextDelta
from understudy.providers.base import Call

PIECES = (chunk("one\nObser"), chunk("vation"), chunk(": two"), chunk("", "stop"), DONE)
WHOLE = "one\nObservation: two"
ASKED = Request((user("x"),), stop=("Observation:",), max_tokens=9)


async def near_a_model_that_takes_none(inbound: str) -> tuple[Response, list[Event], bool]:
    """The answer, the same as a stream, and whether anybody was told of the stop."""

    def play(asked: Asked) -> Plays:
        return Plays(200, PIECES if asked.json.get("stream") else answer(WHOLE))

    async with Upstream(play) as up:
        own = provider("openai", up.url, "own")
        async with listening(house(own, chat="own/gpt-5.5")) as near:
            client = provider(inbound, near, "client")
            whole = await client.generate(Call("chat", ASKED))
            events = [event async for event in client.stream(Call("chat", ASKED))]
        return whole, events, any("stop" in asked.json for asked in up.asked)


@pytest.mark.parametrize("inbound", ["anthropic", "gemini", "ollama"])
def test_an_agent_that_stops_at_its_observation_may_fall_back_to_one_that_takes_no_stops(
    inbound: str,
) -> None:
    whole, events, informed = run(near_a_model_that_takes_none(inbound))
    last = events[-1]
    assert isinstance(last, Response)
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert {whole.text, last.text, said} == {"one\n"}
    assert (whole.finish_reason, last.finish_reason, informed) == ("stop", "stop", False)


def test_the_library_cuts_there_too() -> None:
    async def story() -> tuple[Response, list[object]]:
        async with Upstream(lambda asked: Plays(200, replies.pop(0))) as up:
            own = provider("openai", up.url)
            call = Call("gpt-5.5", ASKED)
            return await own.generate(call), [event async for event in own.stream(call)]

    replies: list[Any] = [answer(WHOLE), PIECES]
    whole, events = run(story())
    last = events[-1]
    assert isinstance(last, Response)
    assert (whole.text, last.text) == ("one\n", "one\n")
    assert events[:-1] == [TextDelta("one\n")]


LONG = "mcp__plugin_cloudflare_cloudflare-workers-observability__query_worker_observability"


def calling(asked: Asked) -> Plays:
    """The model calls the tool that it was offered."""
    offered = asked.json["tools"][0]["function"]["name"]
    call = {"id": "call_1", "type": "function", "function": {"name": offered, "arguments": "{}"}}
    said = {"role": "assistant", "content": None, "tool_calls": [{"index": 0, **call}]}
    told = "delta" if asked.json.get("stream") else "message"
    choice = {"index": 0, "finish_reason": "tool_calls", told: said}
    body = json.dumps({"id": "c", "choices": [choice]}).encode()
    return Plays(200, (b"data: " + body + b"\n\n", DONE) if told == "delta" else body)


def test_a_tool_with_a_long_name_may_be_called_by_a_model_that_knows_short_ones_only() -> None:
    async def story() -> tuple[Response, list[Event], str]:
        async with Upstream(calling) as up:
            own = provider("openai", up.url, "own")
            async with listening(house(own, chat="own/gpt-5.5")) as near:
                client = provider("anthropic", near, "client")
                call = Call("chat", Request((user("x"),), tools=(Tool(LONG),), max_tokens=9))
                call = replace(call, request=replace(call.request, issuer="anthropic"))
                whole = await client.generate(call)
                events = [event async for event in client.stream(call)]
            return whole, events, up.asked[0].json["tools"][0]["function"]["name"]

    whole, events, offered = run(story())
    assert len(offered) <= 64
    assert [call.name for call in whole.tool_calls] == [LONG]
    assert [event.name for event in events if isinstance(event, ToolCall)] == [LONG]
