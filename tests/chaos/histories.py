"""Random histories: a chain, settings and misfortunes, all drawn from one seed.

`history(seed)` replays one. What is drawn, and in which order, stays as it is: the seeds that are
kept for good mean the histories they meant when they were found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

from tests.chaos.judge import Judge
from understudy import AVAILABILITY, FAIL_FAST, Cooldown, Fault
from understudy.providers.base import Patience
from understudy.rehearse.chance import Chance, constant
from understudy.rehearse.scenario import Limit, Nature, Outage, Role, Scenario, Traffic
from understudy.rehearse.simulator import Simulator

KEPT = Path(__file__).with_name("seeds.txt")
FAULTS = tuple(fault for fault in Fault if fault is not Fault.CLIENT_DISCONNECT)


def kept() -> Iterator[int]:
    """The seeds that are always played."""
    for line in KEPT.read_text(encoding="utf-8").splitlines():
        if seed := line.partition("#")[0].strip():
            yield int(seed)


def history(seed: int) -> tuple[Simulator, Judge]:
    """One seed, one history."""
    return watched(drawn(Random(seed)), seed)


def watched(scenario: Scenario, seed: int) -> tuple[Simulator, Judge]:
    """A run and who looks on at it."""
    judge = Judge(scenario)
    simulator = Simulator(scenario, seed=seed, watch=judge)
    judge.follow(simulator.health)
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


def outage(seed: int) -> Scenario:
    """A head that dies, two that are well, and traffic that goes on.

    What is in flight when a target dies must be asked of somebody else, which no policy can help:
    where answers and refusals take more than a second or so, that alone breaks R11's bound.
    """
    luck = Random(seed)
    fails_in = luck.choice([0.0, 0.05, 0.5])
    dead = Outage(luck.choice([-1.0, 10.0]), 60.0, Fault.TRANSIENT)
    quick = Nature(latency=constant(luck.choice([0.1, 1.0])), fails_in=constant(fails_in))
    return Scenario(
        "outage",
        (Role("head/m", quick, (dead,)), Role("tail/m", quick), Role("last/m")),
        Traffic(rate=luck.choice([2.0, 20.0, 60.0]), pattern=luck.choice(["poisson", "constant"])),
        50.0,
        policy=replace(AVAILABILITY, transient_retries=luck.randint(0, 3)),
        cooldown=Cooldown(threshold=luck.randint(1, 3), probe=True),
    )
