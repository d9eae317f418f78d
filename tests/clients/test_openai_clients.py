"""The OpenAI SDK beyond text: tools, structured output, images, usage, headers, embeddings.

Whatever is asserted of the answer comes out of the SDK's own parsing and accumulating; whatever is
asserted of the request is what the model at the end of the chain was asked.
"""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.rig import CALLS, FAILED_OVER, KEY, PNG, WEATHER, Scene, Setting
from tests.clients.speak_openai import client
from understudy import Response, Usage
from understudy.gateway.http import Reply, Request
from understudy.testing import Chunks

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
    from openai.types.responses import FunctionToolParam, ResponseInputItemParam

openai = pytest.importorskip("openai")
pydantic = pytest.importorskip("pydantic")


class Place(pydantic.BaseModel):  # type: ignore[name-defined,misc]
    city: str
    people: int


def tails(*dialects: str) -> pytest.MarkDecorator:
    """Relayed past a closed port, translated past a 503."""
    same, other = dialects
    settings = [Setting(same, "refused"), Setting(other, "503")]
    return pytest.mark.parametrize("scene", settings, indirect=True, ids=str)


chat = tails("openai", "anthropic")
responses = tails("responses", "gemini")
BERN = '{"city":"Bern","people":134000}'
ASKED: list[ChatCompletionMessageParam] = [{"role": "user", "content": "weather?"}]
CHAT_TOOLS: list[ChatCompletionToolParam] = [
    {
        "type": "function",
        "function": {
            "name": WEATHER.name,
            "description": WEATHER.description,
            "parameters": WEATHER.parameters,  # type: ignore[typeddict-item]
        },
    }
]
TOOL: FunctionToolParam = {
    "type": "function",
    "name": WEATHER.name,
    "description": WEATHER.description,
    "parameters": WEATHER.parameters,  # type: ignore[typeddict-item]
    "strict": False,
}
CALLING = Response("let me see", tool_calls=CALLS, finish_reason="tool_calls", usage=Usage(7, 5))
WANTED = [("weather", {"city": "Bern"}), ("weather", {"city": "Basel"})]


# -- Chat Completions -----------------------------------------------------------------------------


@chat
def test_chat_tools_are_called_and_their_results_understood(scene: Scene) -> None:
    scene.fake.script("x", CALLING, "take an umbrella")
    with client(scene.address, KEY) as sdk:
        first = sdk.chat.completions.create(model="chat", messages=ASKED, tools=CHAT_TOOLS)
        assert scene.offered == [(WEATHER.name, WEATHER.parameters)]
        message = first.choices[0].message
        calls: list[Any] = message.tool_calls or []
        told: list[Any] = [
            {"role": "tool", "tool_call_id": call.id, "content": f"rain {n}"}
            for n, call in enumerate(calls)
        ]
        turns: Any = [*ASKED, message, *told]
        second = sdk.chat.completions.create(model="chat", messages=turns, tools=CHAT_TOOLS)
    assert [(c.function.name, json.loads(c.function.arguments)) for c in calls] == WANTED
    assert (first.choices[0].finish_reason, message.content) == ("tool_calls", "let me see")
    assert first.usage is not None
    assert (first.usage.prompt_tokens, first.usage.completion_tokens) == (7, 5)
    assert scene.results == [(calls[0].id, "rain 0"), (calls[1].id, "rain 1")]
    assert second.choices[0].message.content == "take an umbrella"


@chat
def test_streamed_chat_tools_accumulate_whole(scene: Scene) -> None:
    scene.fake.script("x", CALLING)
    with (
        client(scene.address, KEY) as sdk,
        sdk.chat.completions.stream(
            model="chat",
            messages=ASKED,
            tools=CHAT_TOOLS,
            stream_options={"include_usage": True},
        ) as stream,
    ):
        done = [e.arguments for e in stream if e.type == "tool_calls.function.arguments.done"]
        final = stream.get_final_completion()
    message = final.choices[0].message
    calls = message.tool_calls or []
    assert [(c.function.name, json.loads(c.function.arguments)) for c in calls] == WANTED
    assert [json.loads(arguments) for arguments in done] == [a for _, a in WANTED]
    assert (final.choices[0].finish_reason, message.content) == ("tool_calls", "let me see")
    assert final.usage is not None
    assert (final.usage.prompt_tokens, final.usage.completion_tokens) == (7, 5)
    assert scene.story == FAILED_OVER


@chat
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_chat_output_is_parsed_into_a_model(scene: Scene, stream: bool) -> None:
    scene.fake.script("x", BERN)
    with client(scene.address, KEY) as sdk:
        if stream:
            with sdk.chat.completions.stream(
                model="chat", messages=ASKED, response_format=Place
            ) as events:
                answer = events.get_final_completion()
        else:
            answer = sdk.chat.completions.parse(
                model="chat", messages=ASKED, response_format=Place
            )
    assert answer.choices[0].message.parsed == Place(city="Bern", people=134000)
    assert scene.fields == {"city", "people"}


@chat
def test_a_picture_in_a_chat_reaches_the_model(scene: Scene) -> None:
    url = "data:image/png;base64," + b64encode(PNG).decode()
    with client(scene.address, KEY) as sdk:
        sdk.chat.completions.create(
            model="chat",
            messages=[
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "what is this?"},
                        {"type": "image_url", "image_url": {"url": url}},
                    ],
                }
            ],
        )
    assert scene.turns == [("user", "what is this?")]
    assert scene.pictures == [("image/png", PNG)]


@chat
def test_who_served_and_the_whole_story_are_in_the_headers(scene: Scene) -> None:
    with client(scene.address, KEY) as sdk:
        raw = sdk.chat.completions.with_raw_response.create(
            model="chat", messages=ASKED, extra_headers={"x-request-id": "mine-1"}
        )
    assert raw.headers["x-understudy-target"] == "tail/m"
    assert raw.headers["x-understudy-attempts"] == ", ".join(FAILED_OVER)
    assert raw.headers["x-request-id"] == "mine-1"
    assert (raw.parse().choices[0].message.content or "").startswith("hello from f/x")


@chat
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_no_two_answers_have_the_same_id(scene: Scene, stream: bool) -> None:
    ask: Any = {"model": "chat", "messages": ASKED, "stream": stream}
    with client(scene.address, KEY) as sdk:
        answers: list[Any] = [sdk.chat.completions.create(**ask) for _ in range(2)]
        ids = [{chunk.id for chunk in answer} if stream else {answer.id} for answer in answers]
    assert [len(found) for found in ids] == [1, 1]
    assert ids[0] != ids[1]


@chat
def test_usage_is_streamed_only_to_those_who_ask(scene: Scene) -> None:
    scene.fake.script("x", "hi", "hi")
    with client(scene.address, KEY) as sdk:
        plain = sdk.chat.completions.create(model="chat", messages=ASKED, stream=True)
        assert [chunk.usage for chunk in plain if chunk.usage] == []
        asked = sdk.chat.completions.create(
            model="chat",
            messages=ASKED,
            stream=True,
            stream_options={"include_usage": True},
        )
        (last,) = [chunk for chunk in asked if chunk.usage]
    assert last.usage is not None
    assert (last.choices, last.usage.total_tokens) == ([], 2)


@chat
def test_models_are_listed(scene: Scene) -> None:
    with client(scene.address, KEY) as sdk:
        assert {"chat", "head/m", "tail/m"} <= {model.id for model in sdk.models.list()}


# -- Responses ------------------------------------------------------------------------------------


@responses
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_responses_tools_are_called_and_their_results_understood(
    scene: Scene, stream: bool
) -> None:
    scene.fake.script("x", CALLING, "take an umbrella")
    asked: list[ResponseInputItemParam] = [{"role": "user", "content": "weather?"}]
    with client(scene.address, KEY) as sdk:
        if stream:
            with sdk.responses.stream(model="chat", input=asked, tools=[TOOL]) as events:
                first: Any = events.get_final_response()
        else:
            first = sdk.responses.create(model="chat", input=asked, tools=[TOOL])
        assert scene.offered == [(WEATHER.name, WEATHER.parameters)]
        calls = [item for item in first.output if item.type == "function_call"]
        told: list[Any] = [
            {"type": "function_call_output", "call_id": call.call_id, "output": f"rain {n}"}
            for n, call in enumerate(calls)
        ]
        second = sdk.responses.create(
            model="chat", input=[*asked, *first.output, *told], tools=[TOOL]
        )
    assert [(c.name, json.loads(c.arguments)) for c in calls] == WANTED
    assert (first.status, first.output_text) == ("completed", "let me see")
    assert (first.usage.input_tokens, first.usage.output_tokens) == (7, 5)
    assert [text for _, text in scene.results] == ["rain 0", "rain 1"]
    assert second.output_text == "take an umbrella"


@responses
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_responses_output_is_parsed_into_a_model(scene: Scene, stream: bool) -> None:
    scene.fake.script("x", Chunks(BERN[:9], BERN[9:]))
    with client(scene.address, KEY) as sdk:
        if stream:
            with sdk.responses.stream(model="chat", input="where?", text_format=Place) as events:
                answer = events.get_final_response()
        else:
            answer = sdk.responses.parse(model="chat", input="where?", text_format=Place)
    assert answer.output_parsed == Place(city="Bern", people=134000)
    assert scene.fields == {"city", "people"}


@responses
def test_a_picture_in_a_response_reaches_the_model(scene: Scene) -> None:
    url = "data:image/png;base64," + b64encode(PNG).decode()
    with client(scene.address, KEY) as sdk:
        sdk.responses.create(
            model="chat",
            instructions="be brief",
            input=[
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "what is this?"},
                        {"type": "input_image", "image_url": url, "detail": "auto"},
                    ],
                }
            ],
        )
    assert scene.turns == [("system", "be brief"), ("user", "what is this?")]
    assert scene.pictures == [("image/png", PNG)]


@responses
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_no_two_responses_have_the_same_id(scene: Scene, stream: bool) -> None:
    with client(scene.address, KEY) as sdk:
        ids = set()
        for _ in range(2):
            if stream:
                with sdk.responses.stream(model="chat", input="hello") as events:
                    ids.add(events.get_final_response().id)
            else:
                ids.add(sdk.responses.create(model="chat", input="hello").id)
    assert len(ids) == 2


# -- Embeddings -----------------------------------------------------------------------------------

VECTORS = {"one": (0.25, -1.0), "two": (0.5, 2.0)}


async def embedding(request: Request, reply: Reply) -> None:
    asked = json.loads(request.body)
    rows = [
        {"object": "embedding", "index": n, "embedding": VECTORS[text]}
        for n, text in enumerate(asked["input"])
    ]
    usage = {"prompt_tokens": 2, "total_tokens": 2}
    body = {"object": "list", "data": rows, "model": asked["model"], "usage": usage}
    reply.send(200, b"content-type: application/json\r\n", json.dumps(body).encode())


@pytest.mark.parametrize("scene", [Setting("openai", far=embedding)], indirect=True, ids=str)
def test_embeddings_come_from_the_tail(scene: Scene) -> None:
    with client(scene.address, KEY) as sdk:
        answer = sdk.embeddings.create(model="chat", input=["one", "two"], encoding_format="float")
    assert [tuple(row.embedding) for row in answer.data] == list(VECTORS.values())
    assert (answer.model, answer.usage.total_tokens) == ("m", 2)
    assert scene.story == FAILED_OVER
