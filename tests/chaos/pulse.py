"""How late a process is: what it saw may have happened that much earlier.

On a crowded machine everybody is late now and then; laws about time allow for that much more.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque

BEAT = 0.02  # seconds
MEMORY = 3.0  # seconds back that a lag is looked for


class Pulse:
    """Beats, and remembers when it came late."""

    def __init__(self) -> None:
        self._late: deque[tuple[float, float]] = deque()  # when, by how much
        self._last = time.monotonic()

    async def beat(self) -> None:
        """For ever."""
        while True:
            await asyncio.sleep(BEAT)
            now = time.monotonic()
            if now - self._last > 2 * BEAT:
                self._late.append((now, now - self._last - BEAT))
            while self._late and self._late[0][0] < now - 10 * MEMORY:
                self._late.popleft()
            self._last = now

    def lag(self, since: float) -> float:
        """The longest delay from shortly before `since` until now, in seconds."""
        now = time.monotonic()
        seen = [late for at, late in self._late if at >= since - MEMORY]
        return round(max((now - self._last, *seen)), 3)
