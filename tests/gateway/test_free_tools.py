"""Tools that take free text, as OpenAI has them, called by models of others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.gateway.desk import Heard, ask
from tests.rig import run
from tests.served import house, listening, provider
from understudy import Response, ToolCall
from understudy.testing import Chunks, Fake

PATCH = "*** Begin Patch\n*** End Patch"
CALL = ToolCall("t1", "patch", json.dumps({"input": PATCH}))
CALLED = Response(parts=(CALL,), finish_reason="tool_calls")
GRAMMAR = {"syntax": "lark", "definition": "start: X"}
ITEMS: dict[str, Any] = {
    "model": "chat",
    "input": "go",
    "tools": [{"type": "custom", "name": "patch", "format": {"type": "grammar", **GRAMMAR}}],
    "tool_choice": {"type": "custom", "name": "patch"},
}
MESSAGES: dict[str, Any] = {
    "model": "chat",
    "messages": [{"role": "user", "content": "go"}],
    "tools": [{"type": "custom", "custom": {"name": "patch", "description": "edits"}}],
    "tool_choice": {"type": "custom", "custom": {"name": "patch"}},
}
FOREIGN = pytest.mark.parametrize("outbound", ["anthropic", "gemini", "ollama"])
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["plain", "streaming"])


async def through(outbound: str, path: str, body: dict[str, Any], *, stream: bool) -> Heard:
    fake = Fake("f").script("x", Chunks(CALL, CALLED) if stream else CALLED)
    async with (
        listening(house(fake, m="f/x")) as far,
        listening(house(provider(outbound, far), chat="up/m")) as near,
    ):
        heard = await ask(near, "POST", path, {**body, "stream": stream})
    ((_, request),) = fake.calls
    (tool,) = request.tools
    assert tool.parameters["required"] == ["input"]  # type: ignore[union-attr]
    if outbound != "ollama":  # which has no choice
        assert request.tool_choice.name == "patch"  # type: ignore[union-attr]
    return heard


@FOREIGN
@BOTH
def test_responses_clients_are_answered_with_the_text_alone(outbound: str, stream: bool) -> None:
    heard = run(through(outbound, "/v1/responses", ITEMS, stream=stream))
    last = heard.body.rsplit(b"data: ", 1)[1] if stream else heard.body
    answer = json.loads(last)["response"] if stream else json.loads(last)
    (item,) = answer["output"]
    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "patch", PATCH)


@FOREIGN
@BOTH
def test_and_so_are_those_of_chat_completions(outbound: str, stream: bool) -> None:
    heard = run(through(outbound, "/v1/chat/completions", MESSAGES, stream=stream))
    if stream:
        lines = [line[6:] for line in heard.body.splitlines() if line.startswith(b"data: {")]
        said = [json.loads(line)["choices"][0]["delta"] for line in lines]
    else:
        said = [json.loads(heard.body)["choices"][0]["message"]]
    (call,) = [call for piece in said for call in piece.get("tool_calls", ())]
    assert (call["type"], call["custom"]) == ("custom", {"name": "patch", "input": PATCH})


def test_the_grammar_of_such_a_tool_is_told() -> None:
    fake = Fake("f").script("x", CALLED)

    async def work() -> None:
        async with listening(house(fake, chat="f/x")) as near:
            await ask(near, "POST", "/v1/responses", ITEMS)

    run(work())
    ((_, request),) = fake.calls
    assert "start: X" in str(request.tools[0].parameters)  # type: ignore[union-attr]


def test_who_calls_all_tools_custom_means_something_else() -> None:
    tool = {"type": "custom", "name": "patch", "input_schema": {"type": "object"}}
    body = {"model": "chat", "max_tokens": 9, "messages": MESSAGES["messages"], "tools": [tool]}

    async def work() -> Heard:
        async with listening(house(Fake("f").script("x", CALLED), chat="f/x")) as near:
            return await ask(near, "POST", "/v1/messages", body)

    (block,) = run(work()).json["content"]  # type: ignore[misc]
    assert block["input"] == {"input": PATCH}  # type: ignore[index, call-overload]
