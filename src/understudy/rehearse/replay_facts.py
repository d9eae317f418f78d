"""What a target did when: the evidence for attempts that were never made.

A replay under other settings may ask somebody who was not asked then. What would have come of it
is read off what that target did to others: if it failed both before and after, it was down; else
the nearest attempt in time decides; if nobody was near, it is taken to be well.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from understudy.core.faults import Fault
from understudy.observe.journal_lines import Tried
from understudy.rehearse.replay_read import Asked, Run

WINDOW = 60.0  # seconds; what is further away says nothing
UNKNOWN = (0.5, 2.0)  # seconds to the first content and to the end, where nothing is known
# About the request, not about the target: they would not have befallen another.
OWN = frozenset(
    str(fault)
    for fault in (
        Fault.PERMANENT,
        Fault.CONTEXT_LENGTH,
        Fault.UNSUPPORTED,
        Fault.CLIENT_DISCONNECT,
    )
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What would have come of an attempt, and how sure that is."""

    tried: Tried
    sure: str  # "known", "inferred" or "assumed"


@dataclass(frozen=True, slots=True)
class _Seen:
    at: float  # wall clock
    tried: Tried
    stream: bool


class Facts:
    """Every attempt of every run, by target and time."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._seen: dict[str, list[_Seen]] = {}
        for run in runs:
            for asked in run.requests:
                self._note(asked, run.epoch)
        for seen in self._seen.values():
            seen.sort(key=lambda one: one.at)
        self._times = {key: [one.at for one in seen] for key, seen in self._seen.items()}
        self._typical: dict[tuple[str, bool], tuple[float, float]] = {}

    def at(self, target: str, wall: float, stream: bool) -> Evidence:
        """What this target would have done at this moment."""
        found = self._nearest(target, wall)
        if found is None:
            return Evidence(self._well(target, stream), "assumed")
        if found.tried.outcome == "ok" and found.stream != stream:
            return Evidence(self._well(target, stream), "inferred")
        return Evidence(found.tried, "inferred")

    def _note(self, asked: Asked, epoch: float) -> None:
        for tried in asked.attempts:
            whole = tried.outcome == "ok" or (tried.outcome == "failed" and not tried.blameless)
            if whole and tried.fault not in OWN:
                seen = _Seen(tried.began + epoch, tried, asked.stream)
                self._seen.setdefault(tried.target, []).append(seen)

    def _nearest(self, target: str, wall: float) -> _Seen | None:
        seen = self._seen.get(target, [])
        place = bisect_left(self._times.get(target, []), wall)
        around = [*seen[max(0, place - 1) : place], *seen[place : place + 1]]
        if not around:
            return None
        near = min(around, key=lambda one: abs(one.at - wall))
        down = len(around) == 2 and all(one.tried.outcome == "failed" for one in around)
        return near if down or abs(near.at - wall) <= WINDOW else None

    def _well(self, target: str, stream: bool) -> Tried:
        """A good answer of its usual length."""
        first, whole = self._usual(target, stream)
        return Tried(target, "ok", 0.0, whole, first=first if stream else None)

    def _usual(self, target: str, stream: bool) -> tuple[float, float]:
        known = self._typical.get((target, stream))
        if known is None:
            good = self._good([target], stream) or self._good(self._seen, stream)
            known = UNKNOWN if not good else _medians(good)
            self._typical[target, stream] = known
        return known

    def _good(self, targets: Iterable[str], stream: bool) -> list[Tried]:
        return [
            one.tried
            for target in targets
            for one in self._seen.get(target, [])
            if one.tried.outcome == "ok" and one.stream is stream
        ]


def _medians(good: Sequence[Tried]) -> tuple[float, float]:
    firsts = [tried.seconds if tried.first is None else tried.first for tried in good]
    return median(firsts), median(tried.seconds for tried in good)
