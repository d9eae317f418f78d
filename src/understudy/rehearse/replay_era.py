"""One configuration in force: its tracker, its budget, its chains. As the gateway had them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from understudy.core.blame import Call, blame
from understudy.core.budget import RetryBudget
from understudy.core.classify import classify
from understudy.core.faults import Fault, Verdict
from understudy.core.health import Bench, Clock, HealthTracker
from understudy.core.policy import FAIL_FAST
from understudy.core.stage import Candidate, Stage
from understudy.core.target import Target
from understudy.gateway.carry import carry_over
from understudy.observe.journal_lines import Benched, Chain, Held, Marks, Settings, Tried
from understudy.rehearse.replay_settings import Changes

LONG_AGO = -1e9  # clock seconds; benches of then are over


class Era:
    """What all requests between two reloads share."""

    def __init__(
        self, settings: Settings, changes: Changes, clock: Clock, before: Era | None
    ) -> None:
        self.timeout = changes.timeout(settings)
        self.health = HealthTracker(changes.cooldown(settings), clock=clock)
        if before is not None:
            carry_over(before.health, self.health)
        policy = changes.rules(settings.policy)
        self.budget = None
        if policy.budget_ratio is not None:
            self.budget = RetryBudget(policy.budget_ratio, policy.budget_rate, clock=clock)
        self._stage = Stage(policy, classify, clock, self.health, self.budget)
        self._own = {alias: changes.rules(rules) for alias, rules in settings.policies.items()}
        self._chains: dict[int, tuple[Candidate, ...]] = {}
        self._stages: dict[tuple[str, bool], Stage] = {}

    def stage(self, chain: Chain, strict: bool = False) -> Stage:
        """The stage of a chain; `strict`: its client asked for the stricter table."""
        name = (chain.model if chain.model in self._own else "", strict)
        found = self._stages.get(name)
        if found is None:
            policy = self._own.get(chain.model, self._stage.policy)
            if strict and policy.name == "availability":
                policy = replace(policy, name=FAIL_FAST.name, rules=FAIL_FAST.rules)
            found = self._stages[name] = replace(self._stage, policy=policy)
        return found

    def chain(self, chain: Chain) -> tuple[Candidate, ...]:
        found = self._chains.get(chain.n)
        if found is None:
            found = self._chains[chain.n] = tuple(
                Candidate(_target(member.target), member.credentials, member.window)
                for member in chain.members
            )
        return found

    def echo(self, chain: Chain, tried: Tried) -> None:
        """What an attempt left behind whose request began before the journal does."""
        for candidate in self.chain(chain):
            for account in candidate.accounts:
                if (candidate.key, account.label) == (tried.target, tried.credential):
                    self._echo(Call(candidate, account, tried.began), tried, self.stage(chain))

    def _echo(self, call: Call, tried: Tried, stage: Stage) -> None:
        if tried.outcome == "ok":
            for key in (call.candidate.key, call.account.key, call.account.share):
                self.health.report_success(key, call.started)
        elif tried.outcome == "failed" and not tried.blameless:
            verdict = Verdict(Fault(tried.fault), tried.retry_after)
            blame(stage, call, verdict, stage.policy.rule(verdict.fault))
        self.health.release(call.candidate.key, call.started)


def restore(marks: Marks, era: Era, set_clock: Callable[[float], None]) -> None:
    """Hold against everybody what was held against them when the journal begins."""
    for key, held in marks.held.items():
        _restore(key, held, era.health, set_clock)
    set_clock(marks.at)
    for key, held in marks.held.items():
        if held.probing:
            era.health.admit(key)
    if era.budget is not None and marks.budget is not None:
        era.budget.fill(marks.budget)


def _restore(
    key: str, held: Held, health: HealthTracker, set_clock: Callable[[float], None]
) -> None:
    for _ in range(held.rounds):
        health.hold(Bench(key, LONG_AGO, LONG_AGO))
    bench = held.bench
    if bench is not None and bench.source == "operator":
        set_clock(bench.since)
        health.bench(key, entry_of(bench).until - bench.since)
    elif bench is not None:
        health.hold(entry_of(bench))
    for _ in range(min(held.failures, health.cooldown.threshold - 1)):
        health.report_failure(key, math.inf)


def entry_of(told: Benched) -> Bench:
    """The tracker's entry that a line was made from."""
    until = math.inf if told.until is None else told.until
    fault = Fault(told.fault) if told.fault else None
    return Bench(told.key, told.since, until, fault, told.scope, told.source)


def _target(key: str) -> Target:
    provider, _, model = key.partition("/")
    return Target(provider, model)
