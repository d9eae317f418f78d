"""The Ollama client beyond text: tools, a schema as format, images."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.clients.rig import CALLS, FAILED_OVER, KEY, PNG, WEATHER, Scene, Setting
from tests.clients.speak_ollama import client
from understudy import Response, Usage

pytest.importorskip("ollama")

tails = pytest.mark.parametrize(
    "scene", [Setting("ollama", "refused"), Setting("anthropic", "503")], indirect=True, ids=str
)
ASKED: list[Any] = [{"role": "user", "content": "weather?"}]
TOOL: Any = {
    "type": "function",
    "function": {
        "name": WEATHER.name,
        "description": WEATHER.description,
        "parameters": WEATHER.parameters,
    },
}
CALLING = Response("let me see", tool_calls=CALLS, finish_reason="tool_calls", usage=Usage(7, 5))


@tails
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_tools_are_called(scene: Scene, stream: bool) -> None:
    scene.fake.script("x", CALLING)
    with client(scene.address, KEY) as sdk:
        parts = (
            list(sdk.chat("chat", ASKED, tools=[TOOL], stream=True))
            if stream
            else [sdk.chat("chat", ASKED, tools=[TOOL])]
        )
    calls = [call.function for part in parts for call in part.message.tool_calls or []]
    assert [(call.name, call.arguments) for call in calls] == [
        ("weather", {"city": "Bern"}),
        ("weather", {"city": "Basel"}),
    ]
    assert "".join(part.message.content or "" for part in parts) == "let me see"
    assert parts[-1].done
    assert (parts[-1].prompt_eval_count, parts[-1].eval_count) == (7, 5)
    assert scene.offered == [(WEATHER.name, WEATHER.parameters)]
    assert scene.story == FAILED_OVER


@tails
def test_a_schema_and_a_picture_reach_the_model(scene: Scene) -> None:
    scene.fake.script("x", '{"city":"Bern"}')
    asked: list[Any] = [{"role": "user", "content": "where is this?", "images": [PNG]}]
    with client(scene.address, KEY) as sdk:
        answer = sdk.chat("chat", asked, format=WEATHER.parameters)
    assert json.loads(answer.message.content or "") == {"city": "Bern"}
    assert scene.fields == {"city"}
    assert scene.pictures == [("image/png", PNG)]
