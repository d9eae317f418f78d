"""Who is marked for a failure, and how: the mark and scope cells of a policy row, carried out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from understudy.core.faults import Verdict
from understudy.core.health import Bench
from understudy.core.policy import Mark, Policy, Rule, Scope
from understudy.core.stage import Account, Candidate, Stage


@dataclass  # neither frozen nor slotted: one is made for every attempt, and that costs
class Call:
    """One call of one target with one credential."""

    candidate: Candidate
    account: Account
    started: float  # clock seconds


def blame(stage: Stage, call: Call, verdict: Verdict, rule: Rule) -> float:
    """Mark whom the row names; the seconds somebody is benched for, 0 if nobody is."""
    health = stage.health
    if health is None or rule.mark is Mark.NONE:
        return 0.0
    key, now = BLAMED[rule.scope](call), stage.clock()
    hint, policy = verdict.retry_after, stage.policy
    length = LENGTHS[rule.mark](None if hint is None else min(hint, policy.max_delay), policy)
    if length is None:
        if not health.report_failure(key, call.started, fault=verdict.fault):
            return 0.0
    else:
        health.hold(_entry(key, call, verdict, (now, length)), call.started)
    standing = health.standing(key)
    # Of a bench that began now, its whole length, however long the telling takes.
    return 0.0 if standing is None else standing.left(max(now, standing.since))


def _entry(key: str, call: Call, verdict: Verdict, when: tuple[float, float]) -> Bench:
    now, length = when
    scope = "target" if key == call.candidate.key else "credential"
    hinted = verdict.retry_after is not None and length > 0
    source = (verdict.source or "header") if hinted else "rule"
    return Bench(key, now, now + length, verdict.fault, scope, source)


def _several(call: Call) -> bool:
    return len(call.candidate.accounts) > 1


# The health key a scope stands for. A lone key that is refused is held against this target only:
# a 403 is often about one model, and other targets of the provider may still be served.
BLAMED: Mapping[Scope, Callable[[Call], str]] = MappingProxyType(
    {
        Scope.TARGET: lambda call: call.candidate.key,
        Scope.SHARE: lambda call: call.account.share if _several(call) else call.candidate.key,
        Scope.CREDENTIAL: lambda call: call.account.key if _several(call) else call.account.share,
        Scope.ACCOUNT: lambda call: call.account.key,
    }
)

# Seconds to bench at once, from the provider's hint and the policy; 0 means the current cooldown,
# None means count instead.
LENGTHS: Mapping[Mark, Callable[[float | None, Policy], float | None]] = MappingProxyType(
    {
        Mark.COUNT: lambda hint, policy: None,
        Mark.HINT: lambda hint, policy: hint,
        Mark.HOLD: lambda hint, policy: hint or 0.0,
        Mark.DEGRADE: lambda hint, policy: policy.degrade_seconds,
        Mark.SESSION: lambda hint, policy: policy.session_seconds,
    }
)
