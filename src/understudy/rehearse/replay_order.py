"""What a journal tells between its lines: when a bench began, and when a skip was decided.

An attempt's end is read off the clock a few microseconds after the bench it caused has begun. A
caller that waits for that bench to end can tell the difference, so a replay must not lose it.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right

from understudy.observe.journal_lines import Benched, Cleared, Tried
from understudy.rehearse.replay_read import Asked, Run

INSTANT = 1e-6  # seconds; sums of floats agree to that
SLACK = 1.0  # seconds between a decision and its line, at most; on a busy machine


def keys_of(tried: Tried) -> tuple[str, str, str]:
    """The health keys that an attempt may mark or clear."""
    provider = tried.target.partition("/")[0]
    label = tried.credential
    return tried.target, f"{provider}#{label}", f"{tried.target}#{label}"


def moments(run: Run) -> dict[int, float]:
    """For every attempt that benched somebody, by its identity, the moment it did."""
    benches: dict[str, list[float]] = {}
    for turn in run.turns:
        if isinstance(turn, Benched) and not turn.ordered:
            benches.setdefault(turn.key, []).append(turn.since)
    guilty = [t for asked in run.requests for t in asked.attempts if t.bench]
    found: dict[int, float] = {}
    for tried in sorted(guilty, key=lambda one: one.end):
        moment = _taken(benches, tried)
        if moment is not None:
            found[id(tried)] = moment
    return found


def _taken(benches: dict[str, list[float]], tried: Tried) -> float | None:
    """The last bench before this attempt's end; each belongs to one attempt only."""
    earliest = max(tried.began, tried.end - SLACK)
    for key in keys_of(tried):
        times = benches.get(key, [])
        place = bisect_right(times, tried.end) - 1
        if place >= 0 and times[place] >= earliest:
            return times.pop(place)
    return None


class Barred:
    """Who was benched when."""

    def __init__(self, run: Run) -> None:
        self._spans: dict[str, list[tuple[float, float]]] = {}
        asked = [t for one in run.requests for t in one.attempts if t.n]
        self._busy = sorted({*(t.began for t in asked), *(t.end for t in asked)})
        held = {} if run.marks is None else run.marks.held
        before: list[Benched | Cleared] = [h.bench for h in held.values() if h.bench is not None]
        for turn in (*before, *run.turns):
            spans = self._spans.setdefault(turn.key, [])
            if spans and spans[-1][1] > turn.at:
                spans[-1] = (spans[-1][0], turn.at)
            if isinstance(turn, Benched):
                spans.append((turn.since, math.inf if turn.until is None else turn.until))

    def decided(self, skip: Tried, asked: Asked) -> float:
        """When a skip was decided, at the latest: its line was made a moment after that.

        A bench that ended just before the line, while nothing else happened, was still running.
        """
        member = next((m for m in asked.chain.members if m.target == skip.target), None)
        labels = () if member is None else member.credentials
        provider = skip.target.partition("/")[0]
        keys = [skip.target]
        keys += [f"{owner}#{label}" for label in labels for owner in (provider, skip.target)]
        ends = [until for key in keys if (until := self._over(key, skip.began)) is not None]
        return min(ends) - INSTANT if ends else skip.began

    def _over(self, key: str, at: float) -> float | None:
        """When the last bench of a key was over, if that was just before."""
        spans = self._spans.get(key, [])
        place = bisect_left(spans, (at, 0.0)) - 1
        until = spans[place][1] if place >= 0 else -math.inf
        idle = bisect_left(self._busy, until) == bisect_left(self._busy, at)
        return until if at - SLACK < until <= at and idle else None
