"""The OpenAI SDK: Chat Completions and Responses; plain, raw streams, accumulators."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.clients.rig import no_tls

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI
    from openai.types.chat import ChatCompletionMessageParam

Hear = Callable[[str], None]
ASK: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hello"}]


def client(address: str, key: str, retries: int = 0) -> OpenAI:
    from openai import DefaultHttpxClient, OpenAI

    http = DefaultHttpxClient(verify=no_tls())
    return OpenAI(base_url=address + "/v1", api_key=key, max_retries=retries, http_client=http)


def async_client(address: str, key: str) -> AsyncOpenAI:
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    http = DefaultAsyncHttpxClient(verify=no_tls())
    return AsyncOpenAI(base_url=address + "/v1", api_key=key, max_retries=0, http_client=http)


def chat(address: str, key: str) -> str:
    with client(address, key) as openai:
        answer = openai.chat.completions.create(model="chat", messages=ASK)
    return answer.choices[0].message.content or ""


def chat_stream(address: str, key: str, hear: Hear) -> str:
    whole = ""
    with client(address, key) as openai:
        for chunk in openai.chat.completions.create(model="chat", messages=ASK, stream=True):
            for choice in chunk.choices:
                if choice.delta.content:
                    hear(choice.delta.content)
                    whole += choice.delta.content
    return whole


def chat_accumulated(address: str, key: str, hear: Hear) -> str:
    with (
        client(address, key) as openai,
        openai.chat.completions.stream(model="chat", messages=ASK) as stream,
    ):
        for event in stream:
            if event.type == "content.delta" and event.delta:
                hear(event.delta)
        return stream.get_final_completion().choices[0].message.content or ""


def chat_async(address: str, key: str) -> str:
    async def ask() -> str:
        async with async_client(address, key) as openai:
            answer = await openai.chat.completions.create(model="chat", messages=ASK)
        return answer.choices[0].message.content or ""

    return asyncio.run(ask())


def chat_stream_async(address: str, key: str, hear: Hear) -> str:
    async def ask() -> str:
        async with (
            async_client(address, key) as openai,
            openai.chat.completions.stream(model="chat", messages=ASK) as stream,
        ):
            async for event in stream:
                if event.type == "content.delta" and event.delta:
                    hear(event.delta)
            final = await stream.get_final_completion()
        return final.choices[0].message.content or ""

    return asyncio.run(ask())


def responses(address: str, key: str) -> str:
    with client(address, key) as openai:
        return openai.responses.create(model="chat", input="hello").output_text


def responses_stream(address: str, key: str, hear: Hear) -> str:
    """Only a `response.completed` makes an end, as the SDK's own accumulator has it."""
    whole = ""
    with client(address, key) as openai:
        for event in openai.responses.create(model="chat", input="hello", stream=True):
            if event.type == "response.output_text.delta":
                hear(event.delta)
            elif event.type == "response.completed":
                whole = event.response.output_text
    return whole


def responses_accumulated(address: str, key: str, hear: Hear) -> str:
    with (
        client(address, key) as openai,
        openai.responses.stream(model="chat", input="hello") as stream,
    ):
        for event in stream:
            if event.type == "response.output_text.delta":
                hear(event.delta)
        return stream.get_final_response().output_text


def responses_async(address: str, key: str) -> str:
    async def ask() -> str:
        async with async_client(address, key) as openai:
            return (await openai.responses.create(model="chat", input="hello")).output_text

    return asyncio.run(ask())


def responses_stream_async(address: str, key: str, hear: Hear) -> str:
    async def ask() -> str:
        async with (
            async_client(address, key) as openai,
            openai.responses.stream(model="chat", input="hello") as stream,
        ):
            async for event in stream:
                if event.type == "response.output_text.delta":
                    hear(event.delta)
            return (await stream.get_final_response()).output_text

    return asyncio.run(ask())
