"""What one client key may ask for: so many requests at once, so many a second. Never waits."""

from __future__ import annotations

import math
from dataclasses import dataclass

from understudy.core.health import Clock

BUSY_SECONDS = 1.0  # when to ask again if all places are taken: nobody knows, so soon


@dataclass(frozen=True, slots=True)
class Allowance:
    """The limits of one key; infinite where there is none."""

    concurrent: float = math.inf
    rate: float = math.inf  # requests a second

    @property
    def limited(self) -> bool:
        return min(self.concurrent, self.rate) < math.inf


UNLIMITED = Allowance()


@dataclass(frozen=True, slots=True)
class Turned:
    """Why a request may not come in now, and in how many seconds it is worth asking again."""

    reason: str
    seconds: float


class Gate:
    """The door of one key: a count of those inside, and a token bucket worth one second."""

    __slots__ = ("_at", "_clock", "_tokens", "allowance", "inside")

    def __init__(self, allowance: Allowance, clock: Clock) -> None:
        self.allowance = allowance
        self.inside = 0
        self._clock = clock
        self._at = clock()
        self._tokens = self._most

    @property
    def _most(self) -> float:
        """A slow rate still lets one request through at once."""
        return max(1.0, self.allowance.rate)

    def enter(self) -> Turned | None:
        """Come in; whoever is let in must `leave`."""
        allowance = self.allowance
        if self.inside >= allowance.concurrent:
            reason = f"{self.inside} requests of this key are running, which is all it may have"
            return Turned(reason, BUSY_SECONDS)
        if allowance.rate < math.inf:
            self._refill()
            if self._tokens < 1.0:
                reason = f"this key may ask {allowance.rate:g} times a second"
                return Turned(reason, (1.0 - self._tokens) / allowance.rate)
            self._tokens -= 1.0
        self.inside += 1
        return None

    def leave(self) -> None:
        self.inside -= 1

    def _refill(self) -> None:
        now = self._clock()
        self._tokens = min(self._most, self._tokens + (now - self._at) * self.allowance.rate)
        self._at = now
