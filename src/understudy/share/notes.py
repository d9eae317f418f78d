"""What is known of each key, from whomever, merged so that order and repetition do not matter.

The newest clearing or operator's bench of a key ends everything older. Of what is newer than it
the longest bench counts, as in the tracker: a shorter one does not shorten it. Facts are kept for
a while after they ended, so that a late copy is known for what it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from understudy.core.health import Bench

KEPT = 600.0  # seconds a fact is remembered after it has ended
SWEEP_FLOOR = 1024  # keys; below this nobody looks for what can be forgotten

Rank = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Fact:
    """A bench or a clearing, on this process's clock."""

    key: str
    rank: Rank
    host: str
    since: float
    until: float  # of a clearing: how long what it cleared would have lasted
    bench: Bench | None = None  # None: a clearing
    rounds: int = 0
    order: bool = False  # by an operator

    @property
    def final(self) -> bool:
        """Does it end all that is older?"""
        return self.order or self.bench is None


class Notes:
    """All facts that may still matter, by key."""

    def __init__(self) -> None:
        self._facts: dict[str, tuple[Fact, ...]] = {}
        self._sweep_at = SWEEP_FLOOR

    def take(self, fact: Fact, now: float) -> bool:
        """Note a fact; False if it is known or overtaken."""
        known = [f for f in self._facts.get(fact.key, ()) if _lives(f, now)]
        if any(_overtakes(f, fact) for f in known):
            return False
        rest = (f for f in known if not _overtakes(fact, f))
        self._facts[fact.key] = (*rest, fact)
        if len(self._facts) >= self._sweep_at:
            self._sweep(now)
        return True

    def standing(self, key: str) -> Fact | None:
        """The bench that counts, running or over; None if the key is cleared or unknown."""
        benches = [f for f in self._facts.get(key, ()) if f.bench is not None]
        return max(benches, key=lambda f: (f.until, f.rank), default=None)

    def living(self, now: float) -> Iterator[Fact]:
        """What somebody who knows nothing must be told, what is over included."""
        for facts in list(self._facts.values()):
            yield from (f for f in facts if _lives(f, now))

    def _sweep(self, now: float) -> None:
        kept = {
            key: tuple(f for f in facts if _lives(f, now)) for key, facts in self._facts.items()
        }
        self._facts = {key: facts for key, facts in kept.items() if facts}
        self._sweep_at = max(SWEEP_FLOOR, 2 * len(self._facts))


def _overtakes(one: Fact, other: Fact) -> bool:
    """Is `other` without any effect, now and later, because `one` is known?"""
    if one.rank < other.rank:
        return False
    return one.rank == other.rank or one.final or (not other.final and one.until >= other.until)


def _lives(fact: Fact, now: float) -> bool:
    return fact.until == math.inf or now < fact.until + KEPT
