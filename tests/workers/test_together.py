"""Workers know what one of them learned, and each tells of the whole machine."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.gateway.desk import Line, Upstream, always, ask, says
from tests.rig import run
from tests.workers.stage import API, House, supervised, text_of
from understudy.core.health import Change
from understudy.gateway.admin import Board
from understudy.gateway.app import Gateway
from understudy.gateway.build import demo_house
from understudy.gateway.crew import Crew
from understudy.gateway.feed import Feed
from understudy.gateway.past import Past
from understudy.gateway.siblings import Glimpse, Question
from understudy.gateway.station import Station
from understudy.observe.metrics import Metrics
from understudy.observe.record import Opening, Record
from understudy.testing import ManualClock

KEY = "p/m"


def benched(glimpses: list[Glimpse]) -> list[bool]:
    """Does each of them know that the target sits out?"""
    return [KEY in g.states and g.states[KEY].bench is not None for g in glimpses]


async def told(house: House, what: str) -> dict[str, object]:
    heard = await ask(house.address, "GET", f"{API}/{what}")
    assert heard.status == 200, heard.body
    return heard.json


async def ordered(house: House, what: str, body: dict[str, object]) -> dict[str, object]:
    heard = await ask(house.address, "POST", f"{API}/{what}", body)
    assert heard.status == 200, heard.body
    return heard.json


# -- health


def test_what_one_worker_learns_spares_all_of_them_the_calls() -> None:
    async def work() -> None:
        async with Upstream(lambda _: says(503)) as up, supervised(text_of(up.url, 3)) as house:
            assert (await house.chat()).status == 503
            await house.until(lambda seen: benched(seen) == [True] * 3)
            calls = len(up.asked)
            answers = await asyncio.gather(*(house.chat() for _ in range(24)))
            assert {heard.status for heard in answers} == {503}
            assert len(up.asked) == calls == 2

    run(work())


def test_a_credential_that_is_out_is_out_for_all_of_them() -> None:
    async def work() -> None:
        async with Upstream(lambda _: says(401)) as up, supervised(text_of(up.url)) as house:
            await house.chat()

            def out(seen: list[Glimpse]) -> bool:
                keys = [{k for k, s in g.states.items() if s.bench is not None} for g in seen]
                return len(keys) == 2 and all(any("#" in k for k in found) for found in keys)

            await house.until(out)
            assert len(up.asked) == 1

    run(work())


def test_an_operators_bench_and_its_end_reach_all_of_them() -> None:
    async def work() -> None:
        async with Upstream(always()) as up, supervised(text_of(up.url, 3)) as house:
            await ordered(house, "bench", {"key": KEY, "seconds": 600, "why": "upgrade"})
            await house.until(lambda seen: benched(seen) == [True] * 3)
            assert {(await house.chat()).status for _ in range(12)} == {503}
            assert (await ordered(house, "unbench", {"key": KEY}))["cleared"] is True
            await house.until(lambda seen: benched(seen) == [False] * 3)
            assert {(await house.chat()).status for _ in range(12)} == {200}
            assert not up.asked[12:]

    run(work())


def test_a_worker_that_starts_learns_what_the_others_know() -> None:
    async def work() -> None:
        async with Upstream(always()) as up, supervised(text_of(up.url)) as house:
            await ordered(house, "bench", {"key": KEY, "seconds": 600})
            await house.until(lambda seen: benched(seen) == [True] * 2)
            before = house.pids()
            os.kill(before[1], signal.SIGKILL)
            await house.until(lambda _: house.pids().get(1, before[1]) != before[1])
            await house.until(lambda seen: benched(seen) == [True] * 2)

    run(work())


def test_a_count_that_only_one_has_is_cleared_whoever_is_asked() -> None:
    async def work() -> None:
        more = "[policy]\ntransient_retries = 0\n[health]\nthreshold = 9\n"
        async with (
            Upstream(lambda _: says(503)) as up,
            supervised(text_of(up.url) + more) as house,
        ):
            await house.chat()
            assert len([g for g in await house.glimpses() if KEY in g.states]) == 1
            answers = [await ordered(house, "unbench", {"key": KEY}) for _ in range(2)]
            assert [answer["cleared"] for answer in answers] == [True, False]
            assert not [g for g in await house.glimpses() if KEY in g.states]

    run(work())


# -- what is told


async def counts(house: House) -> dict[str, float]:
    heard = await ask(house.address, "GET", "/metrics")
    assert heard.status == 200
    return {
        sample.name + str(sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(heard.body.decode())
        for sample in family.samples
    }


def total(found: dict[str, float], name: str) -> float:
    return sum(value for key, value in found.items() if key.startswith(f"{name}["))


def test_counts_add_up_and_never_sink_when_a_worker_dies() -> None:
    async def work() -> None:
        async with Upstream(always()) as up, supervised(text_of(up.url)) as house:
            await asyncio.gather(*(house.chat() for _ in range(40)))
            assert all(g.seen[0] for g in await house.glimpses())
            for _ in range(6):  # whoever is asked
                found = await counts(house)
                assert total(found, "understudy_requests_total") == 40
                assert total(found, "understudy_request_seconds_count") == 40
                assert total(found, "understudy_worker_up") == 2
            before = house.pids()
            os.kill(before[1], signal.SIGKILL)
            seen = [await counts(house)]
            while total(seen[-1], "understudy_worker_up") < 2 or house.pids() == before:
                seen.append(await counts(house))
            sums = [total(found, "understudy_requests_total") for found in seen]
            assert set(sums) == {40}
            await house.chat()
            assert total(await counts(house), "understudy_requests_total") == 41

    run(work())


def test_a_worker_that_does_not_answer_is_left_out_and_named() -> None:
    async def work() -> None:
        async with Upstream(always()) as up, supervised(text_of(up.url)) as house:
            await asyncio.gather(*(house.chat() for _ in range(20)))
            assert total(await counts(house), "understudy_requests_total") == 20
            pid = house.pids()[2]
            os.kill(pid, signal.SIGSTOP)
            try:
                found = await counts(house)
            finally:
                os.kill(pid, signal.SIGCONT)
            assert found["understudy_worker_up[('worker', '1')]"] == 1
            assert found["understudy_worker_up[('worker', '2')]"] == 0
            assert total(found, "understudy_requests_total") == 20  # as it last told

    run(work())


def test_a_bench_is_counted_once_and_stands_in_the_ledger_once() -> None:
    async def work() -> None:
        async with Upstream(lambda _: says(503)) as up, supervised(text_of(up.url, 3)) as house:
            await house.chat()
            await house.until(lambda seen: benched(seen) == [True] * 3)
            assert total(await counts(house), "understudy_benches_total") == 1
            for _ in range(4):
                health = await told(house, "health")
                ledger = health["ledger"]
                assert isinstance(ledger, list)
                assert [(line["kind"], line["source"]) for line in ledger] == [("bench", "rule")]
                keys = health["keys"]
                assert isinstance(keys, dict)
                assert keys[KEY]["bench"]["source"] == "rule"

    run(work())


def test_every_worker_tells_of_the_last_requests_of_all() -> None:
    async def work() -> None:
        async with Upstream(always()) as up, supervised(text_of(up.url)) as house:
            sent = [(await house.chat()).headers["x-request-id"] for _ in range(30)]
            assert len({identity.partition("-")[0] for identity in sent}) == 2  # of both workers
            for _ in range(4):
                heard = await told(house, "attempts?limit=20")
                requests = heard["requests"]
                assert isinstance(requests, list)
                assert heard["remembered"] == 30
                assert [r["request_id"] for r in requests] == sent[:-21:-1]

    run(work())


async def events(line: Line) -> AsyncIterator[tuple[str, dict[str, object]]]:
    """Of a live feed, for ever."""
    text = b""
    while True:
        text += await line.piece()
        *whole, text = text.split(b"\n\n")
        for event in whole:
            name, _, data = event.partition(b"\ndata: ")
            yield name.removeprefix(b"event: ").decode(), json.loads(data)


def test_the_live_feed_of_any_worker_shows_all_of_them() -> None:
    async def work() -> None:
        async with Upstream(always()) as up, supervised(text_of(up.url)) as house:
            before = {(await house.chat()).headers["x-request-id"] for _ in range(20)}
            line = await Line.to(house.address)
            line.send("GET", f"{API}/events")
            await line.head()
            feed = events(line)
            seen: set[str] = set()
            asked: set[str] = set()
            async for name, news in feed:
                requests = news.get("requests", [])
                assert isinstance(requests, list)
                seen |= {request["request_id"] for request in requests}
                if name == "past" and not asked:
                    asked = {(await house.chat()).headers["x-request-id"] for _ in range(20)}
                if asked and seen == before | asked:
                    break
            await feed.aclose()  # type: ignore[attr-defined]
            line.close()

    run(work())


def test_a_question_with_a_cursor_is_answered_with_what_came_since() -> None:
    async def work() -> None:
        async with Upstream(always()) as up, supervised(text_of(up.url)) as house:
            for _ in range(10):
                await house.chat()
            seen = {g.name: g.seen for g in await house.glimpses()}
            sent = {(await house.chat()).headers["x-request-id"] for _ in range(10)}
            fresh = await house.glimpses(Question(records=100, since=seen))
            assert {r.opening.id for g in fresh for r in g.records} == sent

    run(work())


def test_what_happens_while_the_past_is_unpacked_is_told_once_the_next_time(
    tmp_path: Path,
) -> None:
    gateway, past = Gateway(demo_house(ManualClock())), Past()
    board = Board(gateway, past)
    station = Station(1, 2, 1, str(tmp_path), (), -1, -1)
    metrics = Metrics(lambda: 0, lambda: gateway.house.registry.health)
    for n in range(1000):
        past.finished(Record(Opening(str(n), "openai", "m", False, "", 0.0), 200, "ok", 0.1))

    async def work() -> tuple[Glimpse, Glimpse]:
        crew = Crew(station, gateway, board, Feed(gateway, past), metrics)
        asyncio.get_running_loop().call_soon(board.change, Change("clear", KEY))
        first = await crew._answer(Question(records=1000, entries=10))
        since = {station.name: first.seen}
        return first, await crew._answer(Question(records=1000, entries=10, since=since))

    first, second = run(work())
    told = [(len(glimpse.records), len(glimpse.ledger)) for glimpse in (first, second)]
    assert told == [(1000, 0), (0, 1)]
