"""The Google Gen AI SDK: plain, streams, and its chat object, which accumulates; both colours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.clients.rig import no_tls

if TYPE_CHECKING:
    from google.genai import Client

Hear = Callable[[str], None]


def client(address: str, key: str) -> Client:
    from google.genai import Client
    from google.genai.types import HttpOptions

    plain = {"verify": no_tls(), "ssl": no_tls()}  # httpx calls it one way, aiohttp the other
    options = HttpOptions(base_url=address, client_args=plain, async_client_args=plain)
    return Client(api_key=key, http_options=options)


def content(address: str, key: str) -> str:
    with client(address, key) as google:
        return google.models.generate_content(model="chat", contents="hello").text or ""


def content_stream(address: str, key: str, hear: Hear) -> str:
    whole = ""
    with client(address, key) as google:
        for chunk in google.models.generate_content_stream(model="chat", contents="hello"):
            if chunk.text:
                hear(chunk.text)
                whole += chunk.text
    return whole


def chat_accumulated(address: str, key: str, hear: Hear) -> str:
    with client(address, key) as google:
        chat = google.chats.create(model="chat")
        for chunk in chat.send_message_stream("hello"):
            if chunk.text:
                hear(chunk.text)
        asked, *told = chat.get_history()
    assert asked.role == "user"
    return "".join(part.text or "" for turn in told for part in turn.parts or [])


def content_async(address: str, key: str) -> str:
    async def ask() -> str:
        async with client(address, key).aio as google:
            answer = await google.models.generate_content(model="chat", contents="hello")
        return answer.text or ""

    return asyncio.run(ask())


def content_stream_async(address: str, key: str, hear: Hear) -> str:
    async def ask() -> str:
        whole = ""
        async with client(address, key).aio as google:
            async for chunk in await google.models.generate_content_stream(
                model="chat", contents="hello"
            ):
                if chunk.text:
                    hear(chunk.text)
                    whole += chunk.text
        return whole

    return asyncio.run(ask())
