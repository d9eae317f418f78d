"""The contract's invariants, watched at every step of thousands of simulated histories.

Each history is a random chain under random settings with random misfortunes, all drawn from one
seed: a breach prints its seed, and `history(seed)` replays it. What a client sees is kept here
piece by piece, marked with the target it came from, and judged by rules of its own: who is
benched is worked out from the tracker's announcements, never asked of the tracker.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field, replace
from random import Random

import pytest

from understudy import AVAILABILITY, FAIL_FAST, ChainExhausted, Cooldown, Fault, ProviderError
from understudy.core.health import Bench, Change
from understudy.core.target import Attempt
from understudy.core.walk import COMMITTED, Try
from understudy.providers.base import Patience
from understudy.rehearse.chance import Chance, constant
from understudy.rehearse.fate import ANSWER, Beat
from understudy.rehearse.flight import Flight
from understudy.rehearse.scenario import Limit, Nature, Outage, Role, Scenario, Traffic
from understudy.rehearse.simulator import Simulator

SEEDS = int(os.environ.get("UNDERSTUDY_SEEDS", "1500"))  # noqa: TID251 - for longer hunts
BLOCKS = 30  # tests the seeds are spread over, so that a failure names few
FAULTS = tuple(fault for fault in Fault if fault is not Fault.CLIENT_DISCONNECT)
PERMANENT_SEEDS = (7, 11, 2024)  # histories that are always played; failing ones are added here


@dataclass
class Seen:
    """One request as its client and its targets saw it."""

    pieces: list[str] = field(default_factory=list)  # what went to the client, by target
    ends: list[str] = field(default_factory=list)  # end marks that went to it
    tries: list[str] = field(default_factory=list)
    asking: str = ""  # the target whose answer is awaited
    since: float = 0.0
    upstream: str = ""  # the end its target sent: "whole", "empty" or ""
    story: list[Attempt] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)


class Judge:
    """Looks on, and breaks off at the first breach."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.probing = scenario.cooldown.probe
        self.seen: defaultdict[Flight, Seen] = defaultdict(Seen)
        self.benches: dict[str, Bench] = {}
        self.ended: list[str] = []

    def changed(self, change: Change) -> None:
        if change.bench is None:
            self.benches.pop(change.key, None)
        else:
            self.benches[change.key] = change.bench

    def tried(self, flight: Flight, step: Try, now: float) -> None:
        seen = self.seen[flight]
        key = step.target.key
        assert not seen.pieces, "R2: an attempt after content went out"
        assert not seen.outcomes, "R4: an attempt after the end"
        assert now < flight.arrived + self.scenario.timeout, "an attempt after the deadline"
        bench = self.benches.get(key)
        if bench is not None:
            assert bench.until <= now, f"R3: {key} is benched until {bench.until}"
            if self.probing:
                probes = [
                    other
                    for other, kept in self.seen.items()
                    if kept.asking == key and kept.since > bench.since and other is not flight
                ]
                assert not probes, f"R3: {key} is being probed already"
        seen.tries.append(key)
        seen.asking, seen.since = key, now

    def told(self, flight: Flight, what: object, now: float) -> None:
        seen = self.seen[flight]
        assert not seen.outcomes, "R4: something happened after the end"
        heard = what.told if isinstance(what, Beat) else what
        if heard is COMMITTED:
            seen.pieces.append(seen.asking)
        elif heard is ANSWER:
            seen.pieces.append(seen.asking)
            seen.ends.append(seen.asking)
            seen.upstream = "whole"
            seen.asking = ""
        elif isinstance(heard, Exception):
            seen.upstream = ""
            seen.asking = ""

    def attempt(self, flight: Flight, attempt: Attempt) -> None:
        self.seen[flight].story.append(attempt)

    def finished(self, flight: Flight, outcome: str, error: Exception | None) -> None:
        seen = self.seen.pop(flight, Seen())
        seen.outcomes.append(outcome)
        self.ended.append(outcome)
        assert len(set(seen.pieces)) <= 1, "R1: two targets' words in one answer"
        assert len(seen.ends) <= 1, "R5: two ends"
        if outcome == "answered":
            assert seen.upstream == "whole", "R5, R6: an end its target did not send"
            assert seen.story[-1].outcome == "ok"
            assert seen.story[-1].target == seen.pieces[0], "R4: client and story disagree"
        else:
            assert not seen.ends, "R5: an end was invented"
        told = [a.target for a in seen.story if a.outcome in ("ok", "failed", "cancelled")]
        assert told == seen.tries, "R4: the story and the targets disagree"
        if outcome == "broken":
            assert seen.pieces, "R4: broken, but nothing had been sent"
        self._explained(flight, seen, error)
        if flight.bad and outcome == "failed" and seen.tries:
            self._blameless(flight, seen)

    def _explained(self, flight: Flight, seen: Seen, error: Exception | None) -> None:
        if isinstance(error, ChainExhausted):
            keys = [role.key for role in self.scenario.chain]
            named = [e.target for e in error.exceptions if isinstance(e, ProviderError)]
            assert named == keys, "R13: somebody is not named"
            assert all(str(e) for e in error.exceptions), "R13: somebody has no reason"
            assert {a.target for a in error.attempts} == set(keys)
        elif error is not None:
            assert isinstance(error, ProviderError)
            assert error.target == seen.tries[-1]

    def _blameless(self, flight: Flight, seen: Seen) -> None:
        """A caller's fault: one attempt that stops, and no mark by it."""
        last = seen.story[-1]
        if last.fault is Fault.PERMANENT and not self.scenario.policy.advance_on_permanent:
            assert last.then == "stop", "R12: a bad request went on"
            assert last.benched == 0.0, "R12: a bad request benched somebody"


class Watching:
    """Joins the two orders in which things are told: the end comes last."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.tried, self.told, self.attempt = judge.tried, judge.told, judge.attempt
        self.ended = judge.finished


def history(seed: int) -> tuple[Simulator, Judge]:
    """One seed, one history."""
    scenario = drawn(Random(seed))
    judge = Judge(scenario)
    simulator = Simulator(scenario, seed=seed, watch=Watching(judge))
    simulator.health.listen(judge.changed)
    return simulator, judge


def drawn(luck: Random) -> Scenario:
    """A scenario of everything that can go wrong."""
    seconds = luck.choice([5.0, 20.0, 60.0])
    base = luck.choice([AVAILABILITY, FAIL_FAST])
    policy = replace(
        base,
        transient_retries=luck.randint(0, 3),
        max_wait=luck.choice([0.0, 2.0]),
        advance_on_permanent=luck.random() < 0.1,
        budget_ratio=luck.choice([None, 0.0, 0.2]),
    )
    return Scenario(
        "drawn",
        tuple(role(luck, f"{name}/m", seconds) for name in "abcd"[: luck.randint(1, 4)]),
        Traffic(
            rate=luck.choice([0.5, 2.0, 8.0]) * 20 / seconds,
            pattern=luck.choice(["poisson", "constant", "bursts"]),
            burst=luck.choice([3, 20]),
            streams=luck.choice([0.0, 0.5, 1.0]),
            concurrency=luck.choice([2, 10, 10**6]),
            output_tokens=Chance("lognormal", 100.0, 0.8),
            bad=luck.choice([0.0, 0.1]),
            leaves=luck.choice([0.0, 0.2]),
            leaves_after=Chance("exponential", 1.0),
        ),
        seconds,
        luck.choice([float("inf"), 3.0, 30.0]),
        policy,
        Cooldown(
            threshold=luck.randint(1, 3),
            base=luck.choice([0.5, 5.0]),
            cap=luck.choice([5.0, 300.0]),
            probe=luck.random() < 0.7,
        ),
    )


def role(luck: Random, key: str, seconds: float) -> Role:
    outages = []
    for _ in range(luck.choice([0, 1, 1, 2])):
        start = luck.uniform(-1.0, seconds)
        fault = luck.choice([*FAULTS, None])
        outages.append(Outage(start, start + luck.uniform(0, seconds / 2), fault, 8.0))
    errors = [(luck.choice(FAULTS), luck.uniform(0, 0.15)) for _ in range(luck.randint(0, 3))]
    return Role(
        key,
        Nature(
            first_content=Chance("lognormal", luck.choice([0.05, 0.6]), 0.8),
            tokens_per_second=constant(luck.choice([20.0, 200.0])),
            fails_in=luck.choice([constant(0.0), Chance("exponential", 0.2)]),
        ),
        tuple(outages),
        tuple(errors),
        luck.choice([None, None, Limit(2.0, 3.0), Limit(0.5, 1.0, hint=False)]),
        luck.choice([Patience(), Patience(first_byte=0.5, idle=0.5, response=1.0)]),
        luck.choice([1, 1, 3]),
        luck.choice([None, 1000, 2000]),
    )


@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_history_breaks_an_invariant(block: int) -> None:
    size = SEEDS // BLOCKS
    for seed in (*PERMANENT_SEEDS, *range(block * size, (block + 1) * size)):
        simulator, judge = history(seed)
        try:
            tally = simulator.run()
            everybody_is_accounted_for(simulator, judge, tally.requests)
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise


def everybody_is_accounted_for(simulator: Simulator, judge: Judge, requests: int) -> None:
    """R4: client, story and count agree, and nobody is left on the stage."""
    tally = simulator.tally
    assert len(judge.ended) == requests
    assert judge.ended.count("answered") == tally.answers
    for outcome in ("failed", "broken", "left"):
        assert judge.ended.count(outcome) == tally.outcomes[outcome]
    assert not judge.seen


def test_the_same_seed_gives_the_same_history_to_the_last_digit() -> None:
    for seed in range(40):
        first, _ = history(seed)
        second, _ = history(seed)
        one, two = first.run(), second.run()
        assert one.latencies == two.latencies
        assert one.added == two.added
        assert one.failures == two.failures
        assert [b.since for b in one.benches] == [b.since for b in two.benches]


def test_the_next_credential_of_a_target_benched_meanwhile_is_not_tried() -> None:
    """Seed 8: another request benches the target while this one waits for a 429 to come back."""
    simulator, _ = history(8)
    simulator.run()


class Counting(Judge):
    """Keeps when requests were under way and when attempts began."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self.attempts: list[tuple[float, Flight]] = []

    def tried(self, flight: Flight, step: Try, now: float) -> None:
        super().tried(flight, step, now)
        self.attempts.append((now, flight))


@pytest.mark.parametrize("seed", range(40))
def test_attempts_stay_near_the_number_of_requests_in_an_outage(seed: int) -> None:
    """R11: over any 10 s of an outage, at most 1.2 attempts a request and ten more.

    What is in flight when a target dies must be asked of somebody else, which no policy can help:
    where answers and refusals take more than a second or so, that alone breaks the bound.
    """
    luck = Random(seed)
    fails_in = luck.choice([0.0, 0.05, 0.5])
    dead = Outage(luck.choice([-1.0, 10.0]), 60.0, Fault.TRANSIENT)
    quick = Nature(latency=constant(luck.choice([0.1, 1.0])), fails_in=constant(fails_in))
    head, tail = Role("head/m", quick, (dead,)), Role("tail/m", quick)
    scenario = Scenario(
        "outage",
        (head, tail, Role("last/m")),
        Traffic(rate=luck.choice([2.0, 20.0, 60.0]), pattern=luck.choice(["poisson", "constant"])),
        50.0,
        policy=replace(AVAILABILITY, transient_retries=luck.randint(0, 3)),
        cooldown=Cooldown(threshold=luck.randint(1, 3), probe=True),
    )
    judge = Counting(scenario)
    simulator = Simulator(scenario, seed=seed, watch=Watching(judge))
    simulator.health.listen(judge.changed)
    simulator.run()
    window: deque[tuple[float, Flight]] = deque()
    asking: Counter[Flight] = Counter()
    for now, flight in judge.attempts:
        window.append((now, flight))
        asking[flight] += 1
        while window[0][0] < now - 10.0:
            _, gone = window.popleft()
            asking[gone] -= 1
            if not asking[gone]:
                del asking[gone]
        assert now < 10.0 or len(window) <= 1.2 * len(asking) + 10, f"at {now}"


def test_a_bad_request_is_one_attempt_and_marks_nobody() -> None:
    """R12, alone on a healthy chain."""
    scenario = Scenario("bad", (Role("a/m"), Role("b/m")), Traffic(rate=5.0, bad=1.0), 20.0)
    simulator = Simulator(scenario)
    tally = simulator.run()
    assert tally.requests > 0
    assert tally.outcomes["failed"] == tally.requests
    assert tally.failures == {("a/m", "permanent"): tally.requests}
    assert simulator.health.snapshot() == {}
