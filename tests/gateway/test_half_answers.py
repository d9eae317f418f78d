"""A plain answer that begins and is not whole in time broke off; one that never began stalled."""

from __future__ import annotations

import asyncio

import pytest

from tests.gateway.desk import Upstream, aliases, always, provider, serving
from tests.rig import run
from understudy import ChainExhausted, HttpProvider, Registry
from understudy.testing import told

HALF = (b'{"id":',)
NOTHING: tuple[bytes, ...] = ()


@pytest.mark.parametrize(
    ("body", "fault", "calls"),
    [(HALF, "transient", 2), (NOTHING, "stall_pre_first_byte", 1)],
    ids=["half an answer", "nothing"],
)
def test_in_the_gateway(body: tuple[bytes, ...], fault: str, calls: int) -> None:
    async def work() -> None:
        async with Upstream(always((*body, asyncio.Event()))) as up:
            text = provider("p", up.url, response_timeout=0.05) + aliases(chat="p/m")
            async with serving(text) as served:
                heard = await served.chat()
                assert heard.status == 503
                story = ", ".join([f"p/m={fault}"] * calls)
                assert heard.headers["x-understudy-attempts"] == story

    run(work())


@pytest.mark.parametrize(
    ("body", "fault", "calls"),
    [(HALF, "transient", 2), (NOTHING, "stall_pre_first_byte", 1)],
    ids=["half an answer", "nothing"],
)
def test_in_the_library(body: tuple[bytes, ...], fault: str, calls: int) -> None:
    async def work() -> None:
        async with Upstream(always((*body, asyncio.Event()))) as up:
            registry = Registry(env={})
            registry.register_provider(
                HttpProvider("p", base_url=up.url, api_key="k", response_timeout=0.05)
            )
            with pytest.raises(ChainExhausted) as caught:
                await registry.parse("p/m").generate("hi")
            assert told(caught.value.attempts) == [f"p/m={fault}"] * calls
            await registry.aclose()

    run(work())
