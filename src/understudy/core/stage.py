"""What a walk is given: candidates and the shared rules; and what stands in a candidate's way.

The walk and the plan both ask `obstacle`, so what is foretold is what happens.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from understudy.core.budget import RetryBudget
from understudy.core.faults import Fault, Verdict
from understudy.core.health import PROBING, Bench, Clock, HealthTracker
from understudy.core.policy import Policy, Then
from understudy.core.target import Target

Judge = Callable[[Exception], Verdict]


@dataclass(frozen=True, slots=True)
class Account:
    """One credential of a provider, known by its label only."""

    label: str
    key: str  # its health key, whichever target uses it
    share: str  # the health key of one target's use of it


@dataclass(frozen=True, slots=True)
class Candidate:
    """One target as the walk sees it. Built once per model, not per request."""

    target: Target
    labels: tuple[str, ...] = ("default",)
    # Tokens, if known. May be a function: looking it up can be slow, and only overflows ask.
    known_window: int | Callable[[], int | None] | None = None
    key: str = field(init=False)
    accounts: tuple[Account, ...] = field(init=False, repr=False)
    credential_keys: tuple[str, ...] = field(init=False, repr=False)  # the accounts' health keys
    keys: tuple[str, ...] = field(init=False, repr=False)  # all health keys that concern it

    def __post_init__(self) -> None:
        target = self.target
        accounts = [Account(x, f"{target.provider}#{x}", f"{target}#{x}") for x in self.labels]
        keys = [key for account in accounts for key in (account.key, account.share)]
        object.__setattr__(self, "key", target.key)
        object.__setattr__(self, "accounts", tuple(accounts))
        object.__setattr__(self, "credential_keys", tuple(keys))
        object.__setattr__(self, "keys", (target.key, *keys))

    @property
    def window(self) -> int | None:
        known = self.known_window
        return known() if callable(known) else known


@dataclass(frozen=True, slots=True)
class Stage:
    """What all requests of a registry share."""

    policy: Policy
    judge: Judge
    clock: Clock
    health: HealthTracker | None = None  # None: nobody is ever benched
    budget: RetryBudget | None = None


class Obstacle(Protocol):
    """What a candidate is passed over for: its bench, or something else. Told when asked."""

    @property
    def fault(self) -> Fault | None: ...

    def told(self, now: float) -> str:
        """In words."""

    def wait(self, now: float) -> float:
        """Seconds until it may be tried again; infinite if time does not help."""


class Unfit(NamedTuple):
    """An obstacle that time does not remove."""

    reason: str
    fault: Fault | None = None

    def told(self, now: float) -> str:
        return self.reason

    def wait(self, now: float) -> float:
        return math.inf


PROBED = Unfit(PROBING)
LOCKED_OUT = Unfit("its credentials are benched")  # the last of them this very moment
TOO_LATE = Unfit("not tried, the request's own time was up")


def obstacle(candidate: Candidate, stage: Stage, floor: int | None = None) -> Obstacle | None:
    """What stands in this candidate's way now: its window, its bench, its credentials."""
    if floor is not None and not (candidate.window and candidate.window > floor):
        has = f"{candidate.window:,} tokens" if candidate.window else "unknown"
        return Unfit(f"window {has}, needs more than {floor:,}", Fault.CONTEXT_LENGTH)
    health = stage.health
    if health is None:
        return None
    bench = health.standing(candidate.key)
    if bench is None and not usable(candidate, stage):
        bench = credential_bench(candidate, health)
    return bench


def usable(candidate: Candidate, stage: Stage) -> tuple[Account, ...]:
    """The credentials that may be used, in order.

    A fault whose row says stop cannot be skipped past: under such a policy a lone bad key is
    tried again, so that its error stays loud instead of turning into a silent failover.
    """
    health = stage.health
    if health is None or health.unmarked(candidate.credential_keys):
        return candidate.accounts
    free = tuple(a for a in candidate.accounts if not is_out(a, health))
    if free:
        return free
    bench = credential_bench(candidate, health)
    if bench is not None and bench.fault is not None:
        if stage.policy.rule(bench.fault).then is Then.STOP:
            return candidate.accounts[:1]
        return ()
    return () if bench is not None else candidate.accounts


def is_out(account: Account, health: HealthTracker) -> bool:
    """Is this credential benched, everywhere or at its target?"""
    return not (health.available(account.key) and health.available(account.share))


def credential_bench(candidate: Candidate, health: HealthTracker) -> Bench | None:
    """Of the benches that keep the credentials out, the one that ends first."""
    benches = [bench for key in candidate.credential_keys if (bench := health.standing(key))]
    return min(benches, key=lambda bench: bench.until, default=None)
