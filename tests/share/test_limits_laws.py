"""The arithmetic of shared limits: what is let through, given back and charged. No server here."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.share.limits_bucket import Bucket
from understudy.share.limits_lease import Claim, Lease
from understudy.testing import ManualClock

STEP = 0.1  # seconds at most between two steps of a history
Answer = tuple[float, float]

rates = st.floats(0.2, 40)
steps = st.lists(
    st.tuples(st.floats(0, STEP), st.integers(0, 2), st.integers(0, 30)), min_size=1, max_size=80
)


class Shared:
    """The bucket in the middle, by the rules of the script; `test_limits` compares the two."""

    def __init__(self, rate: float, clock: ManualClock) -> None:
        self.level = self.most = max(1.0, rate)
        self._clock, self._at = clock, clock()

    def take(self, claim: Claim) -> Answer:
        now = self._clock()
        grown = self.level + (now - self._at) * claim.rate + claim.back - claim.over
        self.level, self._at = min(self.most, grown), now
        half = max(1, math.floor(self.level / 2))
        portion = min(claim.wanted, half) if self.level >= 1 else 0
        self.level -= portion
        return portion, self.level


class Process:
    """A steward of one lease, whose reports are sent and answered when the test says so."""

    def __init__(self, rate: float, clock: ManualClock, middle: Shared) -> None:
        self.shared = True
        self.lease = Lease("k", rate, clock, self)
        self.entered = 0
        self.stirred = False
        self._middle = middle
        self._under_way: list[Answer] = []

    def stir(self, lease: Lease, *, soon: bool) -> None:
        assert lease is self.lease
        self.stirred = True

    def ask(self, times: int) -> None:
        for _ in range(times):
            if not self.lease.short():
                self.lease.spend(1.0)
                self.entered += 1

    def send(self) -> None:
        if self.stirred or self.lease.left:
            self.stirred = False
            self._under_way.append(self._middle.take(self.lease.claim()))

    def hear(self) -> None:
        while self._under_way:
            self.lease.granted(*self._under_way.pop(0))


@given(rates, steps)
def test_together_never_more_than_the_rate_and_what_each_could_not_know(
    rate: float, history: list[tuple[float, int, int]]
) -> None:
    clock = ManualClock()
    middle = Shared(rate, clock)
    processes = [Process(rate, clock, middle) for _ in range(3)]
    passed = 0.0
    for pause, who, times in history:
        clock.advance(pause)
        passed += pause
        processes[who].ask(times)
        for process in processes:
            process.hear()  # what was asked a step before
            process.send()
        unknown = 3 * (middle.most + rate * 2 * STEP)
        entered = sum(process.entered for process in processes)
        assert entered <= middle.most + rate * passed + unknown + 1e-6


@given(rates, steps)
def test_who_hears_at_once_overdraws_by_one_at_most(
    rate: float, history: list[tuple[float, int, int]]
) -> None:
    clock = ManualClock()
    middle = Shared(rate, clock)
    processes = [Process(rate, clock, middle) for _ in range(3)]
    passed = 0.0
    for pause, who, times in history:
        clock.advance(pause)
        passed += pause
        for _ in range(times):
            processes[who].ask(1)
            processes[who].send()
            processes[who].hear()
        entered = sum(process.entered for process in processes)
        assert entered <= middle.most + rate * passed + len(processes) + 1e-6


@given(rates, steps)
def test_a_host_that_shares_with_nobody_lets_in_as_many_as_one_that_does_not_share(
    rate: float, history: list[tuple[float, int, int]]
) -> None:
    clock = ManualClock()
    alone, plain = Process(rate, clock, Shared(rate, clock)), Bucket(rate, clock)
    entered = 0
    for pause, _, times in history:
        clock.advance(pause)
        for _ in range(times):
            if not plain.short():
                plain.spend(1.0)
                entered += 1
        alone.ask(times)
        alone.hear()
        alone.send()
        assert alone.entered >= entered - 1  # a refilled bucket may differ in its last digit


@given(rates, st.lists(st.integers(0, 50), max_size=20))
def test_who_falls_silent_gives_everything_back(rate: float, bursts: list[int]) -> None:
    clock = ManualClock()
    middle = Shared(rate, clock)
    process = Process(rate, clock, middle)
    for times in bursts:
        process.ask(times)
        process.send()
        process.hear()
    for _ in range(2):
        process.send()
        process.hear()
    assert (process.lease.left, process.stirred) == (0.0, False)
    assert middle.level == pytest.approx(middle.most - process.entered)


def test_a_portion_is_spent_before_anything_is_overdrawn_and_the_rest_is_charged() -> None:
    clock = ManualClock()
    process = Process(100.0, clock, Shared(100.0, clock))
    process.ask(1)
    process.send()
    process.hear()
    held = process.lease.left
    process.lease.spend(held + 7)
    claim = process.lease.claim()
    assert (held, claim.back, claim.over) == (10.0, 0.0, 7.0)
    assert claim.wanted == 2 * (held + 7)


def test_a_bucket_that_is_known_to_be_empty_lets_nobody_in_until_it_has_one_again() -> None:
    clock = ManualClock()
    process = Process(2.0, clock, Shared(2.0, clock))
    process.ask(1)
    process.send()
    process.lease.granted(0.0, -1.0)
    assert process.lease.short() == 1.0
    clock.advance(0.5)
    assert process.lease.short() == 0.5
    clock.advance(0.5)
    assert process.lease.short() == 0.0


def test_what_is_overdrawn_while_the_answer_is_under_way_still_counts() -> None:
    clock = ManualClock()
    process = Process(4.0, clock, Shared(4.0, clock))
    process.ask(1)
    process.lease.claim()
    process.ask(2)
    process.lease.granted(0.0, 2.0)
    assert process.lease.short() > 0
    assert process.lease.claim().over == 2.0


def test_a_portion_pays_first_for_what_was_overdrawn_while_it_was_under_way() -> None:
    clock = ManualClock()
    process = Process(10.0, clock, Shared(10.0, clock))
    process.ask(1)
    process.lease.claim()
    process.lease.spend(500.0)
    process.lease.granted(4.0, 5.0)
    assert process.lease.left == 0.0
    assert process.lease.short() == 49.2
    assert process.lease.claim().over == 496.0


def test_without_a_server_the_rate_is_the_process_own_and_nothing_is_reported_later() -> None:
    clock = ManualClock()
    process = Process(3.0, clock, Shared(3.0, clock))
    process.ask(1)
    process.send()
    process.hear()
    process.shared = False
    process.lease.forget()
    process.stirred = False
    process.ask(100)
    assert process.entered <= 4
    assert process.lease.alone == 100
    clock.advance(1.0)
    process.ask(100)
    assert process.entered <= 7
    assert not process.stirred
    process.shared = True
    assert process.lease.claim() == Claim(3.0, 0.0, 0.0, 0)
