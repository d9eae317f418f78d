"""One simulated request, and one target on the simulated stage. State of a run, nothing more."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from understudy.core.stage import Candidate
from understudy.core.target import Target
from understudy.rehearse.chance import BITS
from understudy.rehearse.scenario import Outage, Role

if TYPE_CHECKING:
    from understudy.core.walk import Steps


SLOTS = 120  # columns of a timeline


class Flying:
    """What the loop knows of a request under way. Made very often: defaults cost nothing."""

    steps: Steps | None = None  # None until it begins
    over = False
    committed = -1.0  # clock seconds of the first content; below 0: it has not come


class Flight(Flying):
    """A simulated request."""

    bad = False  # no target will accept it
    started = 0.0  # clock seconds of the attempt under way
    actor: Actor  # who is being asked

    def __init__(self, arrived: float, stream: bool, tokens: float, best: Actor) -> None:
        self.arrived = arrived
        self.stream = stream
        self.tokens = tokens
        self.best = best  # the fastest of the healthy targets


@dataclass(slots=True)
class Line:
    """One target's row of a timeline: what it answered and where it failed, slot by slot."""

    served: list[int] = field(default_factory=lambda: [0] * SLOTS)
    failed: list[int] = field(default_factory=lambda: [0] * SLOTS)


class Actor:
    """A target: its luck, its outages, and what it has done so far."""

    def __init__(self, role: Role, seed: str, most_tokens: float) -> None:
        self.most_tokens = most_tokens
        provider, _, model = role.key.partition("/")
        nature = role.nature
        self.role = role
        labels = tuple(f"k{n}" for n in range(1, role.credentials + 1))
        self.candidate = Candidate(
            Target(provider, model), labels if len(labels) > 1 else ("default",), role.window
        )
        self.keys = frozenset(
            (role.key, *(k for a in self.candidate.accounts for k in (a.key, a.share)))
        )
        self.luck = Random(f"{seed}/{role.key}")
        self.bits = self.luck.getrandbits
        self.firsts = nature.first_content.table()
        self.speeds = nature.tokens_per_second.table()
        self.latencies = None if nature.latency is None else nature.latency.table()
        self.failing = nature.fails_in.table()
        self._first = nature.first_content.median
        self._speed = nature.tokens_per_second.median
        self._whole = None if nature.latency is None else nature.latency.median
        self.risk = sum(share for _, share in role.errors)
        self.steady = role.limit is None and self._patient()
        self.outages = tuple(sorted(role.outages, key=lambda o: o.start))
        self.calm_until = -math.inf  # until then nothing can befall it; set by `look`
        self.buckets: dict[str, tuple[float, float]] = {}  # tokens, read at
        self.line = Line()
        self.tokens_out = 0.0
        self.failed = 0
        self.wasted_in = 0.0
        self.wasted_out = 0.0
        self.returns: list[Outage] = [o for o in self.outages if o.fault is not None]
        self.came_back: dict[Outage, float] = {}
        self.due_back = self.returns[0].end if self.returns else math.inf

    @property
    def served(self) -> int:
        return sum(self.line.served)

    def typical(self, stream: bool, tokens: float) -> float:
        """Seconds to the first content, or to the whole of a plain answer."""
        if stream:
            return self._first
        return self._first + tokens / self._speed if self._whole is None else self._whole

    def outage(self, now: float) -> Outage | None:
        """What it suffers from at this moment; also finds out how long it is calm."""
        self.calm_until = math.inf if self.steady else -math.inf
        for outage in self.outages:
            if outage.start <= now < outage.end:
                self.calm_until = -math.inf
                return outage
            if outage.start > now:
                self.calm_until = min(self.calm_until, outage.start)
                return None
        return None

    def _patient(self) -> bool:
        """Is it never too slow for us, whatever its luck?"""
        # Tables are in order, the slowest last.
        patience, slowest = self.role.patience, self.firsts[-1]
        whole = slowest + self.most_tokens / self.speeds[0]
        plain = whole if self.latencies is None else self.latencies[-1]
        limits = ((slowest, patience.first_byte), (plain, patience.response))
        return all(limit <= 0 or longest < limit for longest, limit in limits)

    def plain_seconds(self, tokens: float) -> float:
        if self.latencies is not None:
            return self.latencies[self.bits(BITS)]
        return self.firsts[self.bits(BITS)] + tokens / self.speeds[self.bits(BITS)]

    def admits(self, credential: str, now: float) -> float:
        """Seconds until its rate limit lets a request in; 0 means now, and takes a place."""
        limit = self.role.limit
        if limit is None:
            return 0.0
        left, read = self.buckets.get(credential, (limit.burst, now))
        left = min(limit.burst, left + (now - read) * limit.rate)
        wait = 0.0 if left >= 1.0 else (1.0 - left) / limit.rate
        self.buckets[credential] = (left if wait else left - 1.0, now)
        return wait

    def answered(self, now: float) -> None:
        """It is back, if it had been away."""
        while self.returns and self.returns[0].end <= now:
            self.came_back[self.returns.pop(0)] = now
        self.due_back = self.returns[0].end if self.returns else math.inf
