"""Looks on at every step of a simulated history and breaks off at the first breach.

What a client sees is kept here piece by piece, marked with the target it came from, and judged by
rules of its own: who is benched is worked out from the tracker's announcements, never asked of
the tracker. Knows the walk's steps and the contract's R1 to R13; draws nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from understudy import ChainExhausted, Fault, ProviderError
from understudy.core.errors import OutOfTime
from understudy.core.health import Bench, Change, HealthTracker
from understudy.core.target import Attempt
from understudy.core.walk import COMMITTED, Try
from understudy.rehearse.fate import ANSWER, Beat
from understudy.rehearse.flight import Flight
from understudy.rehearse.scenario import Scenario
from understudy.rehearse.simulator import LEAVE, Simulator

BLINK = 1e-6  # seconds; sums of floats differ in their last digits
Marks = dict[str, tuple[int, int, Bench | None]]


@dataclass
class Seen:
    """One request as its client and its targets saw it."""

    pieces: list[str] = field(default_factory=list)  # what went to the client, by target
    ends: list[str] = field(default_factory=list)  # end marks that went to it
    tries: list[str] = field(default_factory=list)
    asking: str = ""  # the target whose answer is awaited
    since: float = 0.0
    upstream: str = ""  # the end its target sent: "whole" or ""
    story: list[Attempt] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    marks: Marks = field(default_factory=dict)  # as they were before the last news


class Judge:
    """A `Watch` of the simulator, and a listener of its tracker."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.probing = scenario.cooldown.probe
        self.seen: defaultdict[Flight, Seen] = defaultdict(Seen)
        self.benches: dict[str, Bench] = {}
        self.outcomes: Counter[str] = Counter()
        self.attempts: list[tuple[float, Flight]] = []
        self._health: HealthTracker | None = None

    def follow(self, health: HealthTracker) -> None:
        self._health = health
        health.listen(self.changed)

    def changed(self, change: Change) -> None:
        if change.bench is None:
            self.benches.pop(change.key, None)
        else:
            self.benches[change.key] = change.bench

    # -- step by step -------------------------------------------------------------------------

    def tried(self, flight: Flight, step: Try, now: float) -> None:
        seen = self.seen[flight]
        key = step.target.key
        assert not seen.pieces, "R2: an attempt after content went out"
        assert not seen.outcomes, "R4: an attempt after the end"
        over = flight.arrived + self.scenario.timeout
        assert now < over, "R8: an attempt after the deadline"
        assert step.deadline == over, "R8: a target is given another deadline"
        assert now + (step.limit or 0.0) <= over + BLINK, "R8: a target may take too long"
        self._welcome(flight, key, now)
        seen.tries.append(key)
        seen.asking, seen.since = key, now
        self.attempts.append((now, flight))

    def _welcome(self, flight: Flight, key: str, now: float) -> None:
        bench = self.benches.get(key)
        if bench is None:
            return
        assert bench.until <= now, f"R3: {key} is benched until {bench.until}"
        if self.probing:
            probes = [
                other
                for other, kept in self.seen.items()
                if kept.asking == key and kept.since > bench.since and other is not flight
            ]
            assert not probes, f"R3: {key} is being probed already"

    def told(self, flight: Flight, what: object, now: float) -> None:
        seen = self.seen[flight]
        assert not seen.outcomes, "R4: something happened after the end"
        heard = what.told if isinstance(what, Beat) else what
        self._in_time(flight, heard, now)
        if flight.bad:
            seen.marks = self._marks()
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

    def _in_time(self, flight: Flight, heard: object, now: float) -> None:
        """What the walk answers for: answers, waits, and its own limit on a target."""
        # A simulated target takes its time to refuse; a real one is cut off by the watchdog.
        theirs = isinstance(heard, Exception) and not isinstance(heard, OutOfTime)
        over = flight.arrived + self.scenario.timeout
        if heard is not LEAVE and not theirs:
            assert now <= over + BLINK, f"R8: still at it at {now}, over at {over}"

    def attempt(self, flight: Flight, attempt: Attempt) -> None:
        self.seen[flight].story.append(attempt)

    # -- at the end ---------------------------------------------------------------------------

    def ended(self, flight: Flight, outcome: str, error: Exception | None) -> None:
        seen = self.seen.pop(flight, Seen())
        seen.outcomes.append(outcome)
        self.outcomes[outcome] += 1
        assert len(set(seen.pieces)) <= 1, "R1: two targets' words in one answer"
        assert len(seen.ends) <= 1, "R5: two ends"
        if outcome == "answered":
            assert seen.upstream == "whole", "R5, R6: an end its target did not send"
            assert seen.story[-1].outcome == "ok", "R4: answered, and the story says otherwise"
            assert seen.story[-1].target == seen.pieces[0], "R4: client and story disagree"
        else:
            assert not seen.ends, "R5: an end was invented"
        told = [a.target for a in seen.story if a.outcome in ("ok", "failed", "cancelled")]
        assert told == seen.tries, "R4: the story and the targets disagree"
        if outcome == "broken":
            assert seen.pieces, "R4: broken, but nothing had been sent"
        self._explained(seen, error)
        if flight.bad and outcome == "failed" and seen.tries:
            self._blameless(seen)

    def _explained(self, seen: Seen, error: Exception | None) -> None:
        if isinstance(error, ChainExhausted):
            keys = [role.key for role in self.scenario.chain]
            named = [e.target for e in error.exceptions if isinstance(e, ProviderError)]
            assert named == keys, "R13: somebody is not named"
            assert all(str(e) for e in error.exceptions), "R13: somebody has no reason"
            assert {a.target for a in error.attempts} == set(keys), "R13: a story with gaps"
        elif error is not None:
            assert isinstance(error, ProviderError)
            assert error.target == seen.tries[-1], "R13: somebody else is blamed"

    def _blameless(self, seen: Seen) -> None:
        """A caller's fault: one attempt, which stops, and no mark by it."""
        last = seen.story[-1]
        if last.fault is Fault.PERMANENT and not self.scenario.policy.advance_on_permanent:
            assert last.then == "stop", "R12: a bad request went on"
            assert len(seen.tries) == 1, "R12: a bad request was tried twice"
            assert self._marks() == seen.marks, "R12: a bad request marked somebody"

    def _marks(self) -> Marks:
        assert self._health is not None
        states = self._health.snapshot().items()
        return {key: (s.failures, s.rounds, s.bench) for key, s in states if s.failures or s.bench}

    def accounts(self, simulator: Simulator) -> None:
        """R4: client, story and count agree, and nobody is left on the stage."""
        tally = simulator.tally
        assert sum(self.outcomes.values()) == tally.requests
        assert self.outcomes["answered"] == tally.answers
        for outcome in ("failed", "broken", "left"):
            assert self.outcomes[outcome] == tally.outcomes[outcome]
        assert not self.seen


def crowded(attempts: Iterable[tuple[float, Flight]], since: float) -> str:
    """R11: where more than 1.2 attempts a request and ten more fell into 10 s; "" if nowhere."""
    window: deque[tuple[float, Flight]] = deque()
    asking: Counter[Flight] = Counter()
    for now, flight in attempts:
        window.append((now, flight))
        asking[flight] += 1
        while window[0][0] < now - 10.0:
            _, gone = window.popleft()
            asking[gone] -= 1
            if not asking[gone]:
                del asking[gone]
        if now >= since and len(window) > 1.2 * len(asking) + 10:
            return f"R11: {len(window)} attempts for {len(asking)} requests at {now}"
    return ""
