"""The speed of the simulator.

    python bench/simulate.py [--rounds N]

Simulated requests a second of CPU time, for a chain of three whose head is well and for
harder scenarios, beside the bare walk, which is what the simulator cannot do without. A busy
machine slows both: the least of several rounds is told.
"""

from __future__ import annotations

import argparse
import gc
import math
import time
from dataclasses import replace

from understudy import AVAILABILITY, FAIL_FAST, Cooldown, Fault, Policy
from understudy.core.budget import RetryBudget
from understudy.core.classify import classify
from understudy.core.health import HealthTracker
from understudy.core.stage import Candidate, Stage
from understudy.core.target import Target
from understudy.core.walk import walk
from understudy.rehearse.chance import Chance
from understudy.rehearse.scenario import Nature, Outage, Role, Scenario, Traffic
from understudy.rehearse.simulator import Simulator

NATURE = Nature(latency=Chance("lognormal", 0.8, 0.4))
KEYS = ("a/m", "b/m", "c/m")
GOAL = 100_000  # requests a second


def scenario(policy: Policy, *, streams: float = 0.0, timeout: float = math.inf) -> Scenario:
    roles = tuple(Role(key, NATURE) for key in KEYS)
    return Scenario("speed", roles, Traffic(50.0, streams=streams), 600.0, timeout, policy)


def cases() -> dict[str, Scenario]:
    dead = replace(scenario(AVAILABILITY).chain[0], outages=(Outage(100.0, 500.0),))
    rocky = tuple(
        replace(role, errors=((Fault.TRANSIENT, 0.02), (Fault.RATE_LIMIT, 0.01)))
        for role in scenario(AVAILABILITY).chain
    )
    base = scenario(AVAILABILITY)
    return {
        "head well, fail_fast": scenario(FAIL_FAST),
        "head well, availability": base,
        "head well, with a timeout": scenario(AVAILABILITY, timeout=60.0),
        "head well, streams": scenario(AVAILABILITY, streams=1.0),
        "head out for two thirds": replace(base, chain=(dead, *base.chain[1:])),
        "errors everywhere": replace(base, chain=rocky),
    }


def simulated(case: Scenario) -> float:
    """CPU seconds a request."""
    simulator = Simulator(case)
    began = time.process_time()
    tally = simulator.run()
    return (time.process_time() - began) / tally.requests


def bare(policy: Policy, count: int = 20_000) -> float:
    """CPU seconds of a walk whose head answers, and of nothing else."""
    moment = [0.0]

    def clock() -> float:
        return moment[0]

    ratio = policy.budget_ratio
    budget = None if ratio is None else RetryBudget(ratio, 10.0, clock=clock)
    health = HealthTracker(Cooldown(probe=True), clock=clock)
    stage = Stage(policy, classify, clock, health, budget)
    chain = tuple(Candidate(Target("p", name)) for name in "abc")
    began = time.process_time()
    for _ in range(count):
        steps = walk(chain, stage)
        next(steps)
        try:  # noqa: SIM105 - `suppress` costs as much as a fifth of the walk
            steps.send(None)
        except StopIteration:
            pass
    return (time.process_time() - began) / count


def speed(rounds: int) -> None:
    gc.set_threshold(50_000, 10, 10)  # as the command does
    figures: dict[str, float] = {}
    for _ in range(rounds):
        for name, case in cases().items():
            figures[name] = min(figures.get(name, 1.0), simulated(case))
        for policy in (FAIL_FAST, AVAILABILITY):
            name = f"the bare walk, {policy.name}"
            figures[name] = min(figures.get(name, 1.0), bare(policy))
    for name, seconds in figures.items():
        mark = "" if "walk" in name else ("  ok" if 1 / seconds >= GOAL else "")
        print(f"{name:<30} {seconds * 1e6:7.2f} us  {1 / seconds:>9,.0f} a second{mark}")


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--rounds", type=int, default=5)
    arguments = reader.parse_args()
    speed(arguments.rounds)


if __name__ == "__main__":
    main()
