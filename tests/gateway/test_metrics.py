"""Metrics: counted once, in the right place, in a format that Prometheus reads."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest

from tests.gateway.desk import (
    HELLO,
    HELLO_STREAM,
    Asked,
    Plays,
    Served,
    Upstream,
    aliases,
    always,
    answer,
    fronted,
    in_turn,
    provider,
    says,
    serving,
)
from tests.rig import run, until
from understudy.core.faults import Fault
from understudy.core.health import Cooldown, HealthTracker
from understudy.core.target import Attempt
from understudy.messages.response import Usage
from understudy.observe.metrics import BUCKETS, MOST, Metrics, Tokens
from understudy.observe.record import Opening, Record
from understudy.providers.facts import UNKNOWN, Facts
from understudy.testing import ManualClock

parser = pytest.importorskip("prometheus_client.parser")

Sample = dict[tuple[str, ...], float]


def families(text: str) -> dict[str, dict[str, Sample]]:
    """By family and sample name: label values, in order of their names, to values."""
    found: dict[str, dict[str, Sample]] = {}
    for family in parser.text_string_to_metric_families(text):
        assert family.documentation
        assert family.type in ("counter", "gauge", "histogram")
        samples = found.setdefault(family.name, {})
        for sample in family.samples:
            key = tuple(sample.labels[name] for name in sorted(sample.labels))
            assert key not in samples.setdefault(sample.name, {})
            samples[sample.name][key] = sample.value
    return found


async def scraped(served: Served) -> dict[str, dict[str, Sample]]:
    heard = await served.ask("GET", "/metrics")
    assert heard.headers["content-type"].startswith("text/plain; version=0.0.4")
    return families(heard.body.decode())


def test_a_failover_is_counted_where_it_happened() -> None:
    async def work() -> None:
        async with Upstream(lambda _: says(503)) as down, Upstream(always()) as up:
            text = (
                provider("down", down.url) + provider("up", up.url) + aliases(chat="down/a, up/b")
            )
            async with serving(text) as served:
                await served.chat()
                await served.chat()
                await served.chat("nobody")
                found = await scraped(served)
        total = {name: next(iter(samples.values()), {}) for name, samples in found.items()}
        assert total["understudy_attempts"] == {
            ("transient", "down/a"): 2, ("skipped", "down/a"): 1, ("ok", "up/b"): 2,
        }  # fmt: skip
        assert total["understudy_requests"] == {  # outcome, status, surface
            ("ok", "200", "openai"): 2, ("refused", "400", "openai"): 1,
        }  # fmt: skip
        assert total["understudy_failovers"] == {("down/a",): 1}
        assert total["understudy_benches"] == {("transient", "down/a"): 1}
        assert total["understudy_in_flight"] == {(): 0}
        assert total["understudy_benched"] == {(): 1}
        tokens = total["understudy_tokens"]
        assert (tokens["input", "up/b"], tokens["output", "up/b"]) == (6, 4)

    run(work())


def test_a_chain_that_ends_moved_on_to_nobody() -> None:
    async def work() -> None:
        async with fronted(lambda _: says(503)) as (served, _):
            await served.chat()
            found = await scraped(served)
        assert found["understudy_failovers"] == {}

    run(work())


@pytest.mark.parametrize(
    ("pieces", "outcome"),
    [(HELLO_STREAM, "ok"), (HELLO_STREAM[:1], "broken")],
)
def test_a_stream_is_counted_by_its_end_and_timed_to_its_first_content(
    pieces: tuple[bytes, ...], outcome: str
) -> None:
    async def work() -> None:
        async with fronted(always(pieces)) as (served, _):
            body = {**HELLO, "model": "chat", "stream": True}
            await served.ask("POST", "/v1/chat/completions", body)
            found = await scraped(served)
        assert found["understudy_streams"]["understudy_streams_total"] == {(outcome,): 1}
        first = found["understudy_first_content_seconds"]
        assert first["understudy_first_content_seconds_count"] == {("p/m",): 1}
        buckets = first["understudy_first_content_seconds_bucket"]
        assert buckets["+Inf", "p/m"] == 1
        assert len(buckets) == len(BUCKETS) + 1

    run(work())


def test_requests_being_answered_are_a_gauge() -> None:
    async def work() -> None:
        go = asyncio.Event()

        async def slow(_: Asked) -> Plays:
            await go.wait()
            return Plays(200, answer())

        async with fronted(slow) as (served, up):
            running = [asyncio.ensure_future(served.chat()) for _ in range(3)]
            await until(lambda: len(up.asked) == 3)
            busy = await scraped(served)
            go.set()
            await asyncio.gather(*running)
            idle = await scraped(served)
        assert busy["understudy_in_flight"]["understudy_in_flight"] == {(): 3}
        assert idle["understudy_in_flight"]["understudy_in_flight"] == {(): 0}

    run(work())


def test_what_was_used_is_priced_when_somebody_looks() -> None:
    async def work() -> None:
        usage = Plays(200, answer(tokens=(1_000_000, 100_000)))
        async with Upstream(in_turn(usage)) as up:
            text = (
                provider("mine", up.url)
                + 'vendor = "openai"\n'
                + provider("house", up.url)
                + aliases(chat="mine/gpt-4o", free="house/gpt-4o")
            )
            async with serving(text) as served:
                await served.chat()
                await served.chat("free")
                found = await scraped(served)
        costs = found["understudy_cost_usd"]["understudy_cost_usd_total"]
        assert costs == {("mine/gpt-4o",): pytest.approx(3.5)}  # 2.5 in, 10 out, a million

    pytest.importorskip("genai_prices")
    run(work())


PRICES = Facts(None, Decimal(3), Decimal(15), Decimal("0.3"), Decimal("3.75"))


@pytest.mark.parametrize(
    ("usage", "prices", "dollars"),
    [
        (Usage(1_000_000, 0), PRICES, 3),
        (Usage(0, 1_000_000), PRICES, 15),
        (Usage(1_000_000, 0, cache_read=400_000), PRICES, "1.92"),
        (Usage(1_000_000, 0, 1_000_000, 1_000_000, cache_apart=True), PRICES, "7.05"),
        (Usage(0, 500_000, reasoning=500_000, reasoning_apart=True), PRICES, 15),
        (Usage(1_000_000, 0, cache_read=400_000), Facts(None, Decimal(2)), 2),
        (Usage(1_000_000, 9), UNKNOWN, None),
    ],
)
def test_the_cost_of_tokens(usage: Usage, prices: Facts, dollars: str | int | None) -> None:
    tokens = Tokens()
    tokens.add(usage)
    assert tokens.cost(prices) == (None if dollars is None else Decimal(dollars))


def test_many_requests_cost_what_they_cost_one_by_one() -> None:
    """A sum must not climb into the price tier that is meant for one long request."""
    tokens = Tokens()
    for _ in range(1000):
        tokens.add(Usage(1000, 10))
    assert tokens.cost(PRICES) == 1000 * Decimal("0.00315")


def test_labels_are_bounded_whatever_clients_name() -> None:
    metrics = Metrics(lambda: 0, lambda: HealthTracker(clock=ManualClock()))
    opening = Opening("r", "openai", "x", False, "", 0.0)
    for n in range(3 * MOST):
        attempt = Attempt(f"p/{n}", "ok")
        metrics.finished(Record(opening, 200, "ok", 0.1, (attempt,), Usage(1, 1), f"p/{n}"))
    assert len(metrics.attempts) == len(metrics.tokens) == MOST + 1
    assert metrics.attempts["other", "ok"] == 2 * MOST
    assert sum(metrics.attempts.values()) == 3 * MOST


@pytest.mark.parametrize("name", ['p/a"b', "p/a\\b", "p/a\nb", "p/ä{}", "p/a,b=c"])
def test_any_model_name_makes_a_line_that_can_be_read(name: str) -> None:
    metrics = Metrics(lambda: 0, lambda: HealthTracker(clock=ManualClock()))
    opening = Opening("r", "openai", "x", False, "", 0.0)
    metrics.attempt(opening, Attempt(name, "failed", Fault.TRANSIENT), 1)
    found = families(metrics.text().decode())
    assert found["understudy_attempts"]["understudy_attempts_total"] == {("transient", name): 1}


def test_a_histogram_counts_every_value_once_and_cumulates() -> None:
    metrics = Metrics(lambda: 0, lambda: HealthTracker(clock=ManualClock()))
    opening = Opening("r", "openai", "x", False, "", 0.0)
    for seconds in (0.005, 0.0051, 1.0, 1000.0):
        metrics.finished(Record(opening, 200, "ok", seconds))
    found = families(metrics.text().decode())["understudy_request_seconds"]
    buckets = found["understudy_request_seconds_bucket"]
    wanted = {"0.005": 1, "0.01": 2, "0.5": 2, "1.0": 3, "300.0": 3, "+Inf": 4}
    assert {bound: buckets[bound, "openai"] for bound in wanted} == wanted
    assert found["understudy_request_seconds_sum"]["openai",] == pytest.approx(1001.0101)


def test_a_bench_by_an_operator_is_counted_by_its_source() -> None:
    health = HealthTracker(Cooldown(), clock=ManualClock())
    metrics = Metrics(lambda: 0, lambda: health)
    health.listen(metrics.change)
    health.bench("p/m", 5)
    health.unbench("p/m")
    assert dict(metrics.benches) == {("p/m", "operator"): 1}
