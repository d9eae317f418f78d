"""The real walk, tracker, budget and policies on a clock that jumps from event to event.

Only the targets are made up. One seed gives one history, to the last digit: arrivals and each
target draw from generators of their own, so another policy meets the same callers.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from functools import partial
from heapq import heappush
from random import Random
from typing import Protocol

from understudy.core.budget import RetryBudget
from understudy.core.classify import classify
from understudy.core.health import HealthTracker
from understudy.core.stage import Stage
from understudy.core.target import Attempt
from understudy.core.walk import COMMITTED, Step, Steps, Try, walk
from understudy.rehearse.chance import BITS
from understudy.rehearse.fate import ANSWER, Beat, fate
from understudy.rehearse.flight import Actor, Flight
from understudy.rehearse.loop import LEAVE, Loop
from understudy.rehearse.scenario import Scenario
from understudy.rehearse.tally import Fastest, Tally

__all__ = ["LEAVE", "Simulator", "Watch", "arrivals"]


class Watch(Protocol):
    """Somebody who looks on at every step; for tests of invariants."""

    def tried(self, flight: Flight, step: Try, now: float) -> None: ...
    def told(self, flight: Flight, what: object, now: float) -> None: ...
    def attempt(self, flight: Flight, attempt: Attempt) -> None: ...
    def ended(self, flight: Flight, outcome: str, error: Exception | None) -> None: ...


class Simulator(Loop[Flight]):
    """One run of one scenario."""

    def __init__(
        self, scenario: Scenario, *, seed: int | None = None, watch: Watch | None = None
    ) -> None:
        super().__init__()
        self.scenario = scenario
        self.seed = scenario.seed if seed is None else seed
        self.watch = watch
        self.watched = watch is not None
        self.health = HealthTracker(scenario.cooldown, clock=self.clock)
        policy = scenario.policy
        self.budget = None
        if policy.budget_ratio is not None:
            self.budget = RetryBudget(policy.budget_ratio, policy.budget_rate, clock=self.clock)
        self.stage = Stage(policy, classify, self.clock, self.health, self.budget)
        self._sizes = scenario.traffic.output_tokens.table()
        self.actors = [Actor(role, str(self.seed), self._sizes[-1]) for role in scenario.chain]
        self.tally = Tally(scenario, self.actors)
        self.health.listen(self.tally.change)
        self._fastest = Fastest(scenario, self.actors)
        self._by_key = {actor.role.key: actor for actor in self.actors}
        self._chain = tuple(actor.candidate for actor in self.actors)
        self._flying = 0
        self._queue: deque[Flight] = deque()
        traffic = scenario.traffic
        self._luck = Random(f"{self.seed}/traffic")
        self._bits = self._luck.getrandbits
        self._patience = traffic.leaves_after.table()
        self._streams, self._places = traffic.streams, traffic.concurrency
        self._whims = bool(traffic.bad or traffic.leaves)

    def run(self) -> Tally:
        """To the end of the last request."""
        self.play(arrivals(self.scenario, Random(f"{self.seed}/arrivals")), self._arrive)
        self.tally.end = self._now[0]
        return self.tally

    # -- arriving -----------------------------------------------------------------------------

    def _arrive(self, at: float) -> None:
        self._now[0] = at
        fastest, share = self._fastest, self._streams
        if at >= fastest.until:
            fastest.look(at)
        stream = share > 0.0 and self._luck.random() < share
        best = fastest.streaming if stream else fastest.plain
        flight = Flight(at, stream, self._sizes[self._bits(BITS)], best)
        self.tally.requests += 1
        if self._whims:
            self._whim(flight)
        if self._flying >= self._places:
            self._queue.append(flight)
        else:
            self._begin(flight)

    def _whim(self, flight: Flight) -> None:
        """Some requests are bad, some callers leave."""
        traffic, luck = self.scenario.traffic, self._luck
        flight.bad = luck.random() < traffic.bad
        if luck.random() < traffic.leaves:
            self._push(flight.arrived + self._patience[self._bits(BITS)], flight, LEAVE)

    def _begin(self, flight: Flight) -> None:
        self._flying += 1
        observe = None if self.watch is None else partial(self.watch.attempt, flight)
        deadline = flight.arrived + self.scenario.timeout
        self._launch(flight, walk(self._chain, self.stage, deadline=deadline, observe=observe))

    # -- from event to event ------------------------------------------------------------------

    def _try(self, flight: Flight, step: Try, now: float) -> None:
        actor = flight.actor = self._by_key[step.target.key]
        flight.started = now
        if self.watch is not None:
            self.watch.tried(flight, step, now)
        draw = actor.luck.random() if actor.risk else 1.0
        calm = now < actor.calm_until and draw >= actor.risk
        if calm and self._glide(actor, flight, step, now):
            return
        for beat in fate(actor, flight, step, now, draw):
            self._push(beat.at, flight, beat)

    def _glide(self, actor: Actor, flight: Flight, step: Try, now: float) -> bool:
        """The short way, for nearly all attempts: a good answer that nothing can befall."""
        limit = step.limit
        if flight.stream:
            ready = actor.firsts[actor.bits(BITS)]
            end = now + ready + flight.tokens / actor.speeds[actor.bits(BITS)]
        else:
            whole = actor.latencies
            ready = whole[actor.bits(BITS)] if whole else actor.plain_seconds(flight.tokens)
            end = now + ready
        if end >= actor.calm_until or flight.bad:
            return False
        if limit is not None and (ready > limit or end > step.deadline):
            return False
        self._count = count = self._count + 1
        if flight.stream:
            heappush(self._heap, (now + ready, count, flight, COMMITTED))
            self._count = count = count + 1
        heappush(self._heap, (end, count, flight, ANSWER))
        return True

    def _tell(self, flight: Flight, steps: Steps, told: object) -> Step:
        what = told.told if isinstance(told, Beat) else told
        if isinstance(what, Exception):
            assert isinstance(told, Beat)
            self.tally.failed(flight, classify(what).fault, told.share, billed=told.billed)
        return super()._tell(flight, steps, what)

    def _notice(self, flight: Flight, told: object, at: float) -> None:
        assert self.watch is not None
        self.watch.told(flight, told, at)

    # -- ending -------------------------------------------------------------------------------

    def _answered(self, flight: Flight, now: float) -> None:
        flight.over = True
        self.tally.answered(flight, now)
        if self.watch is not None:
            self.watch.ended(flight, "answered", None)
        self._flying -= 1
        if self._queue:
            self._make_room()

    def _end(self, flight: Flight, outcome: str, error: Exception | None) -> None:
        flight.over = True
        self.tally.ended(flight, outcome)
        if self.watch is not None:
            self.watch.ended(flight, outcome, error)
        self._flying -= 1
        self._make_room()

    def _left(self, flight: Flight) -> None:
        if flight.steps is None:  # it never got a place
            flight.over = True
            self.tally.ended(flight, "left")
            if self.watch is not None:
                self.watch.ended(flight, "left", None)
            return
        flight.steps.close()
        self.tally.cancelled += 1
        self._end(flight, "left", None)

    def _make_room(self) -> None:
        queue = self._queue
        while queue and self._flying < self._places:
            flight = queue.popleft()
            if not flight.over:
                self._begin(flight)


def arrivals(scenario: Scenario, luck: Random) -> Iterator[float]:
    """When requests come, in order."""
    traffic, end = scenario.traffic, scenario.seconds
    at, gap = 0.0, 1.0 / traffic.rate
    random, log = luck.random, math.log
    match traffic.pattern:
        case "poisson":
            while (at := at - log(1.0 - random()) * gap) < end:
                yield at
        case "bursts":
            for n in range(math.ceil(end * traffic.rate)):
                at = n // traffic.burst * traffic.burst * gap
                if at < end:
                    yield at
        case _:
            for n in range(math.ceil(end * traffic.rate)):
                yield n * gap
