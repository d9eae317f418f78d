"""LangChain's ChatOpenAI as a client, run as a program: addresses in on stdin, findings out."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from langchain_openai import ChatOpenAI
from pydantic import BaseModel


class Place(BaseModel):
    """A town"""

    city: str
    people: int


def weather(city: str) -> str:
    """What the weather is"""
    return city


def model(address: str, key: str, responses: bool) -> ChatOpenAI:
    return ChatOpenAI(
        model="chat",
        base_url=address + "/v1",
        api_key=key,  # type: ignore[arg-type]
        max_retries=0,
        use_responses_api=responses,
        stream_usage=True,
    )


def used(message: Any) -> list[int]:
    return [message.usage_metadata["input_tokens"], message.usage_metadata["output_tokens"]]


def called(message: Any) -> list[list[Any]]:
    return [[call["name"], call["args"]] for call in message.tool_calls]


def summed(chunks: list[Any]) -> Any:
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    return whole


def checks(chat: ChatOpenAI) -> dict[str, Any]:
    """In the order the fake is scripted: text, stream, tools, streamed tools, structured."""
    plain = chat.invoke("hello")
    chunks = list(chat.stream("hello"))
    pieces = [chunk.text for chunk in chunks if chunk.text]
    armed = chat.bind_tools([weather])
    tools = armed.invoke("weather?")
    streamed = summed(list(armed.stream("weather?")))
    place = chat.with_structured_output(Place).invoke("where?")
    return {
        "plain": [plain.text, used(plain)],
        "stream": [pieces, summed(chunks).text, used(summed(chunks))],
        "tools": called(tools),
        "streamed tools": called(streamed),
        "structured": place.model_dump(),  # type: ignore[union-attr]
        "ids": [plain.id, summed(chunks).id, tools.id, streamed.id],
    }


def raised(ask: Callable[[], object]) -> list[str]:
    try:
        return ["nothing", repr(ask())]
    except Exception as error:  # noqa: BLE001 - which it is, is the question
        return [type(error).__name__, str(error)]


def cut(chat: ChatOpenAI) -> list[Any]:
    heard: list[str] = []
    error = raised(lambda: heard.extend(chunk.text for chunk in chat.stream("hello")))
    return ["".join(heard), *error]


def findings(places: dict[str, str], responses: bool) -> dict[str, Any]:
    def at(place: str, key: str = "key") -> ChatOpenAI:
        return model(places[place], places[key], responses)

    return {
        "relayed": checks(at("relayed")),
        "translated": checks(at("translated")),
        "wrong key": raised(lambda: at("relayed", "wrong").invoke("hello")),
        "exhausted": raised(lambda: at("exhausted").invoke("hello")),
        "limited": raised(lambda: at("limited").invoke("hello")),
        "cut": cut(at("cut")),
    }


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    told = {name: findings(places, "responses" in name) for name, places in asked.items()}
    json.dump(told, sys.stdout)
