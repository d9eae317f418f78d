"""The Google Gen AI SDK beyond text: function declarations, structured output, images."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients.rig import CALLS, FAILED_OVER, KEY, PNG, Scene, Setting, fields_of
from tests.clients.speak_google import client
from understudy import Response, Usage

genai = pytest.importorskip("google.genai")
pydantic = pytest.importorskip("pydantic")

tails = pytest.mark.parametrize(
    "scene", [Setting("gemini", "refused"), Setting("openai", "503")], indirect=True, ids=str
)
CALLING = Response("let me see", tool_calls=CALLS, finish_reason="tool_calls", usage=Usage(7, 5))
WANTED = [("weather", {"city": "Bern"}), ("weather", {"city": "Basel"})]


class Place(pydantic.BaseModel):  # type: ignore[name-defined,misc]
    city: str
    people: int


def tool() -> Any:
    types = genai.types
    city = types.Schema(type="STRING")
    schema = types.Schema(type="OBJECT", properties={"city": city}, required=["city"])
    declared = types.FunctionDeclaration(
        name="weather", description="What the weather is", parameters=schema
    )
    return types.Tool(function_declarations=[declared])


def spoken(chunks: list[Any]) -> list[Any]:
    """All parts of an answer; the last chunk of a stream may have none."""
    contents = [chunk.candidates[0].content for chunk in chunks]
    return [part for content in contents if content for part in content.parts]


@tails
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_functions_are_called_and_their_results_understood(scene: Scene, stream: bool) -> None:
    types = genai.types
    scene.fake.script("x", CALLING, "take an umbrella")
    config = types.GenerateContentConfig(tools=[tool()])
    asked = types.Content(role="user", parts=[types.Part(text="weather?")])
    with client(scene.address, KEY) as sdk:
        ask: Any = {"model": "chat", "contents": [asked], "config": config}
        chunks: list[Any] = (
            list(sdk.models.generate_content_stream(**ask))
            if stream
            else [sdk.models.generate_content(**ask)]
        )
        calls = [call for chunk in chunks for call in chunk.function_calls or []]
        parts = [
            types.Part.from_function_response(name=call.name, response={"result": f"rain {n}"})
            for n, call in enumerate(calls)
        ]
        said = spoken(chunks)
        turns = [
            asked,
            types.Content(role="model", parts=said),
            types.Content(role="user", parts=parts),
        ]
        second = sdk.models.generate_content(model="chat", contents=turns, config=config)
    assert [(call.name, call.args) for call in calls] == WANTED
    assert "".join(part.text or "" for part in said) == "let me see"
    usage = chunks[-1].usage_metadata
    assert (usage.prompt_token_count, usage.candidates_token_count) == (7, 5)
    assert chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP
    ((name, parameters),) = scene.offered
    assert (name, fields_of(parameters)) == ("weather", {"city"})
    assert [text for _, text in scene.results] == ["rain 0", "rain 1"]
    assert second.text == "take an umbrella"


@tails
def test_output_is_parsed_into_a_model(scene: Scene) -> None:
    scene.fake.script("x", '{"city":"Bern","people":134000}')
    config = genai.types.GenerateContentConfig(
        response_mime_type="application/json", response_schema=Place
    )
    with client(scene.address, KEY) as sdk:
        answer = sdk.models.generate_content(model="chat", contents="where?", config=config)
    assert answer.parsed == Place(city="Bern", people=134000)
    assert scene.fields == {"city", "people"}
    assert scene.story == FAILED_OVER


@tails
def test_pictures_and_instructions_reach_the_model(scene: Scene) -> None:
    types = genai.types
    config = types.GenerateContentConfig(
        system_instruction="be brief", max_output_tokens=99, temperature=0.5
    )
    picture = types.Part.from_bytes(data=PNG, mime_type="image/png")
    with client(scene.address, KEY) as sdk:
        answer = sdk.models.generate_content(
            model="chat", contents=[picture, "what is this?"], config=config
        )
    assert answer.text == "hello from f/x"
    assert scene.turns == [("system", "be brief"), ("user", "what is this?")]
    assert scene.pictures == [("image/png", PNG)]
    assert (scene.asked.max_tokens, scene.asked.temperature) == (99, 0.5)
