"""Pieces of a stream that come in a rush are gathered; those that come one by one are not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.gateway.desk import DONE, HELLO, Line, Upstream, always, ask, chunk
from tests.rig import run, until
from tests.served import listening, provider
from understudy import Registry
from understudy.gateway.hops import QUICK, REST
from understudy.gateway.house import House
from understudy.testing import ManualClock

PIECES = tuple(chunk(str(number), "stop" if number == 4 else None) for number in range(5))


class Tap:
    """A stream whose pieces come when they are asked for, and the client that reads it."""

    def __init__(
        self, upstream: Upstream, cues: list[asyncio.Event], line: Line, address: str
    ) -> None:
        self.upstream = upstream
        self.line = line
        self.address = address
        self._cues = cues

    async def send(self, pieces: int) -> None:
        """The target sends so many; what the gateway does about it is done afterwards."""
        for _ in range(pieces):
            self._cues.pop(0).set()
            for _ in range(3):  # turns of the loop in which it could have been passed on
                await ask(self.address, "GET", "/healthz")

    async def piece(self) -> bytes:
        async with asyncio.timeout(30):
            return await self.line.piece()


@asynccontextmanager
async def tapped() -> AsyncIterator[tuple[Tap, ManualClock]]:
    """A stream with its first piece passed on, and the gateway's clock."""
    cues = [asyncio.Event() for _ in PIECES]
    script = tuple(part for pair in zip(cues, PIECES, strict=True) for part in pair)
    clock = ManualClock()
    registry = Registry(env={}, clock=clock)
    async with Upstream(always((*script, DONE))) as upstream:
        registry.register_provider(provider("openai", upstream.url, "p"))
        async with listening(House(registry)) as address:
            line = await Line.to(address)
            line.send("POST", "/v1/chat/completions", {**HELLO, "model": "p/m", "stream": True})
            tap = Tap(upstream, cues, line, address)
            await tap.send(1)
            await line.head()
            assert await tap.piece() == PIECES[0]
            yield tap, clock
            line.close()


def test_after_a_quick_piece_what_comes_within_a_rest_is_one_piece() -> None:
    async def work() -> None:
        async with tapped() as (tap, clock):
            await tap.send(1)
            assert await tap.piece() == PIECES[1]
            await tap.send(2)
            clock.advance(REST)
            assert await tap.piece() == PIECES[2] + PIECES[3]

    run(work())


def test_pieces_that_are_apart_are_passed_on_one_by_one() -> None:
    async def work() -> None:
        async with tapped() as (tap, clock):
            for piece in PIECES[1:4]:
                clock.advance(QUICK)
                await tap.send(1)
                assert await tap.piece() == piece

    run(work())


def test_a_stream_that_ends_in_a_rush_loses_nothing() -> None:
    async def work() -> None:
        async with tapped() as (tap, clock):
            await tap.send(4)
            assert await tap.piece() == PIECES[1]
            clock.advance(REST)
            assert await tap.piece() == b"".join(PIECES[2:]) + DONE
            assert await tap.piece() == b""

    run(work())


def test_a_client_that_leaves_during_a_rest_takes_the_upstream_along() -> None:
    async def work() -> None:
        async with tapped() as (tap, clock):
            await tap.send(1)
            assert await tap.piece() == PIECES[1]
            tap.line.close()
            await tap.send(2)  # to nobody
            await until(lambda: not tap.upstream.open)
            clock.advance(REST)

    run(work())
