"""LiteLLM as a client, run as a program: addresses in on stdin, findings out as JSON.

Without the setting below its import fetches a price list from the network.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import sys
from collections.abc import Callable
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # noqa: TID251 - read when it is imported

import litellm

# LiteLLM leaves streams of Anthropic's unclosed. A collector that happens to run while httpcore
# holds its lock closes one there, which waits for that same lock, for ever.
gc.disable()
litellm.suppress_debug_info = True  # else it prints advice among the findings
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "What the weather is",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
PLACE = {
    "type": "json_schema",
    "json_schema": {
        "name": "place",
        "schema": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
            "required": ["city", "people"],
            "additionalProperties": False,
        },
    },
}
# How LiteLLM names who speaks what, and what it expects the address to end in.
DOORS = {"litellm": ("openai/chat", "/v1"), "litellm anthropic": ("anthropic/chat", "")}


def asker(name: str, address: str, key: str) -> Callable[..., Any]:
    model, path = DOORS[name]

    def ask(**options: Any) -> Any:
        return litellm.completion(
            model=model,
            messages=[{"role": "user", "content": "hello"}],
            api_base=address + path,
            api_key=key,
            num_retries=0,
            max_retries=0,
            **options,
        )

    return ask


def used(answer: Any) -> list[int]:
    return [answer.usage.prompt_tokens, answer.usage.completion_tokens]


def called(answer: Any) -> list[list[Any]]:
    calls = answer.choices[0].message.tool_calls
    return [[call.function.name, json.loads(call.function.arguments)] for call in calls]


def streamed(ask: Callable[..., Any], **options: Any) -> tuple[list[str], Any]:
    """The pieces, and what LiteLLM's own builder makes of the chunks."""
    chunks = list(ask(stream=True, stream_options={"include_usage": True}, **options))
    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    return [piece for piece in pieces if piece], litellm.stream_chunk_builder(chunks)


def checks(ask: Callable[..., Any]) -> dict[str, Any]:
    """In the order the fake is scripted: text, stream, tools, streamed tools, structured."""
    plain = ask()
    pieces, whole = streamed(ask)
    tools = ask(tools=[TOOL])
    _, more = streamed(ask, tools=[TOOL])
    place = ask(response_format=PLACE)
    return {
        "plain": [plain.choices[0].message.content, used(plain)],
        "stream": [pieces, whole.choices[0].message.content, used(whole)],
        "tools": called(tools),
        "streamed tools": called(more),
        "structured": json.loads(place.choices[0].message.content),
    }


def raised(ask: Callable[[], object]) -> list[str]:
    try:
        return ["nothing", repr(ask())]
    except Exception as error:  # noqa: BLE001 - which it is, is the question
        return [type(error).__name__, str(error)]


def cut(ask: Callable[..., Any]) -> list[Any]:
    heard: list[str] = []

    def listen() -> None:
        for chunk in ask(stream=True):
            heard.append(chunk.choices[0].delta.content or "")

    error = raised(listen)
    return ["".join(heard), *error]


def findings(name: str, places: dict[str, str]) -> dict[str, Any]:
    def at(place: str, key: str = "key") -> Callable[..., Any]:
        return asker(name, places[place], places[key])

    return {
        "relayed": checks(at("relayed")),
        "translated": checks(at("translated")),
        "wrong key": raised(at("relayed", "wrong")),
        "exhausted": raised(at("exhausted")),
        "limited": raised(at("limited")),
        "cut": cut(at("cut")),
    }


if __name__ == "__main__":
    faulthandler.dump_traceback_later(80)  # its last words, if it hangs
    asked = json.load(sys.stdin)
    json.dump({name: findings(name, places) for name, places in asked.items()}, sys.stdout)
