"""What clients are told when the gateway stops."""

from __future__ import annotations

import asyncio
from threading import Event

import pytest

from tests.gateway.desk import (
    DONE,
    HELLO,
    HELLO_STREAM,
    Line,
    Upstream,
    aliases,
    always,
    fronted,
    never,
    provider,
    serving,
)
from tests.gateway.test_inbound import BODY, CHAT, LENGTH, STOPPED, STREAM, heard, raw
from tests.gateway.test_limits import DIALECTS
from tests.rig import run, until

STREAMS = {
    "openai": ("/v1/chat/completions", {}),
    "responses": ("/v1/responses", {"input": "hello", "messages": None}),
    "anthropic": ("/v1/messages", {"max_tokens": 5}),
    "ollama": ("/api/chat", {}),
}
DRAIN = "[gateway]\ndrain_timeout = 0.02\n"


@pytest.mark.parametrize("surface", STREAMS)
def test_a_stream_that_is_cut_ends_with_the_dialects_error(surface: str) -> None:
    path, more = STREAMS[surface]

    async def work() -> None:
        pieces = (HELLO_STREAM[0], asyncio.Event())
        async with fronted(always(pieces), DRAIN) as (served, _):
            line = await Line.to(served.address)
            asked = {"model": "chat", "stream": True, "messages": HELLO["messages"], **more}
            line.send("POST", path, {k: v for k, v in asked.items() if v is not None})
            status, headers = await line.head()
            first = await line.piece()
            served.runtime.stopping.set()
            last = await line.rest(headers)
            assert await line.reader.read() == b""
            line.close()
            assert status == 200
            assert first
            assert STOPPED.encode() in last
            assert last.count(b"error") >= 1
            for mark in (DONE, b"message_stop", b"response.completed", b'"done":true'):
                assert mark not in last
            await until(lambda: served.events("request"))
            [told] = served.events("request")
            assert (told["status"], told["outcome"]) == (200, "broken")
            assert STOPPED in str(told["reason"])
            [over] = served.events("failover_abort")
            assert (over["attempt"], over["then"]) == (1, "stop")
            assert not served.runtime.gateway.house.registry.health.snapshot()

    run(work())


@pytest.mark.parametrize("surface", DIALECTS)
def test_who_has_no_answer_yet_is_told_to_ask_again(surface: str) -> None:
    path, body = DIALECTS[surface]

    async def work() -> None:
        async with Upstream(never) as up:
            spoken = "openai" if surface == "embeddings" else surface
            text = DRAIN + provider("p", up.url, spoken) + aliases(chat="p/m")
            async with serving(text) as served:
                asking = asyncio.ensure_future(served.ask("POST", path, body))
                await until(lambda: up.asked)
                served.runtime.stopping.set()
                found = await asking
                assert (found.status, found.headers["retry-after"]) == (503, "1")
                assert found.headers["connection"] == "close"
                assert STOPPED in str(found.error["message"])
                assert found.json.get("type") == ("error" if surface == "anthropic" else None)
                assert found.error.get("status") == (
                    "UNAVAILABLE" if surface == "gemini" else None
                )
                [told] = served.events("request")
                assert (told["status"], told["outcome"]) == (503, "failed")
                [over] = served.events("failover_abort")
                assert (over["attempt"], over["then"]) == (1, "stop")
                metrics = served.runtime.metrics.text()
                assert b'status="503",outcome="failed"} 1' in metrics

    run(work())


def test_who_is_still_asking_when_the_gateway_stops_is_told_so_at_once() -> None:
    async def work() -> None:
        async with serving("") as served:
            line = await Line.to(served.address)
            line.writer.write(raw(CHAT, LENGTH, body=BODY[:9]))
            await until(lambda: [c for c in served.runtime.server._connections if c._reading])
            served.runtime.stopping.set()
            found = await heard(line)
            assert (found.status, found.headers["retry-after"]) == (503, "1")
            assert STOPPED in str(found.error["message"])
            line.close()

    run(work())


def test_a_stream_of_which_nothing_but_signs_of_life_came_ends_with_an_error_too() -> None:
    """Its request is still being made, in a thread that is not free yet."""

    async def work() -> None:
        text = DRAIN + "keepalive = 0.01\n"
        busy = Event()
        try:
            async with fronted(always(HELLO_STREAM), text) as (served, up), asyncio.timeout(20):
                loop = asyncio.get_running_loop()
                for _ in range(64):
                    loop.run_in_executor(None, busy.wait)
                line = await Line.to(served.address)
                long = STREAM.replace(b"hello", b"x" * 300_000)
                line.send("POST", "/v1/chat/completions", long)
                _, headers = await line.head()
                assert await line.piece() == b": still waiting\n\n"
                served.runtime.stopping.set()
                assert STOPPED.encode() in await line.rest(headers)
                line.close()
                assert up.asked == []
                busy.set()
        finally:
            busy.set()

    run(work())


@pytest.mark.parametrize("reads_on", [False, True])
def test_who_takes_nothing_may_read_on_but_does_not_hold_up_the_end(reads_on: bool) -> None:
    async def work() -> None:
        rush = (HELLO_STREAM[0] * 100_000, asyncio.Event())
        async with fronted(always(rush), DRAIN) as (served, _), asyncio.timeout(30):
            line = await Line.to(served.address)
            line.send("POST", "/v1/chat/completions", STREAM)
            _, headers = await line.head()
            line.writer.transport.pause_reading()  # type: ignore[attr-defined]
            (connection,) = served.runtime.server._connections
            while not connection.paused:  # noqa: ASYNC110 - bounded by the timeout
                await asyncio.sleep(0)
            served.runtime.stopping.set()
            while not served.events("request"):  # noqa: ASYNC110 - bounded by the timeout
                await asyncio.sleep(0)
            if reads_on:
                line.writer.transport.resume_reading()  # type: ignore[attr-defined]
                assert STOPPED.encode() in (await line.rest(headers))[-200:]
        line.close()
        assert [told["outcome"] for told in served.events("request")] == ["broken"]

    run(work())
