"""What is counted while a simulation runs, and what is read from it afterwards."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from understudy.core.health import Change
from understudy.rehearse.flight import SLOTS, Actor, Flight
from understudy.rehearse.scenario import Outage, Scenario

LAST = SLOTS - 1


@dataclass(slots=True)
class Benched:
    """One stay on the bench."""

    key: str
    since: float
    until: float
    fault: str


class Tally:
    """Counts of one run."""

    def __init__(self, scenario: Scenario, actors: list[Actor]) -> None:
        self.scenario = scenario
        self.actors = actors
        self.requests = 0
        self.outcomes: Counter[str] = Counter()  # answered, failed, broken, left
        self.latencies: list[float] = []
        self.added: list[float] = []
        self.unhurt = 0  # answers that had nothing added at all
        self.failures: Counter[tuple[str, str]] = Counter()  # target, fault
        self.cancelled = 0  # attempts whose caller left
        self.benches: list[Benched] = []
        self.end = 0.0  # clock seconds of the last event
        self.width = max(scenario.seconds, 1e-9) / SLOTS  # seconds of a slot
        self.lost = [0] * SLOTS  # requests that failed, by arrival

    def slot(self, at: float) -> int:
        return min(LAST, int(at / self.width))

    def answered(self, flight: Flight, now: float) -> None:
        """A whole answer came."""
        actor, best = flight.actor, flight.best
        self.latencies.append(
            (now if flight.committed < 0.0 else flight.committed) - flight.arrived
        )
        waited = flight.started - flight.arrived
        if actor is best and waited == 0.0:
            self.unhurt += 1
        else:
            stream, tokens = flight.stream, flight.tokens
            slower = actor.typical(stream, tokens) - best.typical(stream, tokens)
            self.added.append(waited + max(0.0, slower))
        actor.tokens_out += flight.tokens
        if now >= actor.due_back:
            actor.answered(now)
        at = int(flight.started / self.width)
        actor.line.served[at if at < SLOTS else LAST] += 1

    def failed(self, flight: Flight, fault: str, share: float, *, billed: bool) -> None:
        """One attempt failed; `share` of its answer had been made."""
        actor = flight.actor
        actor.failed += 1
        self.failures[actor.role.key, fault] += 1
        actor.line.failed[self.slot(flight.started)] += 1
        if billed:
            actor.wasted_in += self.scenario.traffic.input_tokens
            actor.wasted_out += share * flight.tokens

    def ended(self, flight: Flight, outcome: str) -> None:
        """A request ended otherwise than well."""
        self.outcomes[outcome] += 1
        if outcome != "left":
            self.lost[self.slot(flight.arrived)] += 1

    def change(self, change: Change) -> None:
        if change.bench is not None:
            bench = change.bench
            self.benches.append(
                Benched(change.key, bench.since, bench.until, str(bench.fault or ""))
            )

    @property
    def answers(self) -> int:
        return len(self.latencies)

    def noticed(self, actor: Actor, outage: Outage) -> float | None:
        """Seconds from the outage's beginning to the first bench of its target."""
        for bench in self.benches:
            if bench.key in actor.keys and outage.start <= bench.since <= outage.end:
                return bench.since - outage.start
        return None

    def returned(self, actor: Actor, outage: Outage) -> float | None:
        """Seconds from the outage's end to the first answer after it."""
        back = actor.came_back.get(outage, math.inf)
        return None if back == math.inf else back - outage.end


class Fastest:
    """Who is the fastest of those that are well, as time goes by."""

    def __init__(self, scenario: Scenario, actors: list[Actor]) -> None:
        self._actors = actors
        self._tokens = scenario.traffic.output_tokens.median
        edges = {edge for a in actors for o in a.outages for edge in (o.start, o.end)}
        self._edges = sorted(edges)
        self.until = -math.inf
        self.plain = self.streaming = actors[0]

    def look(self, now: float) -> None:
        """Find out again; `until` says for how long that holds."""
        self.until = next((edge for edge in self._edges if edge > now), math.inf)
        well = [a for a in self._actors if not any(o.start <= now < o.end for o in a.outages)]
        among = well or self._actors
        self.plain = min(among, key=lambda a: a.typical(False, self._tokens))
        self.streaming = min(among, key=lambda a: a.typical(True, self._tokens))
