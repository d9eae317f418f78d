"""What an application needs to test its own failover: no network, no sleeping.

clock = ManualClock()
fake = Fake("p", clock=clock)
fake.script("a", 503, 503)
registry = Registry(env={}, clock=clock)
registry.register_provider(fake)
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable

from understudy.core.target import Attempt
from understudy.providers.fake import HANG, Chunks, Fake, Http, Pause

__all__ = [
    "HANG",
    "Chunks",
    "Fake",
    "Http",
    "ManualClock",
    "Pause",
    "told",
]


class _Timer:
    __slots__ = ("callback", "due")

    def __init__(self, due: float, callback: Callable[[], None]) -> None:
        self.due = due
        self.callback: Callable[[], None] | None = callback

    def __lt__(self, other: _Timer) -> bool:
        return self.due < other.due

    def cancel(self) -> None:
        self.callback = None


class ManualClock:
    """Called for the time, moved by hand. Timers set on it fire when it passes them."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start
        self._timers: list[_Timer] = []

    def __call__(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Move on, firing what falls due on the way, in order."""
        if seconds < 0:
            raise ValueError(f"cannot advance by {seconds!r} s; time does not run backwards")
        end = self._now + seconds
        while self._timers and self._timers[0].due <= end:
            timer = heapq.heappop(self._timers)
            if timer.callback is not None:
                self._now = max(self._now, timer.due)
                timer.callback()
        self._now = end

    def step(self, most: float) -> float:
        """Move to the next timer and fire it, or by `most`; returns how far it moved."""
        while self._timers and self._timers[0].callback is None:
            heapq.heappop(self._timers)
        gap = self._timers[0].due - self._now if self._timers else math.inf
        moved = min(gap, most)
        if moved == math.inf:
            return 0.0
        self.advance(moved)
        return moved

    def call_later(self, delay: float, callback: Callable[[], None]) -> _Timer:
        timer = _Timer(self._now + delay, callback)
        heapq.heappush(self._timers, timer)
        return timer

    @property
    def waiting(self) -> int:
        """Timers set and not yet fired or cancelled."""
        return sum(timer.callback is not None for timer in self._timers)


def told(story: Iterable[Attempt]) -> list[str]:
    """A story in short, for asserts: `["p/a=transient", "p/b=ok"]`."""
    return [f"{attempt.target}={attempt.word}" for attempt in story]
