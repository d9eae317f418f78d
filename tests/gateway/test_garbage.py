"""A request leaves nothing for the garbage collector: memory must not wait for it."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.gateway.desk import HELLO, Line, aliases, provider, serving
from tests.rig import run
from understudy.rehearse.script import parse
from understudy.rehearse.server import FakeServer

QUICK = {"first_byte_timeout": 0.1, "idle_timeout": 0.1, "response_timeout": 0.1}
RULES = "[policy]\ntransient_retries = 0\n[health]\nthreshold = 1000\n"
PATHS = {"relayed": "/v1/chat/completions", "translated": "/v1/messages"}
FAULTS = ["'fine'", "503", "400", "reset-before-headers", "cut-body", "malformed", "silence"]
FAULTS += ["gzip-bomb", "too-large", "error-first", "cut-mid-stream", "error-mid-stream"]


@pytest.fixture(autouse=True)
def kept() -> Iterator[None]:
    """Garbage is kept where it can be looked at."""
    gc.disable()
    yield
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("way", PATHS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_request_leaves_no_garbage(fault: str, way: str, stream: bool) -> None:
    async def ask(address: str) -> None:
        line = await Line.to(address)
        line.send(
            "POST", PATHS[way], {**HELLO, "model": "chat", "max_tokens": 9, "stream": stream}
        )
        _, headers = await line.head()
        await line.rest(headers)
        line.close()
        await line.writer.wait_closed()

    async def work() -> Counter[str]:
        async with FakeServer(parse(f"m: {fault} ...\nw: 'hello there' ...")) as up:
            small = {**QUICK, "max_reply": 1 << 20}
            text = RULES + provider("p", up.address, **small) + provider("q", up.address, **small)
            async with serving(text + aliases(chat="p/m, q/w")) as served:
                await ask(served.address)
                gc.collect()
                gc.set_debug(gc.DEBUG_SAVEALL)
                gc.garbage.clear()
                for _ in range(3):
                    await ask(served.address)
                await asyncio.sleep(0)
                gc.collect()
                return Counter(type(found).__module__ for found in gc.garbage)

    left = run(work())
    ours = ("understudy.gateway", "understudy.core", "understudy.providers", "understudy.messages")
    assert [module for module in left if module.startswith(ours)] == []
