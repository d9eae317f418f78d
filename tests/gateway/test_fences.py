"""JSON that a stream was asked for comes without the fence that some models put round it (M5)."""

from __future__ import annotations

import pytest

from tests.rig import run
from tests.served import house, listening, provider
from understudy import Request, Response, Schema, user
from understudy.messages.response import Event, TextDelta
from understudy.providers.base import Call
from understudy.testing import Chunks, Fake

DOORS = pytest.mark.parametrize(
    "inbound", ["openai", "responses", "anthropic", "gemini", "ollama"]
)
FENCED = ("``", "`js", "on\n", '{"a":', " 1}", "\n``", "`\n")
SHAPE = Schema({"type": "object", "properties": {"a": {"type": "integer"}}})


async def streamed(inbound: str, request: Request) -> list[Event]:
    fake = Fake("f").script("x", Chunks(*FENCED))
    async with listening(house(fake, chat="f/x")) as near:
        client = provider(inbound, near, "client")
        return [event async for event in client.stream(Call("chat", request))]


def told(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@DOORS
def test_a_stream_that_is_to_be_json_has_no_fence(inbound: str) -> None:
    events = run(streamed(inbound, Request(messages=(user("x"),), output=SHAPE, max_tokens=9)))
    last = events[-1]
    assert isinstance(last, Response)
    assert (told(events), last.text) == ('{"a": 1}', '{"a": 1}')


@DOORS
def test_a_stream_of_which_nothing_was_asked_is_as_it_came(inbound: str) -> None:
    events = run(streamed(inbound, Request(messages=(user("x"),), max_tokens=9)))
    assert told(events) == "".join(FENCED)
