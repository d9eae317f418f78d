"""Who asks with `functions`, as before there were tools, is answered so by whoever serves."""

from __future__ import annotations

import json

import pytest

from tests.gateway.desk import HELLO, Heard, ask
from tests.rig import run
from tests.served import house, listening, provider
from understudy import Response, ToolCall
from understudy.testing import Chunks, Fake

CALL = ToolCall("t1", "weather", '{"city":"Oslo"}')
CALLED = Response(parts=(CALL,), finish_reason="tool_calls")
ASKED = {**HELLO, "model": "chat", "functions": [{"name": "weather", "parameters": {}}]}


async def through(outbound: str, stream: bool) -> Heard:
    """Asked of a chain whose head is down, and answered in this dialect with a call."""
    fake = Fake("f").script("x", Chunks(CALL, CALLED) if stream else CALLED)
    dead = Fake("dead").script("x", *[503] * 2)
    async with (
        listening(house(fake, m="f/x")) as far,
        listening(house(dead, provider(outbound, far), chat="dead/x, up/m")) as near,
    ):
        heard = await ask(near, "POST", "/v1/chat/completions", {**ASKED, "stream": stream})
    ((_, request),) = fake.calls
    assert [tool.name for tool in request.tools] == ["weather"]
    return heard


@pytest.mark.parametrize("outbound", ["openai", "responses", "anthropic", "gemini", "ollama"])
def test_who_asks_with_functions_is_answered_with_a_function_call(outbound: str) -> None:
    heard = run(through(outbound, stream=False))
    (choice,) = heard.json["choices"]  # type: ignore[misc, union-attr]
    assert choice["finish_reason"] == "function_call"
    assert json.loads(choice["message"]["function_call"].pop("arguments")) == {"city": "Oslo"}
    assert choice["message"]["function_call"] == {"name": "weather"}
    assert "tool_calls" not in choice["message"]


@pytest.mark.parametrize("outbound", ["openai", "responses", "anthropic", "gemini", "ollama"])
def test_and_so_is_who_asks_for_a_stream(outbound: str) -> None:
    heard = run(through(outbound, stream=True))
    lines = [line[6:] for line in heard.body.splitlines() if line.startswith(b"data: {")]
    choices = [json.loads(line)["choices"][0] for line in lines]
    calls = [c["delta"]["function_call"] for c in choices if "function_call" in c["delta"]]
    assert "".join(call.get("name", "") for call in calls) == "weather"
    said = "".join(call.get("arguments", "") for call in calls)
    assert json.loads(said) == {"city": "Oslo"}
    assert choices[-1]["finish_reason"] == "function_call"
    assert not any("tool_calls" in choice["delta"] for choice in choices)
