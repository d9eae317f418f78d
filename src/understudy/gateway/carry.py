"""What was learned before a reload still holds after it: benches, their growth, open counts."""

from __future__ import annotations

from understudy.core.health import Bench, HealthTracker, State


def carry_over(old: HealthTracker, new: HealthTracker) -> None:
    """Tell a fresh tracker what another one knows. To be done before anybody listens to it."""
    for key, state in old.snapshot().items():
        _carry(key, state, new)


def _carry(key: str, state: State, new: HealthTracker) -> None:
    bench, now = state.bench, new.clock()
    if bench is not None:
        # Benched by rule so many times: said again as often, so that the next one grows as due.
        again = Bench(key, bench.since, bench.since, bench.fault, bench.scope)
        for _ in range(state.rounds):
            new.hold(again)
        if bench.source == "operator" and bench.until > now:
            new.bench(key, bench.left(now), bench.why)  # exactly so long, whatever the rule says
        elif bench.until > now:
            new.hold(bench)
    if bench is None or bench.until <= now:
        for _ in range(min(state.failures, new.cooldown.threshold - 1)):
            new.report_failure(key)
