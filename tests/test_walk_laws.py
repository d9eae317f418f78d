"""What holds for every chain, script, policy and clock (Hypothesis over the walk itself)."""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.core.budget import RetryBudget
from understudy.core.classify import classify
from understudy.core.errors import ChainExhausted, OutOfTime, ProviderError, Stall
from understudy.core.faults import Fault
from understudy.core.health import Cooldown, HealthTracker
from understudy.core.plan import plan
from understudy.core.policy import AVAILABILITY, DETERMINISTIC, FAIL_FAST, Policy
from understudy.core.stage import Candidate, Stage
from understudy.core.target import Attempt, Target
from understudy.core.walk import COMMITTED, Step, Try, Wait, run, walk
from understudy.driver import drive
from understudy.testing import ManualClock

FAULTS = [fault for fault in Fault if fault is not Fault.CLIENT_DISCONNECT]


@dataclass(frozen=True)
class Act:
    """What a target does: takes some seconds, then answers, fails, or commits and then ends."""

    seconds: float
    fault: Fault | None = None
    hint: float | None = None
    commits: bool = False


ACTS = st.builds(
    Act,
    st.sampled_from([0.0, 0.5, 3.0, 20.0]),
    st.none() | st.sampled_from(FAULTS),
    st.none() | st.sampled_from([0.5, 7.0, 9000.0]),
    st.booleans(),
)
POLICIES = st.builds(
    lambda base, retries, wait, bold, ratio: replace(
        base,
        transient_retries=retries,
        max_wait=wait,
        advance_on_permanent=bold,
        budget_ratio=ratio,
    ),
    st.sampled_from([FAIL_FAST, AVAILABILITY, DETERMINISTIC]),
    st.integers(-1, 4),
    st.sampled_from([0.0, 2.0, 6.0]),
    st.booleans(),
    st.sampled_from([None, 0.0, 0.2]),
)
COOLDOWNS = st.builds(
    Cooldown, threshold=st.integers(1, 3), base=st.sampled_from([1.0, 5.0]), probe=st.booleans()
)
CHAINS = st.lists(
    st.builds(
        lambda name, keys, window: Candidate(
            Target("p", name), tuple(f"k{n}" for n in range(keys)), window
        ),
        st.sampled_from("abcd"),
        st.integers(1, 3),
        st.none() | st.integers(1, 3),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda c: c.key,
)


@dataclass
class World:
    """Everything a walk touches, driven by a script of acts per request."""

    chain: tuple[Candidate, ...]
    policy: Policy
    cooldown: Cooldown
    clock: ManualClock = field(default_factory=ManualClock)

    def __post_init__(self) -> None:
        self.health = HealthTracker(self.cooldown, clock=self.clock)
        ratio = self.policy.budget_ratio
        budget = None if ratio is None else RetryBudget(ratio, 1.0, clock=self.clock)
        self.stage = Stage(self.policy, classify, self.clock, self.health, budget)
        self.story: list[Attempt] = []
        self.tries: list[tuple[Try, float]] = []
        self.acts: list[Act] = []
        self.flying: defaultdict[str, int] = defaultdict(int)

    def act(self, step: Step) -> object:
        if isinstance(step, Wait):
            self.clock.advance(step.seconds)
            return None
        if not isinstance(step, Try):
            return self.end(self.acts[-1])
        self.tries.append((step, self.clock()))
        act = self.acts.pop(0) if self.acts else Act(0.0)
        limit = math.inf if step.limit is None else step.limit
        self.clock.advance(min(act.seconds, limit))
        if act.seconds > limit:
            raise OutOfTime("cut")
        if act.commits:
            self.acts.append(act)
            return COMMITTED
        return self.end(act)

    def end(self, act: Act) -> object:
        if act.fault in (Fault.STALL_PRE_FIRST_BYTE, Fault.STALL_MID_STREAM):
            raise Stall(act.fault.removeprefix("stall_"), "p", 1.0)
        if act.fault is not None:
            raise ProviderError(act.fault, retry_after=act.hint)
        return "answer"

    def request(self, acts: list[Act], deadline: float) -> object:
        self.acts, self.story, self.tries = list(acts), [], []
        steps = walk(self.chain, self.stage, deadline=deadline, observe=self.story.append)
        try:
            return run(steps, self.act)
        except (ProviderError, ChainExhausted) as error:
            return error


REQUESTS = st.lists(
    st.tuples(
        st.lists(ACTS, max_size=8),
        st.sampled_from([math.inf, 0.5, 4.0, 30.0]),
        st.sampled_from([0.0, 1.0, 5.0, 400.0]),
    ),
    min_size=1,
    max_size=5,
)


def worlds(chain: list[Candidate], policy: Policy, cooldown: Cooldown) -> World:
    return World(tuple(chain), policy, cooldown)


LAW = settings(max_examples=300, deadline=None)


@LAW
@given(CHAINS, POLICIES, COOLDOWNS, REQUESTS)
def test_the_walk_keeps_its_promises(chain, policy, cooldown, requests) -> None:  # type: ignore[no-untyped-def]
    world = worlds(chain, policy, cooldown)
    bound = plan(world.chain, world.stage).bound
    for acts, allowance, rest in requests:
        deadline = world.clock() + allowance
        outcome = world.request(acts, deadline)
        ended_within_the_plan(world, bound)
        nothing_started_too_late(world, deadline)
        exactly_one_outcome(world, outcome)
        everyone_is_named(world, outcome)
        nothing_after_the_commitment(world)
        world.clock.advance(rest)


def ended_within_the_plan(world: World, bound: int) -> None:
    assert len(world.tries) <= bound


def nothing_started_too_late(world: World, deadline: float) -> None:
    assert all(at < deadline for _, at in world.tries)


def exactly_one_outcome(world: World, outcome: object) -> None:
    answered = [a for a in world.story if a.outcome == "ok"]
    assert len(answered) == (1 if outcome == "answer" else 0)
    if answered:
        assert world.story[-1] is answered[0]


def everyone_is_named(world: World, outcome: object) -> None:
    if isinstance(outcome, ChainExhausted):
        assert [e.target for e in outcome.exceptions] == [c.key for c in world.chain]
        assert all(str(e) for e in outcome.exceptions)
        assert {a.target for a in outcome.attempts} == {c.key for c in world.chain}


def nothing_after_the_commitment(world: World) -> None:
    committed = [n for n, a in enumerate(world.story) if a.first_content is not None]
    assert committed in ([], [len(world.story) - 1])


@LAW
@given(CHAINS, POLICIES, COOLDOWNS, REQUESTS)
def test_a_benched_target_is_never_called(chain, policy, cooldown, requests) -> None:  # type: ignore[no-untyped-def]
    world = worlds(chain, policy, replace(cooldown, probe=False))
    original = world.act

    def act(step: Step) -> object:
        if isinstance(step, Try):
            assert world.health.available(step.target.key)
        return original(step)

    world.act = act  # type: ignore[method-assign]
    for acts, allowance, rest in requests:
        world.request(acts, world.clock() + allowance)
        world.clock.advance(rest)


@LAW
@given(CHAINS, st.lists(st.tuples(st.integers(0, 5), ACTS), max_size=40), COOLDOWNS)
def test_requests_at_once_never_probe_a_target_twice_at_a_time(chain, moves, cooldown) -> None:  # type: ignore[no-untyped-def]
    """Six walks interleaved at will: after a bench, at most one attempt is in flight."""
    world = worlds(chain, FAIL_FAST, replace(cooldown, probe=True))
    walks: dict[int, tuple[object, Try | None]] = {}
    for slot, act in moves:
        world.clock.advance(act.seconds / 10)
        steps, _ = walks.get(slot, (None, None))
        try:
            if steps is None:
                steps = walk(world.chain, world.stage)
                step = next(steps)
            elif act.fault is None:
                step = steps.send("answer")  # type: ignore[attr-defined]
            elif act.commits:
                steps.close()  # type: ignore[attr-defined]
                raise StopIteration
            else:
                step = steps.throw(ProviderError(act.fault, retry_after=act.hint))  # type: ignore[attr-defined]
        except (StopIteration, ProviderError, ChainExhausted):
            walks.pop(slot, None)
            continue
        walks[slot] = (steps, step)
        on_probation = {
            key
            for key, state in world.health.snapshot().items()
            if state.bench is not None and not key.count("#")
        }
        for key in on_probation:
            bench = world.health.snapshot()[key].bench
            probes = [
                s
                for w, s in walks.values()
                if s is not None and s.target.key == key and started(w) > bench.since  # type: ignore[union-attr]
            ]
            assert len(probes) <= 1


def started(steps: object) -> float:
    """When the attempt a suspended walk is making began."""
    visit = steps.gi_yieldfrom  # type: ignore[attr-defined]
    return float(visit.gi_frame.f_locals["self"].started)


@LAW
@given(CHAINS, POLICIES, COOLDOWNS, st.lists(ACTS, max_size=8), st.integers(0, 6))
def test_a_caller_who_leaves_changes_no_mark(chain, policy, cooldown, acts, leave_at) -> None:  # type: ignore[no-untyped-def]
    world = worlds(chain, policy, cooldown)
    world.acts = list(acts)
    steps = walk(world.chain, world.stage, observe=world.story.append)
    try:
        step = next(steps)
        for _ in range(leave_at):
            try:
                step = steps.send(world.act(step))
            except (ProviderError, OutOfTime, Stall) as error:
                step = steps.throw(error)
    except (StopIteration, ProviderError, ChainExhausted):
        return
    before = world.health.snapshot()
    steps.close()
    assert world.health.snapshot().keys() == before.keys()
    for key, state in world.health.snapshot().items():
        assert (state.failures, state.rounds, state.bench) == (
            before[key].failures,
            before[key].rounds,
            before[key].bench,
        )
    if isinstance(step, Try):
        assert world.story[-1].outcome == "cancelled"


@LAW
@given(CHAINS, POLICIES, COOLDOWNS, REQUESTS)
def test_blocking_and_async_drivers_tell_the_same_story(chain, policy, cooldown, requests) -> None:  # type: ignore[no-untyped-def]
    told = []
    for driver in ("blocking", "async"):
        world = worlds(chain, policy, cooldown)
        for acts, allowance, rest in requests:
            plain = [replace(act, commits=False) for act in acts]
            deadline = world.clock() + allowance
            if driver == "blocking":
                outcome = world.request(plain, deadline)
            else:
                outcome = asyncio.run(awaited(world, plain, deadline))
            told.append((driver, str(outcome), [replace(a, reason="") for a in world.story]))
            world.clock.advance(rest)
    half = len(told) // 2
    assert [t[1:] for t in told[:half]] == [t[1:] for t in told[half:]]


async def awaited(world: World, acts: list[Act], deadline: float) -> object:
    world.acts, world.story, world.tries = list(acts), [], []

    async def act(step: Step) -> object:
        return world.act(step)

    steps = walk(world.chain, world.stage, deadline=deadline, observe=world.story.append)
    try:
        return await drive(steps, act)
    except (ProviderError, ChainExhausted) as error:
        return error


@pytest.mark.parametrize("fault", [Fault.OUT_OF_CREDITS, Fault.AUTH])
def test_a_credential_that_another_request_benched_meanwhile_is_not_retried(fault: Fault) -> None:
    clock = ManualClock()
    health = HealthTracker(Cooldown(probe=True), clock=clock)
    stage = Stage(replace(AVAILABILITY, budget_ratio=None), classify, clock, health)
    chain = (Candidate(Target("p", "a")), Candidate(Target("q", "b")))
    first, second = walk(chain, stage), walk(chain, stage)
    asked = [next(first), next(second)]
    clock.advance(0.1)
    asked.append(second.throw(ProviderError(fault)))
    clock.advance(0.1)
    asked.append(first.throw(ProviderError(Fault.TRANSIENT)))
    assert [step.target.key for step in asked if isinstance(step, Try)] == [
        "p/a",
        "p/a",
        "q/b",
        "q/b",
    ]
