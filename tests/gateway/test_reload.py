"""Reloading: nothing is dropped, what was learned is kept, a bad file changes nothing."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from tests.gateway.desk import (
    HELLO,
    HELLO_STREAM,
    Heard,
    Line,
    Plays,
    Process,
    Served,
    Upstream,
    aliases,
    always,
    answer,
    process,
    provider,
    says,
    serving,
)
from tests.rig import run, until
from understudy.core.faults import Fault
from understudy.core.health import Bench, Cooldown, HealthTracker
from understudy.gateway.carry import carry_over
from understudy.testing import ManualClock

BODY = {**HELLO, "model": "chat"}
STREAM = {**BODY, "stream": True}


def rewrite(served: Served | Process, text: str) -> None:
    served.path.write_text(text, encoding="utf-8")


# -- under load


def test_three_hundred_requests_and_six_reloads_by_signal_lose_nothing() -> None:
    async def work() -> None:
        async with (
            Upstream(lambda _: Plays(200, answer("one"))) as one,
            Upstream(lambda _: Plays(200, answer("two"))) as two,
            asyncio.timeout(60),
        ):
            texts = [
                provider("p", up.url, key=f"k-{n}") + aliases(chat="p/m")
                for n, up in enumerate([one, two, one, two, one, two])
            ]
            async with process(texts[0]) as running:
                heard: list[Heard] = []

                async def client() -> None:
                    line = await Line.to(running.address)
                    for _ in range(50):
                        heard.append(await line.ask("POST", "/v1/chat/completions", BODY))
                    line.close()

                load = asyncio.gather(*(client() for _ in range(6)))
                for n, text in enumerate(texts, 1):
                    await until_heard(heard, n * 40)
                    rewrite(running, text)
                    running.signal(signal.SIGHUP)
                await load
                running.signal(signal.SIGTERM)
                code, lines = await running.ended()
        assert code == 0
        assert len(heard) == 300
        assert {h.status for h in heard} == {200}
        reloads = [line["event"] for line in lines if str(line["event"]).startswith("reload")]
        assert reloads == ["reloaded"] * 6
        assert len(one.asked) + len(two.asked) == 300
        keys = {a.headers["authorization"] for a in (*one.asked, *two.asked)}
        assert keys == {f"Bearer k-{n}" for n in range(6)}

    async def until_heard(heard: list[Heard], count: int) -> None:
        while len(heard) < count:  # noqa: ASYNC110 - bounded by the test's own timeout
            await asyncio.sleep(0)

    run(work())


def test_a_changed_file_is_taken_by_itself_and_a_running_stream_ends_on_the_old() -> None:
    async def work() -> None:
        rest = asyncio.Event()
        pieces = (HELLO_STREAM[0], rest, *HELLO_STREAM[1:])
        async with Upstream(always(pieces)) as old, Upstream(always()) as new:
            text = provider("p", old.url) + aliases(chat="p/m")
            async with serving(text, look=0.01) as served, asyncio.timeout(60):
                line = await Line.to(served.address)
                line.send("POST", "/v1/chat/completions", STREAM)
                _, headers = await line.head()
                first = await line.piece()
                rewrite(served, provider("p", new.url) + aliases(chat="p/m"))
                while not served.events("reloaded"):  # noqa: ASYNC110 - bounded by the timeout
                    await asyncio.sleep(0.01)
                assert (await served.chat()).status == 200
                assert len(new.asked) == 1
                rest.set()
                assert (first + await line.rest(headers)).endswith(HELLO_STREAM[-1])
                line.close()
                await until(lambda: old.open == 0)  # nobody will use that connection again
                assert len(served.events("reloaded")) == 1

    run(work())


def test_a_file_that_is_still_being_written_is_not_taken() -> None:
    async def work() -> None:
        async with Upstream(always()) as up:
            text = provider("p", up.url) + aliases(chat="p/m")
            async with serving(text) as served:
                look = served.runtime._look
                rewrite(served, "")
                look()
                rewrite(served, text + "# done\n")
                look()
                assert served.events("reloaded") == []
                look()
                assert len(served.events("reloaded")) == 1
                look()
                assert len(served.events("reloaded")) == 1
                assert (await served.chat()).status == 200

    run(work())


# -- what is kept


def test_a_bad_file_leaves_the_old_in_force_and_is_told_once() -> None:
    async def work() -> None:
        async with Upstream(always()) as up:
            text = '[gateway]\nkeys = ["sk-a"]\n' + provider("p", up.url) + aliases(chat="p/m")
            async with serving(text) as served:
                house = served.runtime.gateway.house
                rewrite(served, text.replace("base_url", "base_ulr"))
                for _ in range(5):
                    served.runtime._look()
                assert served.runtime.gateway.house is house
                [line] = served.events("reload_refused")
                assert line["level"] == "error"
                assert "providers.p.base_ulr: unknown key; did you mean 'base_url'?" in str(line)
                assert "sk-a" not in str(line)
                assert (await served.chat(authorization="Bearer sk-a")).status == 200
                served.path.unlink()
                served.runtime._look()
                served.runtime.reload()
                assert len(served.events("reload_refused")) == 2
                metrics = (await served.ask("GET", "/metrics")).body
                assert b'understudy_reloads_total{result="refused"} 2' in metrics

    run(work())


def test_benches_survive_and_are_not_counted_twice() -> None:
    async def work() -> None:
        async with Upstream(lambda _: says(503)) as down, Upstream(always()) as up:
            text = (
                provider("down", down.url) + provider("up", up.url) + aliases(chat="down/a, up/b")
            )
            async with serving(text) as served:
                await served.chat()
                served.runtime.reload()
                heard = await served.chat()
                assert heard.headers["x-understudy-attempts"] == "down/a=skipped, up/b=ok"
                metrics = (await served.ask("GET", "/metrics")).body
                assert b'understudy_benches_total{key="down/a",fault="transient"} 1' in metrics
                health = await served.ask("GET", "/understudy/api/health")
                assert str(health.json["ledger"]).count("'bench'") == 1

    run(work())


def test_what_a_request_learns_after_a_reload_reaches_the_new_house() -> None:
    async def work() -> None:
        go = asyncio.Event()

        async def slow(_: object) -> Plays:
            await go.wait()
            return says(429, retry_after="60")

        async with Upstream(slow) as down:
            text = "[policy]\nmax_wait = 0\n" + provider("p", down.url) + aliases(chat="p/m")
            async with serving(text) as served:
                running = asyncio.ensure_future(served.chat())
                await until(lambda: down.asked)
                served.runtime.reload()
                go.set()
                assert (await running).status == 429
                assert (await served.chat()).headers["x-understudy-attempts"] == "p/m=skipped"
                assert len(down.asked) == 1

    run(work())


def test_connections_of_an_unchanged_provider_are_kept_and_those_of_a_changed_one_closed() -> None:
    async def work() -> None:
        async with Upstream(always()) as same, Upstream(always()) as other:
            text = (
                provider("same", same.url)
                + provider("other", other.url)
                + aliases(a="same/m", b="other/m")
            )
            async with serving(text) as served:
                await served.chat("a")
                await served.chat("b")
                rewrite(
                    served,
                    text.replace("k-provider", "k-new", 2).replace("k-new", "k-provider", 1),
                )
                served.runtime.reload()
                await until(lambda: other.open == 0)
                await served.chat("a")
                await served.chat("b")
        assert (same.connections, other.connections) == (1, 2)
        assert other.asked[-1].headers["authorization"] == "Bearer k-new"

    run(work())


def test_limits_and_the_access_log_change_with_the_file() -> None:
    async def work() -> None:
        async with serving(aliases(chat="openai/m")) as served:
            rewrite(served, "[gateway]\nmax_body = 2048\naccess_log = false\n")
            served.runtime.reload()
            heard = await served.ask("POST", "/v1/chat/completions", b"x" * 3000)
            assert heard.status == 413
            assert served.events("request") == []

    run(work())


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ('[gateway]\nhost = "127.0.0.2"\n', ["gateway.host"]),
        ("[gateway]\ntracing = true\n", ["gateway.tracing"]),
        ("[gateway]\ntimeout = 5\n", None),
    ],
)
def test_what_needs_a_restart_is_named(change: str, named: list[str] | None) -> None:
    async def work() -> None:
        async with serving("") as served:
            rewrite(served, change)
            served.runtime.reload()
            [line] = served.events("reloaded")
            assert line.get("needs_restart") == named
            assert (await served.ask("GET", "/healthz")).status == 200

    run(work())


def test_keys_cannot_be_reloaded_away_from_an_address_the_world_can_reach() -> None:
    async def work() -> None:
        text = '[gateway]\nkeys = ["sk-a"]\n' + aliases(chat="openai/m")
        async with serving(text) as served:
            runtime = served.runtime
            runtime.opened = replace(runtime.opened, host="0.0.0.0")  # as `--host` would have it
            rewrite(served, aliases(chat="openai/m"))
            runtime.reload()
            [line] = served.events("reload_refused")
            assert "gateway.keys: are needed to listen on 0.0.0.0" in str(line["reason"])
            assert (await served.chat()).status == 401

    run(work())


# -- what a tracker tells its successor


def carried(old: HealthTracker, clock: ManualClock, **cooldown: float) -> HealthTracker:
    new = HealthTracker(Cooldown(**cooldown), clock=clock)  # type: ignore[arg-type]
    carry_over(old, new)
    return new


def test_a_bench_goes_on_and_the_next_one_grows_as_due() -> None:
    clock = ManualClock()
    old = HealthTracker(clock=clock)
    for _ in range(2):  # rounds of 5 and 10 s
        old.report_failure("p/m", fault=Fault.TRANSIENT)
        old.report_failure("p/m", fault=Fault.TRANSIENT)
        clock.advance(5.0)
    new = carried(old, clock)
    assert new.snapshot() == old.snapshot()
    clock.advance(5.0)
    new.report_failure("p/m")
    new.report_failure("p/m")
    bench = new.standing("p/m")
    assert bench is not None
    assert bench.left(clock()) == 20.0


@pytest.mark.parametrize("advance", [0.0, 100.0])
@pytest.mark.parametrize(
    "bench",
    [
        Bench("p/m", 0.0, 60.0, Fault.RATE_LIMIT, "target", "header"),
        Bench("p#key1", 0.0, 300.0, Fault.AUTH, "credential", "rule"),
        Bench("p#key1", 0.0, float("inf"), Fault.OUT_OF_CREDITS, "credential", "rule"),
        Bench("p/m", 0.0, 60.0, None, "target", "remote", "said b"),
    ],
)
def test_any_bench_that_runs_is_carried_as_it_is(bench: Bench, advance: float) -> None:
    clock = ManualClock()
    old = HealthTracker(clock=clock)
    old.hold(bench)
    clock.advance(advance)
    new = carried(old, clock)
    assert new.standing(bench.key) == (bench if bench.until > advance else None)


def test_an_operators_word_holds_exactly_as_long_whatever_the_rule_says() -> None:
    clock = ManualClock()
    old = HealthTracker(clock=clock)
    for _ in range(12):
        old.report_failure("p/m")
        clock.advance(400.0)
    old.bench("p/m", 10.0, "mending")
    clock.advance(4.0)
    bench = carried(old, clock).standing("p/m")
    assert bench is not None
    assert (bench.left(clock()), bench.why, bench.source) == (6.0, "mending", "operator")


def test_open_counts_are_carried_but_bench_nobody_by_themselves() -> None:
    clock = ManualClock()
    old = HealthTracker(Cooldown(threshold=5), clock=clock)
    for _ in range(4):
        old.report_failure("p/m")
    assert carried(old, clock, threshold=5).snapshot()["p/m"].failures == 4
    lower = carried(old, clock, threshold=2)
    assert lower.available("p/m")
    assert lower.report_failure("p/m")


def test_a_link_turned_to_another_file_is_a_change_also_of_the_same_size_and_age(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        async with serving("") as served:
            one, two = tmp_path / "one", tmp_path / "two"
            for file in (one, two):
                file.write_text("# same\n")
                os.utime(file, ns=(1, 1))
            served.path.unlink()
            served.path.symlink_to(one)
            served.runtime.reload()
            before = served.runtime._file.stamp()
            served.path.unlink()
            served.path.symlink_to(two)
            assert served.runtime._file.stamp() != before

    run(work())
