"""The contract's invariants, watched at every step of thousands of simulated histories."""

from __future__ import annotations

import os

import pytest

from tests.chaos.histories import history, kept, outage, watched
from tests.chaos.judge import crowded
from understudy.rehearse.scenario import Role, Scenario, Traffic
from understudy.rehearse.simulator import Simulator

SEEDS = int(os.environ.get("UNDERSTUDY_SEEDS", "2000"))  # noqa: TID251 - for longer hunts
BLOCKS = 40  # tests the seeds are spread over, so that a failure names few
OUTAGES = range(40)


def play(seed: int) -> None:
    """One history to its end; a breach names its seed."""
    simulator, judge = history(seed)
    try:
        simulator.run()
        judge.accounts(simulator)
    except AssertionError as error:
        error.add_note(f"seed {seed}: add it to tests/chaos/seeds.txt, with what it shows")
        raise


@pytest.mark.parametrize("seed", list(kept()))
def test_a_history_that_is_kept_breaks_no_invariant(seed: int) -> None:
    play(seed)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_history_breaks_an_invariant(block: int) -> None:
    for seed in range(block, SEEDS, BLOCKS):
        play(seed)


def test_the_same_seed_gives_the_same_history_to_the_last_digit() -> None:
    for seed in range(40):
        first, _ = history(seed)
        second, _ = history(seed)
        one, two = first.run(), second.run()
        assert one.latencies == two.latencies
        assert one.added == two.added
        assert one.failures == two.failures
        assert [b.since for b in one.benches] == [b.since for b in two.benches]


@pytest.mark.parametrize("seed", OUTAGES)
def test_attempts_stay_near_the_number_of_requests_in_an_outage(seed: int) -> None:
    """R11: over any 10 s of an outage, at most 1.2 attempts a request and ten more."""
    simulator, judge = watched(outage(seed), seed)
    simulator.run()
    assert crowded(judge.attempts, since=10.0) == ""


def test_a_bad_request_is_one_attempt_and_marks_nobody() -> None:
    """R12, alone on a healthy chain."""
    scenario = Scenario("bad", (Role("a/m"), Role("b/m")), Traffic(rate=5.0, bad=1.0), 20.0)
    simulator = Simulator(scenario)
    tally = simulator.run()
    assert tally.requests > 0
    assert tally.outcomes["failed"] == tally.requests
    assert tally.failures == {("a/m", "permanent"): tally.requests}
    assert simulator.health.snapshot() == {}
