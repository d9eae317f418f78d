"""Servers that close a connection behind an answer without saying so, as hand-made ones do."""

from __future__ import annotations

import json

import pytest

from tests.gateway.desk import aliases, answer, provider, serving
from tests.rig import run
from tests.transport.rig import Server, close, request


def told(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n%b" % (status, len(body), body)


@pytest.mark.parametrize("status", [200, 503])
def test_what_is_asked_behind_a_servers_back_is_asked_anew_and_blames_nobody(status: int) -> None:
    """The retry comes at once, over the connection that is just being closed."""
    first = told(status, answer() if status == 200 else json.dumps({"error": "no"}).encode())

    async def work() -> None:
        async with Server([request, first, close], [request, told(200, answer()), close]) as up:
            text = provider("p", f"http://127.0.0.1:{up.origin.port}") + aliases(chat="p/m")
            async with serving(text) as served:
                for n in range(1, 5):
                    heard = await served.chat()
                    blip = "p/m=transient, " if n == 1 and status == 503 else ""
                    assert heard.headers["x-understudy-attempts"] == f"{blip}p/m=ok"
                assert [len(peer.requests) for peer in up.peers] == [1] * len(up.peers)

    run(work())
