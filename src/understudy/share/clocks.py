"""Order and lateness without a common clock. Time is passed in.

`Stamps` is a hybrid logical clock: it runs like the process's own clock and is pushed forward by
every stamp that is heard. Who has heard of an event gives later numbers than it had, and events
that knew nothing of each other are in the order they happened, as nearly as messages are fast.
"""

from __future__ import annotations

from understudy.share.message import STAMP_MOST

MICRO = 1_000_000
JUMP = 60.0  # seconds; no link holds a message for so long: that sender's clock has jumped
SENDERS = 1000  # whose fastest message is remembered
DRIFT = 2e-4  # seconds a second that two clocks may differ in speed; quartz is better


class Stamps:
    """One process's numbers: they only grow, and exceed all that were heard."""

    def __init__(self) -> None:
        self._ahead = 0  # microseconds of the eldest clock before ours
        self._last = 0

    def next(self, now: float) -> int:
        self._last = max(self._last + 1, int(now * MICRO) + self._ahead)
        return self._last

    def heard(self, stamp: int, now: float) -> None:
        if stamp < STAMP_MOST:
            self._ahead = max(self._ahead, stamp - int(now * MICRO))
            self._last = max(self._last, stamp)


class Lateness:
    """How long a message was under way, beyond the fastest of its sender."""

    def __init__(self) -> None:
        self._least: dict[str, tuple[float, float]] = {}  # difference of clocks, and when seen

    def of(self, sender: str, sent: float, now: float) -> float:
        between = now - sent
        least, seen = self._least.pop(sender, (between, now))
        least += (now - seen) * DRIFT
        if not least <= between <= least + JUMP:
            least = between
        self._least[sender] = (least, now)
        if len(self._least) > SENDERS:
            del self._least[next(iter(self._least))]
        return between - least
