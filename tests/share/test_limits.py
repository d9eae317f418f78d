"""Limits across hosts, over a real server: what gateways let through together, and alone."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis

from tests.gateway.desk import (
    Line,
    Play,
    Served,
    Upstream,
    aliases,
    always,
    answer,
    provider,
    serving,
)
from tests.rig import run
from tests.share.joined import SECRET, rights_on_the_page
from tests.share.server import Server, eventually, free_port, needs_redis, redis
from tests.share.test_limits_laws import Shared as Model
from tests.share.test_redis_gateways import Load, _killed, _paused
from understudy.gateway.config import InvalidConfig, read_config
from understudy.gateway.portion import portion
from understudy.share.limits import SharedLimits
from understudy.share.limits_lease import Claim, Lease
from understudy.share.limits_script import TAKE, arguments, bucket_of
from understudy.share.tie import Place
from understudy.testing import ManualClock

pytestmark = needs_redis
HELLO = {"model": "chat", "messages": [{"role": "user", "content": "hi"}]}


# -- gateways


@asynccontextmanager
async def gateways(
    number: int, gateway: str, share: str = "", play: Play | None = None
) -> AsyncIterator[tuple[list[Served], Server]]:
    """So many in front of one upstream and one server; `share` may switch limits on."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(redis())
        up = await stack.enter_async_context(Upstream(play or always()))
        text = f"[gateway]\naccess_log = false\n{gateway}\n" + provider("p", up.url)
        text += aliases(chat="p/m") + f'[share]\nurl = "{server.url}"\n{share}\n'
        yield [await stack.enter_async_context(serving(text)) for _ in range(number)], server


async def hammered(served: list[Served], total: int) -> tuple[list[int], float]:
    """Everybody is asked without a pause; how many each let in, and the seconds it took."""
    entered, left = [0] * len(served), count(total, -1)

    async def client(number: int) -> None:
        line = await Line.to(served[number].address)
        while next(left) > 0:
            heard = await line.ask("POST", "/v1/chat/completions", HELLO)
            entered[number] += heard.status == 200
        line.close()

    began = time.monotonic()
    await asyncio.gather(*(client(n) for n in range(len(served)) for _ in range(3)))
    return entered, time.monotonic() - began


async def metrics(served: Served) -> dict[str, float]:
    text = (await served.ask("GET", "/metrics")).body.decode()
    rows = re.findall(r"^understudy_((?:share|limits)_\S+) (\S+)$", text, re.M)
    return {name: float(value) for name, value in rows}


def test_three_gateways_that_share_let_in_what_one_may() -> None:
    async def work() -> None:
        async with gateways(3, "rate = 200", "limits = true") as (served, _):
            entered, seconds = await hammered(served, 3000)
            worth = 200 * (1 + seconds)
            assert 0.5 * worth < sum(entered) < 1.5 * worth
            assert min(entered) > 0
            assert not any(one.events("limits_open") for one in served)

    run(work())


def test_three_that_do_not_share_let_in_three_times_as_many() -> None:
    async def work() -> None:
        async with gateways(3, "rate = 200") as (served, _):
            entered, _ = await hammered(served, 3000)
            assert min(entered) >= 200

    run(work())


@pytest.mark.parametrize(("share", "least"), [("limits = true", 60), ("limits = false", 1)])
def test_tokens_used_at_one_gateway_are_owed_at_the_other(share: str, least: int) -> None:
    """500 tokens at each, at 10 a second: together that is 100 seconds, for each alone 50."""

    async def work() -> None:
        play = always(answer(tokens=(300, 200)))
        async with gateways(2, "token_rate = 10", share, play) as (served, _):
            for one in served:
                assert (await one.chat()).status == 200
            for one in served:
                owed = 0
                while owed < least:
                    heard = await one.chat()
                    assert heard.status == 429
                    assert "may use 10 tokens a second" in str(heard.error["message"])
                    owed = int(heard.headers["retry-after"])
                assert owed <= (100 if least > 50 else 50)

    run(work())


@pytest.mark.parametrize("trouble", [_killed, _paused])
def test_while_the_server_is_away_each_process_has_its_own_limit_and_nobody_waits(
    trouble: Callable[[Server, Callable[[], Awaitable[None]]], Awaitable[None]],
) -> None:
    async def work() -> None:
        async with gateways(2, "rate = 100", "limits = true") as (served, server):
            assert (await metrics(served[0]))["limits_shared"] == 1
            loads = [Load(one) for one in served]

            async def meanwhile() -> None:
                await eventually(lambda: all(one.events("limits_open") for one in served))
                began, before = time.monotonic(), [len(load.heard) for load in loads]
                await eventually(
                    lambda: all(
                        len(load.heard) > was + 600
                        for load, was in zip(loads, before, strict=True)
                    )
                )
                seconds = time.monotonic() - began
                for load, was in zip(loads, before, strict=True):
                    entered = sum(status == 200 for status, _ in load.heard[was:])
                    assert 50 * seconds < entered < 100 * (1 + seconds) + 5
                found = await metrics(served[0])
                assert found["limits_shared"] == 0
                assert found['limits_open_total{limit="requests"}'] > 500

            await trouble(server, meanwhile)
            await eventually(lambda: all(one.events("limits_shared") for one in served))
            for load in loads:
                await load.end()
                assert {status for status, _ in load.heard} == {200, 429}
                assert max(seconds for _, seconds in load.heard) < 1.5
            for one in served:
                kinds = [line["event"] for line in one.lines if "limits" in str(line["event"])]
                assert kinds == ["limits_open", "limits_shared"]
                assert (await metrics(one))["limits_shared"] == 1

    run(work())


def test_a_reload_takes_the_shared_limits_along() -> None:
    async def work() -> None:
        async with gateways(1, "rate = 1000", "limits = true") as ([served], server):
            assert (await served.chat()).status == 200
            served.path.write_text(served.path.read_text().replace("rate = 1000", "rate = 0.01"))
            served.runtime.reload()
            await eventually(lambda: served.events("reloaded"))
            while (heard := await served.chat()).status == 200:  # what was granted before
                pass
            assert "may ask 0.01 times a second" in str(heard.error["message"])
            await server.kill()
            async with asyncio.timeout(20):
                while (await metrics(served)).get('limits_open_total{limit="requests"}', 0) == 0:
                    await served.chat()

    run(work())


def test_the_metrics_tell_of_sharing_only_where_something_is_shared() -> None:
    async def work() -> None:
        async with gateways(2, "", "limits = true") as ([one, other], _):
            await one.ask("POST", "/understudy/api/bench", {"key": "p/m", "seconds": 60})
            health = other.runtime.gateway.house.registry.health
            await eventually(lambda: not health.available("p/m"))
            ours, theirs = await metrics(one), await metrics(other)
            assert (ours["share_connected"], ours["limits_shared"]) == (1, 1)
            assert ours['share_messages_total{direction="sent"}'] == 1
            assert theirs['share_messages_total{direction="taken"}'] == 1
        async with serving(aliases(chat="openai/m")) as alone:
            assert await metrics(alone) == {}

    run(work())


# -- the server


@asynccontextmanager
async def stewards(*places: Place) -> AsyncIterator[list[tuple[SharedLimits, list[str]]]]:
    """Each with what it had to say."""
    async with AsyncExitStack() as stack:
        found = []
        for place in places:
            said: list[str] = []
            note = lambda event, level, said=said, **more: said.append(  # noqa: E731
                f"{event} {json.dumps(more)}"
            )
            limits = SharedLimits(place, note, time.monotonic)
            stack.push_async_callback(limits.close)
            await limits.start()
            found.append((limits, said))
        yield found


async def leased(limits: SharedLimits) -> Lease:
    """A lease that was granted a portion."""
    lease = limits.lease("requests", "client1", 1000.0)
    assert not lease.short()
    await eventually(lambda: lease.left)
    return lease


@settings(max_examples=60, deadline=None)
@given(
    st.floats(0.5, 500),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 300)), max_size=12),
)
def _grants_are_fair(
    server: Redis, names: count[int], rate: float, claims: list[tuple[int, int, int]]
) -> None:
    key, clock = f"b{next(names)}", ManualClock()
    model, first = Model(rate, clock), time.monotonic()
    began, given_out = first, 0.0
    for back, over, wanted in claims:
        claim, asked = Claim(rate, float(back), float(over), wanted), time.monotonic()
        told = server.eval(TAKE, 1, key, *arguments([claim]))
        seconds = time.monotonic() - began
        portion, level = (float(number) for number in told)
        model.take(Claim(rate, float(back), float(over), 0))
        grown = rate * seconds + 1e-3
        assert model.level - 1e-3 <= level + portion <= model.level + grown
        assert 0 <= portion <= wanted
        assert portion == int(portion)
        assert portion <= max(1.0, (level + portion) / 2)
        assert portion >= 1 or wanted == 0 or level < 1
        model.level = level
        given_out += portion - back
        assert given_out <= max(1.0, rate) + rate * (time.monotonic() - first) + 1e-3
        assert server.pttl(key) > 50_000
        began = asked


def test_the_script_never_grants_more_than_one_seconds_worth_and_the_rate() -> None:
    async def work() -> None:
        async with redis() as server:
            with Redis(port=server.port) as client:
                await asyncio.to_thread(_grants_are_fair, client, count())

    run(work())


def test_what_a_process_held_that_died_is_there_again_soon() -> None:
    async def work() -> None:
        async with redis() as server:
            place = Place(server.url, limits=True)
            async with stewards(place) as [(dying, _)]:
                lease = await leased(dying)
                held = lease.left
            async with stewards(place) as [(other, _)]:
                lease = await leased(other)
                began, entered = time.monotonic(), 0
                while entered < 2000:
                    if not lease.short():
                        lease.spend(1.0)
                        entered += 1
                    await asyncio.sleep(0)
                seconds = time.monotonic() - began
                assert held >= 100
                assert 0.5 < seconds < 3.0  # one second's worth at once, the rest in another

    run(work())


def test_what_was_granted_by_a_server_that_is_lost_counts_for_nothing() -> None:
    async def work() -> None:
        async with redis() as server, stewards(Place(server.url)) as [(limits, _)]:
            lease = await leased(limits)
            await server.kill()
            await eventually(lambda: lease.short() == 0.0 and not limits.shared)
            assert lease.left == 0.0

    run(work())


def test_what_is_not_used_is_given_back_unasked() -> None:
    async def work() -> None:
        async with redis() as server, stewards(Place(server.url)) as [(limits, said)]:
            lease = await leased(limits)
            await eventually(lambda: lease.left == 0.0)
            assert said == []

    run(work())


def test_a_full_server_is_as_good_as_none_and_told_of_once() -> None:
    async def work() -> None:
        async with redis() as server, stewards(Place(server.url)) as [(limits, said)]:
            lease = await leased(limits)
            await server.order("CONFIG", "SET", "maxmemory", 1)
            await eventually(lambda: lease.short() == 0.0 and not limits.shared)
            lease.short()
            assert limits.alone()["requests"] > 0
            await server.order("CONFIG", "SET", "maxmemory", 0)
            await eventually(lambda: limits.shared)
            assert [line.partition(" ")[0] for line in said] == [
                "limits_open",
                "limits_shared",
            ]
            assert "OOM" in said[0] or "memory" in said[0]

    run(work())


def test_the_rights_on_the_page_are_enough_for_limits_and_no_secret_is_shown() -> None:
    async def work() -> None:
        async with redis() as server:
            await server.order(*rights_on_the_page())
            url = f"redis://understudy:{SECRET}@127.0.0.1:{server.port}"
            wrong = f"redis://understudy:{SECRET}no@127.0.0.1:{server.port}"
            async with stewards(Place(url), Place(wrong)) as [(limits, said), (barred, why)]:
                await leased(limits)
                await eventually(lambda: why)
                assert (said, limits.shared, barred.shared) == ([], True, False)
                assert SECRET not in str(why)

    run(work())


def test_buckets_of_a_deployment_lie_on_one_node_of_a_cluster() -> None:
    async def work() -> None:
        bus = ("--cluster-port", str(free_port()))
        async with redis("--cluster-enabled", "yes", *bus) as server:
            await server.order("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            place = Place(server.url, cluster=True)
            async with stewards(place) as [(limits, _)]:
                await eventually(lambda: limits.shared)
                leases = [limits.lease("requests", f"client{n}", 10.0) for n in range(5)]
                assert [lease.short() for lease in leases] == [0.0] * 5
                await eventually(lambda: all(lease.left for lease in leases))

    run(work())
    assert bucket_of("x", "tokens", "client1") == "understudy:{x}:limit:tokens:client1"


# -- the file


def test_limits_that_are_shared_are_not_divided_among_workers() -> None:
    text = "[gateway]\nrate = 6\ntoken_rate = 90\nmax_concurrent = 4\n[share]\nurl = 'redis://x'\n"
    names = ("rate", "token_rate", "max_concurrent")
    parts = {
        limits: portion(read_config(f"{text}limits = {limits}\n", {}), 2).gateway
        for limits in ("true", "false")
    }
    assert [parts["true"][name] for name in names] == [6, 90, 2]
    assert [parts["false"][name] for name in names] == [3, 45, 2]


def test_limits_need_a_server_to_be_shared_through() -> None:
    with pytest.raises(InvalidConfig) as caught:
        read_config("[share]\nlimits = true\n", {})
    assert [problem.path for problem in caught.value.problems] == ["share.limits"]
