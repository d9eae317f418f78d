"""The Ollama client against /api/chat, plain and streaming; both colours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tests.clients.rig import no_tls

if TYPE_CHECKING:
    from ollama import AsyncClient, Client

Hear = Callable[[str], None]
ASK: list[Mapping[str, str]] = [{"role": "user", "content": "hello"}]


def client(address: str, key: str) -> Client:
    from ollama import Client

    return Client(host=address, headers={"authorization": f"Bearer {key}"}, verify=no_tls())


def async_client(address: str, key: str) -> AsyncClient:
    from ollama import AsyncClient

    return AsyncClient(host=address, headers={"authorization": f"Bearer {key}"}, verify=no_tls())


def chat(address: str, key: str) -> str:
    with client(address, key) as ollama:
        return ollama.chat("chat", ASK).message.content or ""


def chat_stream(address: str, key: str, hear: Hear) -> str:
    """Only a part that is `done` makes an end."""
    pieces: list[str] = []
    over = False
    with client(address, key) as ollama:
        for part in ollama.chat("chat", ASK, stream=True):
            if part.message.content:
                hear(part.message.content)
                pieces.append(part.message.content)
            over = bool(part.done)
    return "".join(pieces) if over else ""


def chat_async(address: str, key: str) -> str:
    async def ask() -> str:
        async with async_client(address, key) as ollama:
            return (await ollama.chat("chat", ASK)).message.content or ""

    return asyncio.run(ask())


def chat_stream_async(address: str, key: str, hear: Hear) -> str:
    async def ask() -> str:
        pieces: list[str] = []
        over = False
        async with async_client(address, key) as ollama:
            async for part in await ollama.chat("chat", ASK, stream=True):
                if part.message.content:
                    hear(part.message.content)
                    pieces.append(part.message.content)
                over = bool(part.done)
        return "".join(pieces) if over else ""

    return asyncio.run(ask())
