"""The Anthropic SDK beyond text: tools, images, structured output, the beta door, token counts."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.rig import CALLS, FAILED_OVER, KEY, PNG, WEATHER, Scene, Setting
from tests.clients.speak_anthropic import ASK, client, text_of
from understudy import Response, Usage
from understudy.gateway.http import Reply, Request

if TYPE_CHECKING:
    from anthropic.types import Message, ToolParam

anthropic = pytest.importorskip("anthropic")

tails = pytest.mark.parametrize(
    "scene", [Setting("anthropic", "refused"), Setting("openai", "503")], indirect=True, ids=str
)
TOOL: ToolParam = {
    "name": WEATHER.name,
    "description": WEATHER.description,
    "input_schema": WEATHER.parameters,  # type: ignore[typeddict-item]
}
CALLING = Response("let me see", tool_calls=CALLS, finish_reason="tool_calls", usage=Usage(7, 5))
WANTED = [("weather", {"city": "Bern"}), ("weather", {"city": "Basel"})]


@tails
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_tools_are_called_and_their_results_understood(scene: Scene, stream: bool) -> None:
    scene.fake.script("x", CALLING, "take an umbrella")
    with client(scene.address, KEY) as sdk:
        if stream:
            with sdk.messages.stream(
                model="chat", max_tokens=99, messages=ASK, tools=[TOOL]
            ) as events:
                first: Message = events.get_final_message()
        else:
            first = sdk.messages.create(model="chat", max_tokens=99, messages=ASK, tools=[TOOL])
        calls = [block for block in first.content if block.type == "tool_use"]
        told: list[Any] = [
            {"type": "tool_result", "tool_use_id": call.id, "content": f"rain {n}"}
            for n, call in enumerate(calls)
        ]
        second = sdk.messages.create(
            model="chat",
            max_tokens=99,
            messages=[
                *ASK,
                {"role": "assistant", "content": first.content},
                {"role": "user", "content": told},
            ],
            tools=[TOOL],
        )
    assert [(c.name, c.input) for c in calls] == WANTED
    assert (first.stop_reason, text_of(first)) == ("tool_use", "let me see")
    assert (first.usage.input_tokens, first.usage.output_tokens) == (7, 5)
    assert scene.offered == [(WEATHER.name, WEATHER.parameters)]
    assert [text for _, text in scene.results] == ["rain 0", "rain 1"]
    assert text_of(second) == "take an umbrella"


@tails
def test_pictures_and_system_prompts_reach_the_model(scene: Scene) -> None:
    data = b64encode(PNG).decode()
    with client(scene.address, KEY) as sdk:
        answer = sdk.messages.create(
            model="chat",
            max_tokens=99,
            system="be brief",
            messages=[
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "what is this?"},
                        {
                            "type": "image",
                            "source": {"type": "base64", "media_type": "image/png", "data": data},
                        },
                    ],
                }
            ],
        )
    assert (text_of(answer), answer.stop_reason) == ("hello from f/x", "end_turn")
    assert scene.turns == [("system", "be brief"), ("user", "what is this?")]
    assert scene.pictures == [("image/png", PNG)]
    assert scene.asked.max_tokens == 99


@tails
def test_a_stop_for_length_is_told_as_one(scene: Scene) -> None:
    scene.fake.script("x", Response("and then", finish_reason="length", usage=Usage(3, 2)))
    with (
        client(scene.address, KEY) as sdk,
        sdk.messages.stream(model="chat", max_tokens=2, messages=ASK) as events,
    ):
        final = events.get_final_message()
    assert (final.stop_reason, final.usage.output_tokens) == ("max_tokens", 2)
    assert scene.story == FAILED_OVER


@tails
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_no_two_answers_have_the_same_id(scene: Scene, stream: bool) -> None:
    ids = set()
    with client(scene.address, KEY) as sdk:
        for _ in range(2):
            if stream:
                with sdk.messages.stream(model="chat", max_tokens=9, messages=ASK) as events:
                    ids.add(events.get_final_message().id)
            else:
                ids.add(sdk.messages.create(model="chat", max_tokens=9, messages=ASK).id)
    assert len(ids) == 2


@tails
def test_the_beta_door_is_the_same_door(scene: Scene) -> None:
    with client(scene.address, KEY) as sdk:
        answer = sdk.beta.messages.create(
            model="chat",
            max_tokens=99,
            messages=[{"role": "user", "content": "hello"}],
            betas=["interleaved-thinking-2025-05-14"],
        )
    assert [block.text for block in answer.content if block.type == "text"] == ["hello from f/x"]


@tails
def test_output_is_parsed_into_a_model(scene: Scene) -> None:
    pydantic = pytest.importorskip("pydantic")
    Place = pydantic.create_model("Place", city=(str, ...))
    scene.fake.script("x", '{"city":"Bern"}')
    with client(scene.address, KEY) as sdk:
        answer = sdk.messages.parse(model="chat", max_tokens=99, messages=ASK, output_format=Place)
    assert answer.parsed_output == Place(city="Bern")
    assert scene.fields == {"city"}


async def counting(request: Request, reply: Reply) -> None:
    assert request.path == "/v1/messages/count_tokens"
    reply.send(200, b"content-type: application/json\r\n", b'{"input_tokens":14}')


@pytest.mark.parametrize("scene", [Setting("anthropic", far=counting)], indirect=True, ids=str)
def test_tokens_are_counted_by_the_tail(scene: Scene) -> None:
    with client(scene.address, KEY) as sdk:
        assert sdk.messages.count_tokens(model="chat", messages=ASK).input_tokens == 14
    assert scene.story == FAILED_OVER
