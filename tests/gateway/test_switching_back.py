"""A conversation that another vendor answered for a while goes on with the client's own.

What the client was shown meanwhile comes back in its history, and must not be taken there for the
vendor's own (contract M6): real vendors refuse such a history, turn after turn.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.gateway.desk import Upstream, always, ask
from tests.rig import run
from tests.served import house, listening, provider
from understudy import Response, ToolCall
from understudy.messages.parts import Reasoning
from understudy.providers.http import Settings
from understudy.testing import Chunks, Fake

CALLED = Response(
    parts=(Reasoning("hm"), Reasoning(data="x"), ToolCall("call_1", "f"), ToolCall("call_2", "f")),
    finish_reason="tool_calls",
)
Turn = Callable[[Any], Any]


async def sent_back(
    dialect: str,
    path: str,
    body: Turn,
    settings: Settings | None = None,
    *,
    model: str = "m",
    others: Response = CALLED,
) -> Any:
    """What the client's own vendor is sent after a turn that another one answered.

    `body` makes a request of the last answer, which is None at first.
    """
    stand_in = Fake("s").script("x", others)
    async with Upstream(always()) as up:
        own = provider(dialect, up.url, "own", settings)
        async with listening(house(stand_in, own, away="s/x", back=f"own/{model}")) as near:
            heard = await ask(near, "POST", path.format("away"), {"model": "away", **body(None)})
            again = {"model": "back", **body(heard.json)}
            await ask(near, "POST", path.format("back"), again)
    return up.asked[0].json


def messages_turn(answer: Any) -> Any:
    turns: list[Any] = [{"role": "user", "content": "go"}]
    if answer:
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": call["id"]} for call in calls]
        turns += [{"role": "assistant", "content": answer["content"]}]
        turns += [{"role": "user", "content": results}]
    return {"max_tokens": 9000, "messages": turns, "metadata": {"unknown": 1}}


def test_claude_is_not_shown_the_thinking_of_others_as_its_own() -> None:
    body = run(sent_back("anthropic", "/v1/messages", messages_turn, model="claude-x"))
    asked = [block["type"] for block in body["messages"][1]["content"]]
    assert asked == ["tool_use", "tool_use"]
    assert body["metadata"] == {"unknown": 1}


def test_others_who_speak_as_claude_does_are_shown_all_of_it() -> None:
    body = run(sent_back("anthropic", "/v1/messages", messages_turn, model="glm-5"))
    asked = [block["type"] for block in body["messages"][1]["content"]]
    assert asked == ["thinking", "tool_use", "tool_use"]


@pytest.mark.parametrize("others", [CALLED, replace(CALLED, parts=CALLED.parts[2:])])
def test_claude_is_not_asked_to_go_on_thinking_where_another_had_begun(others: Response) -> None:
    thinking = {"type": "enabled", "budget_tokens": 2000}

    def turn(answer: Any) -> Any:
        return {**messages_turn(answer), "thinking": thinking}

    body = run(sent_back("anthropic", "/v1/messages", turn, model="claude-x", others=others))
    assert body["thinking"] == {"type": "disabled"}


def responses_turn(answer: Any) -> Any:
    items: list[Any] = [{"role": "user", "content": "go"}]
    if answer:
        calls = [item for item in answer["output"] if item["type"] == "function_call"]
        items += answer["output"]
        items += [
            {"type": "function_call_output", "call_id": call["call_id"], "output": "done"}
            for call in calls
        ]
    return {"input": items, "store": False, "unknown": 1}


def test_openai_is_not_asked_for_items_that_it_never_made() -> None:
    body = run(sent_back("responses", "/v1/responses", responses_turn))
    kinds = [item.get("type") for item in body["input"]]
    assert kinds == [None, *["function_call"] * 2, *["function_call_output"] * 2]
    assert not any("id" in item for item in body["input"])
    assert body["unknown"] == 1


def contents_turn(answer: Any) -> Any:
    contents: list[Any] = [{"role": "user", "parts": [{"text": "go"}]}]
    if answer:
        content = answer["candidates"][0]["content"]
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        results = [{"name": call["name"], "response": {"output": "done"}} for call in calls]
        contents += [content]
        contents += [{"role": "user", "parts": [{"functionResponse": r} for r in results]}]
    return {"contents": contents}


@pytest.mark.parametrize(
    ("model", "signatures"),
    [
        ("gemini-3-pro", ["skip_thought_signature_validator", None]),
        ("gemini-2.5-flash", [None, None]),
    ],
)
def test_gemini_is_told_which_calls_are_not_its_own_if_it_asks(
    model: str, signatures: list[str | None]
) -> None:
    path = "/v1beta/models/{}:generateContent"
    body = run(sent_back("gemini", path, contents_turn, model=model))
    parts = [part for part in body["contents"][1]["parts"] if "functionCall" in part]
    assert [part.get("thoughtSignature") for part in parts] == signatures


def test_a_stream_for_gemini_tells_so_too() -> None:
    async def heard() -> bytes:
        stand_in = Fake("s").script("x", Chunks(*CALLED.tool_calls, CALLED))
        async with listening(house(stand_in, away="s/x")) as near:
            path = "/v1beta/models/away:streamGenerateContent?alt=sse"
            return (await ask(near, "POST", path, contents_turn(None))).body

    chunks = [json.loads(line[6:]) for line in run(heard()).splitlines() if line[:6] == b"data: "]
    parts = [
        part for c in chunks for part in c["candidates"][0].get("content", {"parts": []})["parts"]
    ]
    signatures = [part.get("thoughtSignature") for part in parts if "functionCall" in part]
    assert signatures == ["skip_thought_signature_validator", None]


def chat_turn(answer: Any) -> Any:
    turns: list[Any] = [{"role": "user", "content": "go"}]
    if answer:
        said = answer["choices"][0]["message"]
        results = [{"role": "tool", "tool_call_id": c["id"]} for c in said["tool_calls"]]
        turns += [{"role": "assistant", "tool_calls": said["tool_calls"]}]
        turns += [{**result, "content": "done"} for result in results]
    return {"messages": turns, "unknown": 1}


def test_mistral_gets_the_ids_of_others_in_nine_letters() -> None:
    quirks = Settings(quirks=frozenset({"nine_letter_ids"}))
    body = run(sent_back("openai", "/v1/chat/completions", chat_turn, quirks))
    _, called, *results = body["messages"]
    ids = [call["id"] for call in called["tool_calls"]]
    assert [result["tool_call_id"] for result in results] == ids
    assert all(len(found) == 9 and found.isalnum() for found in ids)
    assert body["unknown"] == 1


def test_what_no_other_answered_goes_through_as_it_came() -> None:
    signed = {"type": "thinking", "thinking": "hm", "signature": "s"}
    body = {"messages": [{"role": "assistant", "content": [signed]}], "model": "claude-x"}

    async def relayed() -> bytes:
        async with Upstream(always()) as up:
            own = provider("anthropic", up.url, "own")
            async with listening(house(own, **{"claude-x": "own/claude-x"})) as near:
                await ask(near, "POST", "/v1/messages", body)
        return up.asked[0].body

    # As it was spelled, and without a limit, which we would have written.
    assert run(relayed()) == json.dumps(body).encode()
