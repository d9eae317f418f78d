"""What would happen to a request now, and why. Asks what the walk asks, calls nobody."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from understudy.core.stage import (
    Account,
    Candidate,
    Obstacle,
    Stage,
    Unfit,
    credential_bench,
    is_out,
    obstacle,
    usable,
)
from understudy.core.words import in_seconds, plural


@dataclass(frozen=True, slots=True)
class Line:
    """One target's part in the plan."""

    target: str
    verdict: str  # "try" or "skip"
    reason: str
    tries: int  # the most attempts it can get
    window: int | None = None
    credentials: tuple[str, ...] = ()  # labels that may be used, in order
    seconds: float | None = None  # its share of the deadline if it comes to it

    def to_dict(self) -> dict[str, object]:
        return {
            "target": self.target,
            "verdict": self.verdict,
            "reason": self.reason,
            "tries": self.tries,
            "window": self.window,
            "credentials": list(self.credentials),
            "seconds": self.seconds,
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """The ordered verdicts, and the worst case."""

    lines: tuple[Line, ...]
    policy: str
    worst_attempts: int  # of the targets that would be tried
    bound: int  # never exceeded by any request over this chain, whatever the health

    @property
    def head(self) -> str:
        """Who would be called first; "" if nobody."""
        return next((line.target for line in self.lines if line.verdict == "try"), "")

    def to_dict(self) -> dict[str, object]:
        return {
            "policy": self.policy,
            "head": self.head,
            "worst_attempts": self.worst_attempts,
            "bound": self.bound,
            "targets": [line.to_dict() for line in self.lines],
        }

    def noted(self, notes: Mapping[str, str]) -> Plan:
        """The same, with what is known of targets that would be tried in vain, and why."""
        told = (
            replace(line, reason=notes[line.target])
            if line.verdict == "try" and line.target in notes
            else line
            for line in self.lines
        )
        return replace(self, lines=tuple(told))

    def __str__(self) -> str:
        width = max(len(line.target) for line in self.lines)
        rows = [_row(n, line, width) for n, line in enumerate(self.lines, 1)]
        worst = plural(self.worst_attempts, "attempt")
        end = f"policy {self.policy}, at worst {worst}" if self.head else "nobody would be called"
        return "\n".join([*rows, end])


def plan(
    chain: Sequence[Candidate],
    stage: Stage,
    *,
    timeout: float | None = None,
    refusals: Mapping[str, str] | None = None,
) -> Plan:
    """The verdict on every target now. `refusals`: who cannot take this request, and why."""
    hurdles = [_hurdle(candidate, stage, refusals or {}) for candidate in chain]
    remaining = sum(hurdle is None for hurdle in hurdles)
    left = math.inf if timeout is None else timeout
    lines = []
    for candidate, hurdle in zip(chain, hurdles, strict=True):
        seconds = None
        if hurdle is None:
            share = left / remaining
            seconds = share if math.isfinite(share) else None
            left, remaining = left - share, remaining - 1
        lines.append(_line(candidate, stage, hurdle, seconds))
    worst = sum(line.tries for line in lines)
    bound = sum(most_tries(candidate, stage) for candidate in chain)
    return Plan(tuple(lines), stage.policy.name, worst, bound)


def most_tries(candidate: Candidate, stage: Stage) -> int:
    """Retries are counted per target, a change of credential adds one attempt each."""
    return stage.policy.tries + len(candidate.labels) - 1


def _hurdle(candidate: Candidate, stage: Stage, refusals: Mapping[str, str]) -> Obstacle | None:
    if candidate.key in refusals:
        return Unfit(refusals[candidate.key])
    return obstacle(candidate, stage)


def _line(
    candidate: Candidate, stage: Stage, hurdle: Obstacle | None, seconds: float | None
) -> Line:
    if hurdle is not None:
        return Line(candidate.key, "skip", hurdle.told(stage.clock()), 0, candidate.window)
    tries = most_tries(candidate, stage)
    accounts = usable(candidate, stage)
    labels = tuple(account.label for account in accounts)
    reason = f"{_standing(candidate, stage, accounts)}, up to {plural(tries, 'attempt')}"
    return Line(candidate.key, "try", reason, tries, candidate.window, labels, seconds)


def _standing(candidate: Candidate, stage: Stage, accounts: tuple[Account, ...]) -> str:
    """A key whose fault cannot be skipped past is asked again, but it is not healthy."""
    health = stage.health
    if health is None or not is_out(accounts[0], health):
        return "healthy"
    bench = credential_bench(candidate, health)
    return "healthy" if bench is None else f"{bench.told(stage.clock())}, yet asked again"


def _row(n: int, line: Line, width: int) -> str:
    share = f", {in_seconds(line.seconds)}" if line.seconds is not None else ""
    return f"{n}. {line.target:<{width}}  {line.verdict:<4}  {line.reason}{share}"
