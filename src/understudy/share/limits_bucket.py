"""An allowance that refills with time, up to what one second is worth. Never waits."""

from __future__ import annotations

from understudy.core.health import Clock


class Bucket:
    """So many a second. What is learned too late may overdraw it; then it has to recover."""

    __slots__ = ("_at", "_clock", "_level", "rate")

    def __init__(self, rate: float, clock: Clock) -> None:
        self.rate = rate
        self._clock = clock
        self._at = clock()
        self._level = self.most

    @property
    def most(self) -> float:
        """A slow rate still lets one through at once."""
        return max(1.0, self.rate)

    def short(self) -> float:
        """Seconds until there is one; 0.0 if there is."""
        self._refill()
        return 0.0 if self._level >= 1.0 else (1.0 - self._level) / self.rate

    def spend(self, amount: float) -> None:
        self._refill()
        self._level -= amount

    def _refill(self) -> None:
        now = self._clock()
        self._level = min(self.most, self._level + (now - self._at) * self.rate)
        self._at = now
