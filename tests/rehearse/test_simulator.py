"""Simulations small enough to be worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chaos.histories import drawn
from understudy import AVAILABILITY, FAIL_FAST, Cooldown, Fault
from understudy.core.target import Attempt
from understudy.core.walk import Try
from understudy.providers.base import Patience
from understudy.rehearse.chance import SIZE, Chance, constant
from understudy.rehearse.flight import Flight
from understudy.rehearse.scenario import Limit, Nature, Outage, Role, Scenario, Traffic
from understudy.rehearse.score import Scores, score, share_of
from understudy.rehearse.simulator import LEAVE, Simulator, arrivals
from understudy.rehearse.tally import Tally

SECOND = Nature(latency=constant(1.0), first_content=constant(0.5), fails_in=constant(0.25))
SLOWER = replace(SECOND, latency=constant(3.0))
STEADY = Traffic(rate=1.0, pattern="constant", input_tokens=1000, output_tokens=constant(100))


def played(scenario: Scenario, seed: int = 1) -> tuple[Tally, Scores]:
    tally = Simulator(scenario, seed=seed).run()
    return tally, score(tally)


def chain(*roles: Role, seconds: float = 10.0, **more: object) -> Scenario:
    return Scenario("by hand", roles, STEADY, seconds, **more)  # type: ignore[arg-type]


def test_a_healthy_head_answers_everything_and_failover_adds_nothing() -> None:
    tally, scores = played(
        chain(Role("a/m", SECOND, input_price=3.0, output_price=15.0), Role("b/m"))
    )
    assert (scores.requests, scores.answered, scores.success) == (10, 10, 1.0)
    assert (scores.latency_p50, scores.added_p99) == (1.0, 0.0)
    assert (scores.attempts, scores.wasted_attempts, scores.benches) == (10, 0, 0)
    assert scores.money == pytest.approx(10 * (1000 * 3 + 100 * 15) / 1e6)
    assert sum(tally.actors[0].line.served) == 10


def test_an_outage_is_noticed_benched_probed_and_over() -> None:
    """Requests at 0, 1, 2 … s; the head fails from 2.5 s to 12 s and says so in 0.25 s."""
    dead = Outage(2.5, 12.0)
    scenario = chain(Role("a/m", SECOND, (dead,)), Role("b/m", SLOWER), seconds=30.0)
    tally, scores = played(scenario)
    assert scores.success == 1.0
    # In flight at 2.5: the request of 2 s breaks, is retried, fails at 2.75: benched for 5 s.
    # The probes of 8 s and its retry bench again for 10 s, to 18.5 s; at 19 s all is well.
    assert [(b.since, b.until) for b in tally.benches] == [(2.75, 7.75), (8.5, 18.5)]
    assert (scores.notice, scores.back) == (0.25, 20.0 - 12.0)
    assert tally.failures == {("a/m", "transient"): 4}
    assert scores.added_p99 == 0.75 + 2.0  # the request of 2 s: waited 0.75 s, served 2 s slower


def test_what_dies_in_flight_before_content_is_answered_by_the_next() -> None:
    scenario = chain(Role("a/m", SECOND, (Outage(0.5, 99.0),)), Role("b/m", SECOND), seconds=1.0)
    tally, scores = played(scenario)
    assert (scores.answered, scores.wasted_attempts) == (1, 2)
    assert tally.latencies == [0.5 + 0.25 + 1.0]


def test_a_stream_that_dies_after_content_is_broken_and_its_tokens_are_wasted() -> None:
    nature = replace(SECOND, tokens_per_second=constant(100.0))
    traffic = replace(STEADY, streams=1.0)
    head = Role("a/m", nature, (Outage(1.0, 99.0),), input_price=1.0, output_price=1.0)
    scenario = Scenario("cut", (head, Role("b/m")), traffic, 1.0)
    _, scores = played(scenario)
    # Content at 0.5 s, the end would be at 1.5 s: half of 100 tokens, and the prompt's 1000.
    assert (scores.broken, scores.answered, scores.wasted_tokens) == (1, 0, 1050.0)
    assert scores.wasted_money == pytest.approx(1050 / 1e6)


def test_silence_costs_our_patience_and_is_billed() -> None:
    head = Role(
        "a/m", SECOND, errors=((Fault.STALL_PRE_FIRST_BYTE, 1.0),), patience=Patience(response=4.0)
    )
    tally, scores = played(chain(head, Role("b/m", SECOND), seconds=1.0))
    assert tally.latencies == [4.0 + 1.0]
    assert (scores.added_p50, scores.wasted_tokens) == (4.0, 1000.0)


def test_the_callers_deadline_is_shared_and_blames_nobody() -> None:
    silent = Role("a/m", SECOND, (Outage(-1.0, 99.0, Fault.STALL_PRE_FIRST_BYTE),))
    scenario = chain(silent, Role("b/m", SECOND), seconds=1.0, timeout=6.0)
    tally, _ = played(scenario)
    assert tally.latencies == [3.0 + 1.0]  # half of six seconds, then the next
    assert tally.benches == []


@pytest.mark.parametrize("ours", [120.0, 0.0])
def test_who_falls_silent_while_working_is_waited_for_no_longer_than_its_caller_waits(
    ours: float,
) -> None:
    dying = Role(
        "a/m",
        SECOND,
        (Outage(0.5, 99.0, Fault.STALL_PRE_FIRST_BYTE),),
        patience=Patience(response=ours),
    )
    scenario = chain(dying, Role("b/m", SECOND), seconds=1.0, timeout=6.0)
    tally, _ = played(scenario)
    assert tally.latencies == [3.0 + 1.0]  # half of six seconds, then the next
    assert tally.benches == []


@pytest.mark.parametrize("ours", [60.0, 0.0])
def test_a_stream_that_falls_silent_ends_with_its_callers_time(ours: float) -> None:
    nature = replace(SECOND, tokens_per_second=constant(100.0))
    silent = Outage(1.0, 99.0, Fault.STALL_PRE_FIRST_BYTE)
    head = Role("a/m", nature, (silent,), patience=Patience(idle=ours))
    traffic = replace(STEADY, streams=1.0)
    tally, scores = played(Scenario("silent", (head, Role("b/m")), traffic, 1.0, timeout=6.0))
    assert (scores.broken, tally.end) == (1, 6.0)
    assert tally.benches == []


def test_a_refusal_that_takes_too_long_is_silence() -> None:
    slow = replace(SECOND, fails_in=constant(60.0))
    head = Role("a/m", slow, (Outage(-1.0, 99.0),), patience=Patience(response=4.0))
    tally, _ = played(chain(head, Role("b/m", SECOND), seconds=1.0))
    assert tally.failures == {("a/m", "stall_pre_first_byte"): 1}
    assert tally.latencies == [4.0 + 1.0]


class Overtime:
    """Notes who was still at it when the caller's time was up."""

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self.found: list[float] = []

    def told(self, flight: Flight, what: object, now: float) -> None:
        if what is not LEAVE and now > flight.arrived + self.timeout + 1e-6:
            self.found.append(now - flight.arrived)

    def tried(self, flight: Flight, step: Try, now: float) -> None: ...
    def attempt(self, flight: Flight, attempt: Attempt) -> None: ...
    def ended(self, flight: Flight, outcome: str, error: Exception | None) -> None: ...


@pytest.mark.parametrize("seed", range(100))
def test_no_misfortune_makes_a_request_last_longer_than_its_caller_waits(seed: int) -> None:
    scenario = replace(drawn(Random(seed)), timeout=3.0)
    overtime = Overtime(3.0)
    Simulator(scenario, seed=seed, watch=overtime).run()
    assert overtime.found == []


def test_a_rate_limit_lets_its_bucket_through_and_says_when_to_come_back() -> None:
    limited = Role("a/m", SECOND, limit=Limit(rate=0.5, burst=2.0))
    traffic = replace(STEADY, pattern="bursts", burst=5)
    scenario = Scenario("burst", (limited, Role("b/m", SECOND)), traffic, 5.0)
    tally, _ = played(scenario)
    assert tally.actors[0].served == 2
    assert tally.failures == {("a/m", "rate_limit"): 3}
    assert [round(b.until - b.since, 6) for b in tally.benches] == [2.0]


def test_each_credential_has_a_bucket_of_its_own() -> None:
    limited = Role("a/m", SECOND, limit=Limit(rate=0.5, burst=2.0), credentials=2)
    traffic = replace(STEADY, pattern="bursts", burst=5)
    tally, _ = played(Scenario("burst", (limited, Role("b/m", SECOND)), traffic, 5.0))
    assert tally.actors[0].served == 4


def test_who_finds_no_place_waits_for_one() -> None:
    traffic = replace(STEADY, pattern="bursts", burst=3, concurrency=1)
    tally, scores = played(Scenario("queue", (Role("a/m", SECOND),), traffic, 3.0))
    assert tally.latencies == [1.0, 2.0, 3.0]
    assert scores.added_p99 == 2.0


def test_callers_who_leave_are_neither_answered_nor_failed() -> None:
    traffic = replace(STEADY, pattern="bursts", burst=4, leaves=1.0, leaves_after=constant(0.4))
    scenario = Scenario("leaving", (Role("a/m", SECOND),), traffic, 4.0)
    simulator = Simulator(scenario)
    scores = score(simulator.run())
    assert (scores.left, scores.success, scores.wasted_attempts) == (4, 1.0, 4)
    assert simulator.health.snapshot() == {}


def test_all_benched_and_back_soon_means_waiting_for_it() -> None:
    lone = Role("a/m", SECOND, (Outage(-1.0, 0.6),))
    policy = replace(AVAILABILITY, max_wait=2.0)
    scenario = chain(lone, seconds=2.0, policy=policy, cooldown=Cooldown(base=1.2, probe=True))
    tally, _ = played(scenario)
    # The first fails twice within 0.5 s: benched to 1.7 s. The second comes at 1 s and waits.
    assert tally.outcomes["failed"] == 1
    assert tally.latencies == [pytest.approx(0.7 + 1.0)]


def test_a_slow_spell_is_no_outage() -> None:
    spell = Outage(-1.0, 99.0, None, slow=4.0)
    tally, scores = played(chain(Role("a/m", SECOND, (spell,)), Role("b/m", SECOND), seconds=1.0))
    assert tally.latencies == [4.0]
    assert (scores.notice, scores.unnoticed, scores.not_back) == (None, 0, 0)


@pytest.mark.parametrize("policy", [FAIL_FAST, AVAILABILITY], ids=lambda p: p.name)
def test_another_policy_meets_the_same_callers(policy) -> None:  # type: ignore[no-untyped-def]
    traffic = replace(STEADY, pattern="poisson", output_tokens=Chance("lognormal", 90.0, 0.5))
    role = Role("a/m", errors=((Fault.TRANSIENT, 0.2),))
    one = Simulator(Scenario("x", (role,), traffic, 60.0, policy=policy), seed=5).run()
    two = Simulator(Scenario("x", (role,), traffic, 60.0, policy=FAIL_FAST), seed=5).run()
    assert one.requests == two.requests


def test_arrivals_come_as_often_as_told_and_in_order() -> None:
    for pattern in ("poisson", "constant", "bursts"):
        traffic = replace(STEADY, rate=50.0, pattern=pattern, burst=7)
        scenario = Scenario("x", (Role("a/m"),), traffic, 100.0)
        times = list(arrivals(scenario, Random(3)))
        assert times == sorted(times)
        assert all(0 <= at < 100.0 for at in times)
        assert abs(len(times) - 5000) < 300
    assert len({round(at, 9) for at in times}) == math.ceil(5000 / 7)


CHANCES = st.one_of(
    st.builds(lambda a: Chance("constant", a), st.floats(0, 9)),
    st.builds(lambda a, b: Chance("uniform", a, a + b), st.floats(0, 9), st.floats(0, 9)),
    st.builds(lambda a: Chance("exponential", a), st.floats(0.01, 9)),
    st.builds(lambda a, b: Chance("lognormal", a, b), st.floats(0.01, 9), st.floats(0, 1)),
)


@given(CHANCES)
def test_a_table_is_in_order_and_has_the_median_in_its_middle(chance: Chance) -> None:
    table = chance.table()
    assert len(table) == SIZE
    assert list(table) == sorted(table)
    assert table[SIZE // 2] == pytest.approx(chance.median, rel=0.01, abs=0.01)


@given(st.lists(st.floats(0.1, 9)), st.integers(0, 50), st.floats(0, 1))
def test_counted_zeros_are_as_good_as_listed_ones(values, zeros, share) -> None:  # type: ignore[no-untyped-def]
    listed = sorted([0.0] * zeros + values)
    expected = listed[min(len(listed) - 1, int(share * len(listed)))] if listed else None
    assert share_of(sorted(values), share, zeros) == expected
