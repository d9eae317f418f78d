"""Who is benched, until when and why (contract H1-H11)."""

from __future__ import annotations

import math
import threading

import pytest

from understudy.core.faults import Fault
from understudy.core.health import PROBE_LAPSE, SWEEP_FLOOR, Bench, Change, Cooldown, HealthTracker
from understudy.testing import ManualClock

KEY = "p/a"


def tracker(**settings: float) -> tuple[HealthTracker, ManualClock]:
    clock = ManualClock(100.0)
    return HealthTracker(Cooldown(**settings), clock=clock), clock  # type: ignore[arg-type]


def fail(health: HealthTracker, times: int, key: str = KEY) -> list[bool]:
    return [health.report_failure(key) for _ in range(times)]


def test_one_failure_does_not_bench_and_the_second_says_that_it_did() -> None:
    health, _ = tracker()
    assert fail(health, 1) == [False]
    assert health.available(KEY)
    assert fail(health, 1) == [True]
    assert not health.available(KEY)


def test_rounds_without_success_last_5_10_20_up_to_300_seconds() -> None:
    health, clock = tracker()
    lengths = []
    for _ in range(8):
        assert fail(health, 2) == [False, True]
        bench = health.standing(KEY)
        assert bench is not None
        lengths.append(bench.until - clock())
        clock.advance(lengths[-1])
        assert health.available(KEY)
    assert lengths == [5, 10, 20, 40, 80, 160, 300, 300]


def test_a_bench_ends_at_its_very_moment_and_not_before() -> None:
    health, clock = tracker()
    fail(health, 2)
    clock.advance(4.999)
    assert not health.available(KEY)
    clock.advance(0.001)
    assert health.available(KEY)


def test_after_a_bench_the_count_is_zero_but_the_exponent_stays() -> None:
    health, clock = tracker()
    fail(health, 2)
    clock.advance(5)
    assert fail(health, 1) == [False]
    assert health.available(KEY)
    assert fail(health, 1) == [True]
    clock.advance(9.9)
    assert not health.available(KEY)


def test_success_clears_count_and_exponent() -> None:
    health, clock = tracker()
    fail(health, 2)
    clock.advance(5)
    health.report_success(KEY)
    assert health.snapshot() == {}
    fail(health, 2)
    clock.advance(5)
    assert health.available(KEY)


def test_failure_success_failure_leaves_the_target_available() -> None:
    health, _ = tracker()
    fail(health, 1)
    health.report_success(KEY)
    assert fail(health, 1) == [False]


def test_unknown_keys_are_available_and_keys_are_independent() -> None:
    health, _ = tracker()
    fail(health, 2, "m1/x")
    assert not health.available("m1/x")
    assert health.available("m5/x")


@pytest.mark.parametrize("bad", [0, -1, -0.5, math.nan, math.inf])
@pytest.mark.parametrize("name", ["threshold", "base", "cap"])
def test_settings_that_make_no_sense_mean_the_default(name: str, bad: float) -> None:
    assert Cooldown(**{name: bad}) == Cooldown()  # type: ignore[arg-type]


@pytest.mark.parametrize("factor", [1, 0.5, 0, -2, math.nan])
def test_a_factor_that_does_not_grow_means_the_default(factor: float) -> None:
    assert Cooldown(factor=factor).factor == 2.0


@pytest.mark.parametrize("factor", [1.0001, 2.0, 1e300])
def test_any_number_of_rounds_stays_within_the_cap(factor: float) -> None:
    cooldown = Cooldown(factor=factor)
    assert all(0 < cooldown.seconds(rounds) <= 300 for rounds in (0, 1, 63, 1025, 10**9))


def test_forty_attempts_in_flight_when_a_target_dies_give_one_bench() -> None:
    health, clock = tracker()
    started = clock()
    clock.advance(1)
    benched = [health.report_failure(KEY, started) for _ in range(40)]
    assert benched.count(True) == 1
    assert health.snapshot()[KEY].rounds == 1
    clock.advance(5)
    assert health.available(KEY)


def test_a_late_success_does_not_clear_a_newer_bench() -> None:
    health, clock = tracker()
    started = clock()
    clock.advance(1)
    fail(health, 2)
    clock.advance(1)
    health.report_success(KEY, started)
    assert not health.available(KEY)


def test_a_success_that_began_after_the_bench_clears_it() -> None:
    health, clock = tracker()
    fail(health, 2)
    clock.advance(6)
    health.report_success(KEY, clock())
    assert health.snapshot() == {}


def test_a_healthy_key_costs_no_memory() -> None:
    health, _ = tracker()
    for n in range(10_000):
        health.report_success(f"p/{n}")
    assert not health.snapshot()


def test_names_without_end_are_forgotten_once_they_are_quiet() -> None:
    health, clock = tracker()
    for n in range(20 * SWEEP_FLOOR):
        health.report_failure(f"p/{n}")
        clock.advance(1)
    assert len(health.snapshot()) <= 3 * SWEEP_FLOOR


def test_every_bench_is_a_ledger_entry() -> None:
    health, clock = tracker()
    for _ in range(2):
        health.report_failure(KEY, fault=Fault.TRANSIENT)
    bench = health.snapshot()[KEY].bench
    assert bench == Bench(KEY, 100, 105, Fault.TRANSIENT, "target", "rule")
    clock.advance(1)
    assert health.snapshot()[KEY].reason == "benched for transient, 4 s left of 5 s"


def test_an_operator_benches_and_releases() -> None:
    health, clock = tracker()
    health.bench(KEY, 60, why="deploy")
    clock.advance(10)
    assert health.snapshot()[KEY].reason == "benched by an operator, 50 s left of 60 s: deploy"
    health.report_success(KEY)  # somebody else's old news does not overrule an operator
    assert not health.available(KEY)
    assert health.unbench(KEY)
    assert health.available(KEY)
    assert not health.unbench(KEY)


@pytest.mark.parametrize("seconds", [0, -5, math.nan])
def test_an_operator_cannot_bench_for_no_time(seconds: float) -> None:
    health, _ = tracker()
    with pytest.raises(ValueError, match="give a time above 0"):
        health.bench(KEY, seconds)


def test_a_providers_own_delay_benches_at_once_and_a_shorter_one_does_not_shorten_it() -> None:
    health, clock = tracker()
    health.hold(Bench(KEY, clock(), clock() + 30, Fault.RATE_LIMIT, source="header"))
    clock.advance(1)
    health.hold(Bench(KEY, clock(), clock() + 2, Fault.RATE_LIMIT, source="header"), clock())
    bench = health.standing(KEY)
    assert bench is not None
    assert bench.until == 130
    assert bench.source == "header"


def test_with_a_probe_one_attempt_is_admitted_until_it_reports() -> None:
    health, clock = tracker(probe=True)
    fail(health, 2)
    clock.advance(5)
    assert [health.admit(KEY) for _ in range(3)] == [True, False, False]
    assert not health.available(KEY)
    assert health.snapshot()[KEY].probing
    health.report_success(KEY, clock())
    assert [health.admit(KEY) for _ in range(3)] == [True, True, True]


def test_a_probe_that_fails_makes_room_for_the_next_one() -> None:
    health, clock = tracker(probe=True)
    fail(health, 2)
    clock.advance(5)
    assert health.admit(KEY)
    assert not health.report_failure(KEY, clock())
    assert [health.admit(KEY), health.admit(KEY)] == [True, False]
    assert health.report_failure(KEY, clock())
    clock.advance(9)
    assert not health.admit(KEY)


def test_a_cancelled_probe_releases_its_place_and_marks_nobody() -> None:
    health, clock = tracker(probe=True)
    fail(health, 2)
    clock.advance(5)
    before = health.snapshot()[KEY].failures
    assert health.admit(KEY)
    health.release(KEY, clock())
    assert health.admit(KEY)
    assert health.snapshot()[KEY].failures == before


def test_a_probe_that_never_reports_lapses() -> None:
    health, clock = tracker(probe=True)
    fail(health, 2)
    clock.advance(5)
    assert health.admit(KEY)
    clock.advance(PROBE_LAPSE - 0.1)
    assert not health.admit(KEY)
    clock.advance(0.1)
    assert health.admit(KEY)


def test_listeners_hear_benches_and_clearings_and_may_ask_back() -> None:
    health, clock = tracker()
    heard: list[str] = []

    def listener(change: Change) -> None:
        heard.append(f"{change.kind} {change.key} {health.available(change.key)}")

    health.listen(listener)
    fail(health, 2)
    clock.advance(5)
    health.report_success(KEY)
    health.bench(KEY, 9)
    health.unbench(KEY)
    assert heard == ["bench p/a False", "clear p/a True", "bench p/a False", "clear p/a True"]


def test_eight_threads_lose_no_report() -> None:
    health, _ = tracker(threshold=10**9)

    def work() -> None:
        for _ in range(10_000):
            health.report_failure(KEY)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert health.snapshot()[KEY].failures == 80_000
