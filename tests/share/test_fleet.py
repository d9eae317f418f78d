"""Three gateways as processes, one Redis, one upstream that dies: what sharing spares it.

Alone, each has to learn of every round of the outage by itself, and one that is replaced begins
anew. Sharing, one learns for all, and who is new is told. Three who are never replaced do as well
as a third at best: each of them alone asks as often as the one who asks for all.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from random import Random

import pytest

from tests.gateway.desk import (
    Asked,
    Line,
    Plays,
    Process,
    Upstream,
    aliases,
    answer,
    process,
    provider,
    says,
)
from tests.rig import run
from tests.share.server import needs_redis, redis

GATEWAYS = 3
RATE = 100  # requests a second at each
DYING = 1.5  # seconds in which the upstream fails more and more often
DEAD = 6.0  # seconds after
REPLACED = 2.0  # seconds after its death that the first gateway is replaced
BODY = {"model": "chat", "messages": [{"role": "user", "content": "hi"}]}


class Dying:
    """An upstream that answers ever less often, then never again."""

    def __init__(self) -> None:
        self._luck = Random(7)
        self._began = 0.0
        self.calls = 0  # since it is dead

    def begin(self, now: float) -> None:
        self._began = now

    def __call__(self, asked: Asked) -> Plays:
        illness = (asyncio.get_running_loop().time() - self._began) / DYING
        self.calls += illness >= 1
        return says(503) if self._luck.random() < illness else Plays(200, answer())


@dataclass
class Fleet:
    """Gateways of one configuration, and the clients of each."""

    stack: AsyncExitStack
    text: str
    gateways: list[Process] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    async def open(self) -> None:
        self.gateways = list(await asyncio.gather(*(self._another() for _ in range(GATEWAYS))))

    async def _another(self) -> Process:
        return await self.stack.enter_async_context(process(self.text))

    async def replace(self, place: int, after: float) -> None:
        """As a deployment does: the next one first."""
        await asyncio.sleep(after)
        self.gateways[place] = await self._another()

    async def ask(self, place: int) -> None:
        """At a steady rate and not in step with the others, on a connection kept alive."""
        loop = asyncio.get_running_loop()
        began, asked = loop.time() + place / RATE / GATEWAYS, 0
        gateway, line = self.gateways[place], await Line.to(self.gateways[place].address)
        while (due := asked / RATE) < DYING + DEAD:
            await asyncio.sleep(max(0.0, began + due - loop.time()))
            if gateway is not self.gateways[place]:
                line.close()
                gateway, line = self.gateways[place], await Line.to(self.gateways[place].address)
            self.statuses.append((await line.ask("POST", "/v1/chat/completions", BODY)).status)
            asked += 1
        line.close()


async def outage(share: str, *, replaced: bool) -> tuple[int, list[int]]:
    """The calls that reached the dead upstream, and what the clients saw."""
    dying = Dying()
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(Upstream(dying))
        second = await stack.enter_async_context(Upstream(lambda _: Plays(200, answer())))
        text = provider("p", first.url) + provider("q", second.url) + aliases(chat="p/m, q/m")
        text += "[health]\nbase = 0.5\n[gateway]\naccess_log = false\n" + share
        fleet = Fleet(stack, text)
        await fleet.open()
        work = [fleet.ask(place) for place in range(GATEWAYS)]
        if replaced:
            work += [fleet.replace(n, DYING + REPLACED + n / 2) for n in range(GATEWAYS)]
        dying.begin(asyncio.get_running_loop().time())
        await asyncio.gather(*work)
        return dying.calls, fleet.statuses


@needs_redis
@pytest.mark.parametrize(("replaced", "times"), [(True, 3), (False, 2)])
def test_a_dead_upstream_is_asked_by_one_for_all(replaced: bool, times: int) -> None:
    async def work() -> None:
        async with redis() as server:
            share = f'[share]\nurl = "{server.url}"\n'
            runs = [outage(text, replaced=replaced) for text in ("", share)]
            (alone, seen_alone), (shared, seen) = await asyncio.gather(*runs)
        assert set(seen) == set(seen_alone) == {200}
        assert shared * times <= alone

    run(work())
