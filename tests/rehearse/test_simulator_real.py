"""What is simulated is what happens: the same scenario over sockets, time moved by hand."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace

import pytest

from tests.rig import run
from understudy import AVAILABILITY, FAIL_FAST, Cooldown, HttpProvider, Policy, Registry
from understudy.core.target import Attempt
from understudy.core.walk import Try
from understudy.gateway.app import Gateway
from understudy.gateway.house import House
from understudy.gateway.server import Server
from understudy.observe.record import Opening, Record
from understudy.rehearse.chance import constant
from understudy.rehearse.flight import Flight
from understudy.rehearse.scenario import Nature, Outage, Role, Scenario, Traffic
from understudy.rehearse.script import parse
from understudy.rehearse.server import FakeServer
from understudy.rehearse.simulator import Simulator
from understudy.testing import ManualClock

RATE, SECONDS = 10.0, 40.0
DOWN = Outage(5.03, 21.03)  # between two arrivals, as every edge below
QUICK = Nature(latency=constant(0.004), fails_in=constant(0.002))


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


async def for_real(policy: Policy, cooldown: Cooldown) -> Counter[str]:
    """The head is one of two servers, as the outage has it; the clock jumps to each arrival."""
    records, clock = Records(), ManualClock()
    registry = Registry(env={}, policy=policy, cooldown=cooldown, clock=clock)
    registry.register_alias("chat", "head/m, tail/m")
    gateway = Gateway(House(registry), (records,))
    server = Server(gateway, gateway.refuse, clock=time.monotonic)
    port = await server.listen("127.0.0.1", 0)
    caller = Registry(env={}, policy=replace(FAIL_FAST, transient_retries=0))
    caller.register_provider(HttpProvider("gateway", base_url=f"http://127.0.0.1:{port}/v1"))
    async with FakeServer() as well, FakeServer(parse("m: 503 ...")) as sick:
        up, down = (HttpProvider("head", base_url=f"{s.address}/v1") for s in (well, sick))
        registry.register_provider(HttpProvider("tail", base_url=f"{well.address}/v1"))
        for n in range(int(RATE * SECONDS)):
            clock.advance(n / RATE - (n - 1) / RATE if n else 0.0)
            registry.register_provider(down if DOWN.start <= n / RATE < DOWN.end else up)
            await caller.parse("gateway/chat").generate("hi")
        await server.close()
    return records.counts


@pytest.mark.parametrize("policy", [AVAILABILITY, FAIL_FAST], ids=lambda p: p.name)
@pytest.mark.parametrize(
    "cooldown",
    [
        Cooldown(threshold=2, base=1.53, probe=True),
        Cooldown(threshold=3, base=0.73, factor=3.0, probe=False),
    ],
    ids=["one probe", "no probe"],
)
def test_the_gateway_tells_the_simulated_story_within_two_in_a_hundred(
    policy: Policy, cooldown: Cooldown
) -> None:
    chain = (Role("head/m", QUICK, (DOWN,)), Role("tail/m", QUICK))
    traffic = Traffic(RATE, "constant")
    telling = Telling()
    scenario = Scenario("real", chain, traffic, SECONDS, policy=policy, cooldown=cooldown)
    Simulator(scenario, watch=telling).run()
    real = run(for_real(policy, cooldown))
    assert real["head/m=skipped"] > 50
    assert real["head/m=transient"] > 5
    apart = sum(abs(telling.counts[key] - real[key]) for key in {*telling.counts, *real})
    assert apart <= 0.02 * real.total()
