"""How many retries all requests together may make. When it is spent, only retries stop."""

from __future__ import annotations

from threading import Lock

from understudy.core.health import Clock

BURST_SECONDS = 10.0  # how long unused allowance is kept


class RetryBudget:
    """A token bucket: every request deposits `ratio`, every second `rate`, a retry takes one."""

    def __init__(self, ratio: float, rate: float, *, clock: Clock) -> None:
        self.ratio = ratio
        self.rate = rate
        self.clock = clock
        self._tokens = rate
        self._deposits = 0  # since they were last counted in
        self._read_at = clock()
        self._lock = Lock()

    def deposit(self) -> None:
        """A request began. Without the lock: threads that meet here lose part of one retry."""
        self._deposits += 1

    def withdraw(self) -> bool:
        """May one more retry be made?"""
        with self._lock:
            self._refill()
            if self._tokens < 1.0:
                return False
            self._tokens -= 1.0
            return True

    @property
    def left(self) -> float:
        with self._lock:
            self._refill()
            return self._tokens

    def fill(self, tokens: float) -> float:
        """Hold so many, or as many as it can; how many it holds then."""
        with self._lock:
            self._refill()
            self._tokens = min(self._most, tokens)
            return self._tokens

    @property
    def _most(self) -> float:
        return max(self.rate, 1.0) * BURST_SECONDS

    def _refill(self) -> None:
        now = self.clock()
        deposits, self._deposits = self._deposits, 0
        earned = (now - self._read_at) * self.rate + deposits * self.ratio
        self._tokens = min(self._most, self._tokens + earned)
        self._read_at = now
