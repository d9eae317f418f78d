"""What newcomers are told when all connections are taken."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.gateway.desk import DONE, HELLO, Line, Served, always, chunk, fronted
from tests.rig import run
from understudy.gateway.connection import Connection
from understudy.gateway.server import SPARE

STREAM = {**HELLO, "model": "chat", "stream": True}
ASK = ("POST", "/v1/chat/completions", STREAM)
FULL = "[gateway]\nmax_connections = 2\n"


@asynccontextmanager
async def full_house() -> AsyncIterator[tuple[Served, list[Line], asyncio.Event]]:
    """Both places are taken by streams, which go on when they are told to."""
    rest = asyncio.Event()
    pieces = (chunk("he"), rest, chunk("llo", "stop"), DONE)
    async with fronted(always(pieces), FULL) as (served, _), asyncio.timeout(60):
        lines = [await Line.to(served.address) for _ in range(2)]
        for line in lines:
            line.send(*ASK)
            await line.head()
            await line.piece()
        try:
            yield served, lines, rest
        finally:
            rest.set()
            for line in lines:
                line.close()


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/understudy/api/health"])
def test_operators_are_answered_when_all_connections_are_taken(path: str) -> None:
    async def work() -> tuple[int, str]:
        async with full_house() as (served, _, _):
            told = await served.ask("GET", path)
            return told.status, told.headers["connection"]

    assert run(work()) == (200, "close")


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("/v1/chat/completions", {"type": "server_error", "code": "crowded"}),
        ("/v1/messages", {"type": "overloaded_error", "code": "crowded"}),
    ],
)
def test_a_newcomer_is_told_in_its_dialect_to_ask_again(path: str, word: dict[str, str]) -> None:
    async def work() -> None:
        async with full_house() as (served, lines, rest):
            told = await served.ask("POST", path, STREAM)
            assert (told.status, told.headers["retry-after"]) == (503, "1")
            assert told.error["message"] == "all connections are taken; ask again"
            assert word.items() <= told.error.items()
            rest.set()
            for line in lines:  # nobody inside noticed
                assert (await line.rest({"transfer-encoding": "chunked"})).endswith(DONE)

    run(work())


def test_a_place_that_comes_free_is_anybodys() -> None:
    async def work() -> list[int]:
        async with full_house() as (served, lines, rest):
            rest.set()
            statuses = [(await served.ask(*ASK)).status]
            lines[0].close()
            while statuses[-1] == 503:  # until the gateway has seen it go
                statuses.append((await served.ask(*ASK)).status)
            return [statuses[0], statuses[-1]]

    assert run(work()) == [503, 200]


def test_who_was_turned_away_leaves_nothing_behind() -> None:
    async def work() -> tuple[int, int]:
        async with full_house() as (served, _, _):
            inside = connections()
            for _ in range(20):
                await served.ask(*ASK)
            server = served.runtime.server
            while server.open_connections > 2:  # noqa: ASYNC110 - bounded by the house's timeout
                await asyncio.sleep(0)
            return inside, connections()

    inside, kept = run(work())
    assert kept == inside


def connections() -> int:
    """Those that somebody still knows."""
    gc.collect()
    return sum(isinstance(thing, Connection) for thing in gc.get_objects())


def test_beyond_the_spare_places_nobody_is_let_in() -> None:
    async def work() -> tuple[int, int]:
        async with full_house() as (served, _, _):
            waiting = [await Line.to(served.address) for _ in range(SPARE + 3)]
            gone = [line.reader.read() for line in waiting[SPARE:]]
            heard = await asyncio.gather(*gone, return_exceptions=True)
            open_now = served.runtime.server.open_connections
            for line in waiting:
                line.close()
            return len(heard), open_now

    assert run(work()) == (3, 2 + SPARE)
