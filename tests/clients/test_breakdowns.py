"""A bug of our own: the client is told, or cut off. It is never left waiting, nor lied to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.clients import speak_openai
from tests.clients.rig import KEY, Backstage, served
from understudy.gateway.http import Reply, Request

openai = pytest.importorskip("openai")


@contextmanager
def listened(backstage: Backstage) -> Iterator[list[str]]:
    """What the event loop was told went wrong."""
    told: list[str] = []

    async def listen(handler: Any) -> None:
        asyncio.get_running_loop().set_exception_handler(handler)

    backstage.run(listen(lambda _, context: told.append(context["message"])))
    try:
        yield told
    finally:
        backstage.run(listen(None))


def test_a_breakdown_before_the_answer_is_a_500(backstage: Backstage) -> None:
    async def broken(request: Request, reply: Reply) -> None:
        raise LookupError("a bug")

    with (
        listened(backstage) as told,
        backstage.held(served(broken)) as address,
        pytest.raises(openai.InternalServerError) as caught,
    ):
        speak_openai.chat(address, KEY)
    assert caught.value.status_code == 500
    assert told == ["POST /v1/chat/completions broke"]


def test_a_breakdown_within_an_answer_breaks_the_connection(backstage: Backstage) -> None:
    async def broken(request: Request, reply: Reply) -> None:
        reply.start(200, b"content-type: text/event-stream\r\n", b": hello\n\n")
        raise LookupError("a bug")

    with (
        listened(backstage) as told,
        backstage.held(served(broken)) as address,
        pytest.raises(openai.APIConnectionError),
    ):
        speak_openai.chat_stream(address, KEY, print)
    assert told == ["POST /v1/chat/completions broke"]
