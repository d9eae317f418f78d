"""One process's part of a bucket that many share. Answers from memory, reports when asked.

A portion that was granted is spent without a word. Beyond it the process goes by what the shared
bucket was last said to hold, refilled since: that much it may overdraw before it hears again, and
all of it is charged. While there is nobody to hear from, the same guess is its own limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from understudy.core.health import Clock
from understudy.share.limits_bucket import Bucket

TICK = 0.1  # seconds between reports while there is traffic


class Steward(Protocol):
    """Who speaks for the leases of a process."""

    @property
    def shared(self) -> bool:
        """Is there a shared bucket to speak of?"""

    def stir(self, lease: Lease, *, soon: bool) -> None:
        """This one has something to report; `soon`: its portion is spent."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a lease says to the shared bucket."""

    rate: float
    back: float  # of its portion, given back
    over: float  # spent beyond its portion
    wanted: int


class Lease(Bucket):
    """The bucket it is stands for the shared one, as far as that is known here."""

    __slots__ = ("_asked_at", "_over", "_spent", "_steward", "_stirred", "alone", "key", "left")

    def __init__(self, key: str, rate: float, clock: Clock, steward: Steward) -> None:
        super().__init__(rate, clock)
        self.key = key
        self.left = 0.0  # of the portion
        self.alone = 0  # times it was asked while nothing was shared
        self._steward = steward
        self._over = 0.0  # spent beyond the portion, and not reported
        self._spent = 0.0  # since the last report
        self._asked_at = self._at
        self._stirred = False

    def short(self) -> float:
        if not self._steward.shared:
            self.alone += 1
            return super().short()
        spent = self.left < 1.0
        seconds = super().short() if spent else 0.0
        self._stir(soon=spent and not seconds)
        return seconds

    def spend(self, amount: float) -> None:
        if not self._steward.shared:
            return super().spend(amount)
        funded = min(amount, self.left)
        self.left -= funded
        self._spent += amount
        if amount > funded:
            self._over += amount - funded
            super().spend(amount - funded)
        self._stir(soon=False)

    def claim(self) -> Claim:
        """To be sent; the answer is for `granted`. A quiet lease wants nothing any more."""
        wanted = max(1.0, self.rate * TICK, 2 * self._spent) if self._stirred else 0.0
        back = max(0.0, self.left - wanted)
        claim = Claim(self.rate, back, self._over, math.ceil(max(0.0, wanted - self.left)))
        self.left -= back
        super().spend(-back)  # there it will be
        self._asked_at = self._at
        self._over = self._spent = 0.0
        self._stirred = False
        return claim

    def granted(self, portion: float, level: float) -> None:
        """The answer: our new portion, and what the shared bucket holds without it."""
        paid = min(portion, self._over)  # what was overdrawn meanwhile is not charged yet
        self._over -= paid
        self.left += portion - paid
        self._level = level - self._over
        self._at = self._asked_at

    def forget(self) -> None:
        """The shared bucket is lost: it will know nothing of our portion when it is back."""
        self.left = self._over = self._spent = 0.0
        self._stirred = False

    def _stir(self, *, soon: bool) -> None:
        if soon or not self._stirred:
            self._stirred = True
            self._steward.stir(self, soon=soon)
