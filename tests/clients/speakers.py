"""Real clients, each reduced to two verbs: ask for a text, and listen to a stream of it.

Whatever an SDK raises comes out as it is. Retries are off: one question is one request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.clients.rig import KEY

Hear = Callable[[str], None]


@dataclass(frozen=True)
class Speaker:
    """One way of using one SDK."""

    name: str
    package: str
    dialect: str
    plain: Callable[[str, str], str]  # address and key -> the text
    stream: Callable[[str, str, Hear], str]  # each piece is heard; -> the text as accumulated
    unauthorised: str  # the error's class for a wrong key
    exhausted: str  # for 503
    limited: str  # for 429
    broken: tuple[str, ...]  # for a stream that was cut

    def __str__(self) -> str:
        return self.name.replace(" ", "-")

    def need(self) -> None:
        pytest.importorskip(self.package)


def _chat_plain(address: str, key: str) -> str:
    from openai import OpenAI

    with OpenAI(base_url=address + "/v1", api_key=key, max_retries=0) as client:
        answer = client.chat.completions.create(
            model="chat", messages=[{"role": "user", "content": "hello"}]
        )
    return answer.choices[0].message.content or ""


def _chat_stream(address: str, key: str, hear: Hear) -> str:
    from openai import OpenAI

    with OpenAI(base_url=address + "/v1", api_key=key, max_retries=0) as client:
        pieces = []
        for chunk in client.chat.completions.create(
            model="chat", messages=[{"role": "user", "content": "hello"}], stream=True
        ):
            for choice in chunk.choices:
                if choice.delta.content:
                    hear(choice.delta.content)
                    pieces.append(choice.delta.content)
    return "".join(pieces)
