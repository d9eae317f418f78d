"""The Anthropic SDK: plain, raw events, the stream accumulator; both colours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.clients.rig import no_tls

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic
    from anthropic.types import Message, MessageParam

Hear = Callable[[str], None]
ASK: list[MessageParam] = [{"role": "user", "content": "hello"}]


def client(address: str, key: str, retries: int = 0) -> Anthropic:
    from anthropic import Anthropic, DefaultHttpxClient

    http = DefaultHttpxClient(verify=no_tls())
    return Anthropic(base_url=address, api_key=key, max_retries=retries, http_client=http)


def async_client(address: str, key: str) -> AsyncAnthropic:
    from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

    http = DefaultAsyncHttpxClient(verify=no_tls())
    return AsyncAnthropic(base_url=address, api_key=key, max_retries=0, http_client=http)


def text_of(message: Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def message(address: str, key: str) -> str:
    with client(address, key) as anthropic:
        return text_of(anthropic.messages.create(model="chat", max_tokens=99, messages=ASK))


def events(address: str, key: str, hear: Hear) -> str:
    """Only a `message_stop` makes an end."""
    pieces: list[str] = []
    over = False
    with client(address, key) as anthropic:
        for event in anthropic.messages.create(
            model="chat", max_tokens=99, messages=ASK, stream=True
        ):
            if event.type == "content_block_delta" and event.delta.type == "text_delta":
                hear(event.delta.text)
                pieces.append(event.delta.text)
            over = over or event.type == "message_stop"
    return "".join(pieces) if over else ""


def accumulated(address: str, key: str, hear: Hear) -> str:
    with (
        client(address, key) as anthropic,
        anthropic.messages.stream(model="chat", max_tokens=99, messages=ASK) as stream,
    ):
        for text in stream.text_stream:
            hear(text)
        return text_of(stream.get_final_message())


def message_async(address: str, key: str) -> str:
    async def ask() -> str:
        async with async_client(address, key) as anthropic:
            return text_of(
                await anthropic.messages.create(model="chat", max_tokens=99, messages=ASK)
            )

    return asyncio.run(ask())


def accumulated_async(address: str, key: str, hear: Hear) -> str:
    async def ask() -> str:
        async with (
            async_client(address, key) as anthropic,
            anthropic.messages.stream(model="chat", max_tokens=99, messages=ASK) as stream,
        ):
            async for text in stream.text_stream:
                hear(text)
            return text_of(await stream.get_final_message())

    return asyncio.run(ask())
