"""Who leaves is let go at once (R7), and what drips is ended in time (R8), on real sockets."""

from __future__ import annotations

import asyncio

import pytest

from tests.gateway.desk import HELLO, Line, aliases, provider, serving
from tests.rig import run, until
from understudy.rehearse.script import parse
from understudy.rehearse.server import FakeServer

CHAT = {**HELLO, "model": "chat"}


@pytest.mark.parametrize("stream", [False, True])
def test_the_upstream_is_closed_when_the_caller_leaves_and_nobody_is_marked(stream: bool) -> None:
    async def work() -> None:
        # Both read on after what they say, until the peer is gone.
        script = "m: silence-mid-stream" if stream else "m: hang"
        async with FakeServer(parse(script)) as up:
            text = provider("p", up.address) + aliases(chat="p/m")
            async with serving(text) as served, asyncio.timeout(30):
                line = await Line.to(served.address)
                line.send("POST", "/v1/chat/completions", {**CHAT, "stream": stream})
                await until(lambda: up.played)
                if stream:
                    await line.head()
                    await line.piece()
                line.close()
                async with asyncio.timeout(1.0):
                    await until(lambda: not up._peers)
                await until(lambda: served.events("request"))
                [told] = served.events("request")
                assert (told["outcome"], told["status"]) == ("left", 499)
                assert served.runtime.gateway.house.registry.health.snapshot() == {}

    run(work())


@pytest.mark.parametrize("stream", [False, True])
def test_ten_bytes_a_second_end_with_the_requests_own_time(stream: bool) -> None:
    async def work() -> None:
        async with FakeServer(parse("m: drip(0.1)")) as slow:
            text = provider("p", slow.address) + aliases(chat="p/m")
            async with serving(text) as served, asyncio.timeout(0.5 + 1.0 + 3.0):
                heard = await served.ask(
                    "POST",
                    "/v1/chat/completions",
                    {**CHAT, "stream": stream},
                    {"x-understudy-timeout": "0.5"},
                )
                assert heard.status == 503
                assert b"p/m: stall_pre_first_byte" in heard.body

    run(work())
