"""A client writes as OpenAI likes it; vendors that refuse what they do not know answer it too."""

from __future__ import annotations

import pytest

from tests.gateway.desk import HELLO_STREAM, Asked, Play, Plays, Upstream, answer, ask, says
from tests.rig import run
from tests.served import house, listening, provider
from understudy.providers.catalogue import by_name
from understudy.providers.http import Settings

# What each takes of the request below: of its documentation, and of the errors it is known for.
COMMON = {"model", "messages", "stream", "temperature", "stop", "tools", "tool_choice"}
TAKES = {
    "cerebras": COMMON | {"max_completion_tokens", "seed", "stream_options", "user", "logprobs"},
    "groq": COMMON | {"max_completion_tokens", "seed", "stream_options", "user"},
    "mistral": COMMON | {"max_tokens", "random_seed"},
    "nvidia": COMMON | {"max_tokens", "seed", "stream_options", "user", "logprobs"},
}
TURN = {"role", "content", "tool_calls", "tool_call_id", "reasoning"}
TURNS = {"nvidia": TURN | {"annotations", "reasoning_content", "refusal"}}
ROLES = {"system", "user", "assistant", "tool"}


def strict(vendor: str) -> Play:
    def play(asked: Asked) -> Plays:
        body = asked.json
        extra = body.keys() - TAKES[vendor]
        known = TURNS.get(vendor, TURN)
        extra |= {name for turn in body["messages"] for name in turn.keys() - known}
        extra |= {turn["role"] for turn in body["messages"]} - ROLES
        if extra:
            return says(400, f"unknown: {sorted(extra)}")
        return Plays(200, HELLO_STREAM if body.get("stream") else answer())

    return play


# What the SDKs of OpenAI and the agents that use them send along.
LADEN: dict[str, object] = {
    "store": False,
    "prompt_cache_key": "k",
    "safety_identifier": "s",
    "user": "u",
    "seed": 7,
    "max_completion_tokens": 50,
    "temperature": 0.5,
    "messages": [
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": "gone",
            "refusal": None,
            "annotations": [],
            "reasoning_content": "hm",
        },
        {"role": "user", "content": "where?"},
    ],
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("vendor", sorted(TAKES))
def test_when_the_head_is_down_a_strict_vendor_answers_the_same_request(
    vendor: str, stream: bool
) -> None:
    more = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    settings = Settings(quirks=by_name()[vendor].quirks, vendor=vendor)

    async def story() -> tuple[int, bytes, str]:
        async with Upstream(lambda _: says(503)) as down, Upstream(strict(vendor)) as up:
            head = provider("openai", down.url, "head")
            next_one = provider("openai", up.url, "next", settings)
            async with listening(house(head, next_one, chat="head/a, next/b")) as near:
                body = {"model": "chat", **LADEN, **more}
                heard = await ask(near, "POST", "/v1/chat/completions", body)
        return heard.status, heard.body, heard.headers["x-understudy-attempts"]

    status, said, attempts = run(story())
    assert (status, attempts) == (200, "head/a=transient, head/a=transient, next/b=ok"), said
