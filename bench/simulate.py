"""The speed of the simulator, and whether it tells the truth.

    python bench/simulate.py [--real] [--rounds N]

Speed: simulated requests a second of CPU time, for a chain of three whose head is well and for
harder scenarios, beside the bare walk, which is what the simulator cannot do without. A busy
machine slows both: the least of several rounds is told.

`--real` plays one scenario twice, simulated and for real (a gateway, sockets, scripted providers
and the wall clock), and compares what every target was asked and answered.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import math
import time
from collections import Counter
from dataclasses import replace

from understudy import AVAILABILITY, FAIL_FAST, Cooldown, Fault, HttpProvider, Policy, Registry
from understudy.core.budget import RetryBudget
from understudy.core.classify import classify
from understudy.core.health import HealthTracker
from understudy.core.stage import Candidate, Stage
from understudy.core.target import Attempt, Target
from understudy.core.walk import Try, walk
from understudy.gateway.app import Gateway
from understudy.gateway.house import House
from understudy.gateway.record import Opening, Record
from understudy.gateway.server import Server
from understudy.rehearse.chance import Chance, constant
from understudy.rehearse.flight import Flight
from understudy.rehearse.scenario import Nature, Outage, Role, Scenario, Traffic
from understudy.rehearse.script import parse
from understudy.rehearse.server import FakeServer
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


# -- the same for real ----------------------------------------------------------------------

RATE, SECONDS = 10.0, 20.0
DOWN = Outage(5.03, 11.03)  # between two arrivals, as every edge below
COOLDOWN = Cooldown(threshold=2, base=1.53, factor=2.0, cap=300.0, probe=True)


def rehearsed() -> Scenario:
    quick = Nature(latency=constant(0.004), fails_in=constant(0.002))
    chain = (Role("head/m", quick, (DOWN,)), Role("tail/m", quick))
    traffic = Traffic(RATE, "constant")
    return Scenario("real", chain, traffic, SECONDS, cooldown=COOLDOWN)


class Telling:
    """Counts what the simulated walk tells."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def attempt(self, flight: Flight, attempt: Attempt) -> None:
        self.counts[f"{attempt.target}={attempt.word}"] += 1

    def tried(self, flight: Flight, step: Try, now: float) -> None: ...
    def told(self, flight: Flight, what: object, now: float) -> None: ...
    def ended(self, flight: Flight, outcome: str, error: Exception | None) -> None: ...


class Records:
    """Counts what the gateway tells."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def attempt(self, opening: Opening, attempt: Attempt, number: int) -> None: ...

    def finished(self, record: Record) -> None:
        self.counts.update(f"{a.target}={a.word}" for a in record.attempts)


async def for_real() -> Counter[str]:
    """The same over sockets: the head is one of two servers, as the outage has it."""
    records = Records()
    registry = Registry(env={}, policy=AVAILABILITY, cooldown=COOLDOWN)
    registry.register_alias("chat", "head/m, tail/m")
    gateway = Gateway(House(registry), (records,))
    server = Server(gateway, gateway.refuse, clock=time.monotonic)
    port = await server.listen("127.0.0.1", 0)
    caller = Registry(env={}, policy=replace(FAIL_FAST, transient_retries=0))
    caller.register_provider(HttpProvider("gateway", base_url=f"http://127.0.0.1:{port}/v1"))
    async with FakeServer() as well, FakeServer(parse("m: 503 ...")) as sick:
        up, down = (HttpProvider("head", base_url=f"{s.address}/v1") for s in (well, sick))
        registry.register_provider(HttpProvider("tail", base_url=f"{well.address}/v1"))
        loop = asyncio.get_running_loop()
        start, asking = loop.time() + 0.1, []
        for n in range(int(RATE * SECONDS)):
            await asyncio.sleep(max(0.0, start + n / RATE - loop.time()))
            registry.register_provider(down if DOWN.start <= n / RATE < DOWN.end else up)
            asking.append(loop.create_task(caller.parse("gateway/chat").generate("hi")))
        await asyncio.gather(*asking, return_exceptions=True)
        await server.close()
    return records.counts


def truth() -> None:
    telling = Telling()
    Simulator(rehearsed(), watch=telling).run()
    real = asyncio.run(for_real())
    total = sum(real.values())
    apart = sum(abs(telling.counts[key] - real[key]) for key in {*telling.counts, *real})
    for key in sorted({*telling.counts, *real}):
        print(f"{key:<24} simulated {telling.counts[key]:>5}   real {real[key]:>5}")
    print(f"apart by {apart} of {total}: {100 * apart / total:.2f} %")


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--real", action="store_true", help="compare with sockets, takes 20 s")
    reader.add_argument("--rounds", type=int, default=5)
    arguments = reader.parse_args()
    truth() if arguments.real else speed(arguments.rounds)


if __name__ == "__main__":
    main()
