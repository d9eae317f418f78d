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
from threading import Lock

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
        self._lock = Lock()  # it may be moved from one thread while another waits by it

    def __call__(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Move on, firing what falls due on the way, in order."""
        if seconds < 0:
            raise ValueError(f"cannot advance by {seconds!r} s; time does not run backwards")
        end = round(self._now + seconds, 9)  # ten times 0.1 s are one second
        while (timer := self._due(end)) is not None:
            if timer.callback is not None:
                self._now = max(self._now, timer.due)
                timer.callback()
        self._now = end

    def step(self, most: float) -> float:
        """Move to the next timer and fire it, or by `most`; returns how far it moved."""
        with self._lock:
            while self._timers and self._timers[0].callback is None:
                heapq.heappop(self._timers)
            gap = self._timers[0].due - self._now if self._timers else math.inf
        moved = min(gap, most)
        if moved == math.inf:
            return 0.0
        self.advance(moved)
        return moved

    def call_later(self, delay: float, callback: Callable[[], None]) -> _Timer:
        timer = _Timer(round(self._now + delay, 9), callback)
        with self._lock:
            heapq.heappush(self._timers, timer)
        return timer

    def _due(self, end: float) -> _Timer | None:
        """The next timer that falls due by then; somebody else may be setting one."""
        with self._lock:
            due = self._timers and self._timers[0].due <= end
            return heapq.heappop(self._timers) if due else None

    @property
    def waiting(self) -> int:
        """Timers set and not yet fired or cancelled."""
        return sum(timer.callback is not None for timer in self._timers)


def told(story: Iterable[Attempt]) -> list[str]:
    """A story in short, for asserts: `["p/a=transient", "p/b=ok"]`."""
    return [f"{attempt.target}={attempt.word}" for attempt in story]
