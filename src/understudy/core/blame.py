"""Who is marked for a failure, and how: the mark and scope cells of a policy row, carried out."""

from __future__ import annotations

from dataclasses import dataclass

from understudy.core.faults import Verdict
from understudy.core.health import Bench
from understudy.core.policy import Mark, Policy, Rule, Scope
from understudy.core.stage import Account, Candidate, Stage


@dataclass(frozen=True, slots=True)
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
    key = _blamed(call, rule.scope)
    length = _length(verdict, rule.mark, stage.policy)
    if length is None:
        if not health.report_failure(key, call.started, fault=verdict.fault):
            return 0.0
    else:
        health.hold(_entry(key, call, verdict, (stage.clock(), length)), call.started)
    standing = health.standing(key)
    return 0.0 if standing is None else standing.left(stage.clock())


def _entry(key: str, call: Call, verdict: Verdict, when: tuple[float, float]) -> Bench:
    now, length = when
    scope = "target" if key == call.candidate.key else "credential"
    hinted = verdict.retry_after is not None and length > 0
    source = (verdict.source or "header") if hinted else "rule"
    return Bench(key, now, now + length, verdict.fault, scope, source)


def _blamed(call: Call, scope: Scope) -> str:
    """The health key a scope stands for.

    A lone key that is refused is held against this target only: a 403 is often about one model,
    and other targets of the provider may still be served.
    """
    several = len(call.candidate.accounts) > 1
    keys = {
        Scope.TARGET: call.candidate.key,
        Scope.SHARE: call.account.share if several else call.candidate.key,
        Scope.CREDENTIAL: call.account.key if several else call.account.share,
        Scope.ACCOUNT: call.account.key,
    }
    return keys[scope]


def _length(verdict: Verdict, mark: Mark, policy: Policy) -> float | None:
    """Seconds to bench at once; 0 means the current cooldown, None means count instead."""
    hint = verdict.retry_after
    capped = None if hint is None else min(hint, policy.max_delay)
    lengths = {
        Mark.COUNT: None,
        Mark.HINT: capped,
        Mark.HOLD: capped or 0.0,
        Mark.DEGRADE: policy.degrade_seconds,
        Mark.SESSION: policy.session_seconds,
    }
    return lengths[mark]
