"""The tracker against a slow and obvious model, over any history."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from understudy.core.health import Cooldown, HealthTracker
from understudy.testing import ManualClock

KEYS = st.sampled_from(["p/a", "p/b", "q/a"])


@dataclass
class Slow:
    """One key as the contract tells it: the history is kept and read again at every question."""

    threshold: int
    lengths: list[float]
    events: list[tuple[str, float, float]] = field(default_factory=list)  # kind, at, extra

    def told(self) -> tuple[int, int, float, float]:
        """failures, rounds, benched since, benched until"""
        failures, rounds, since, until = 0, 0, float("-inf"), float("-inf")
        for kind, at, extra in self.events:
            if kind == "bench":
                failures, since, until = 0, at, at + extra
            elif kind == "unbench":
                failures, rounds, since, until = 0, 0, float("-inf"), float("-inf")
            elif extra <= since:
                continue  # began before the bench did
            elif kind == "success":
                failures, rounds, since, until = 0, 0, float("-inf"), float("-inf")
            else:
                failures += 1
                if failures == self.threshold:
                    length = self.lengths[min(rounds, len(self.lengths) - 1)]
                    failures, rounds, since, until = 0, rounds + 1, at, at + length
        return failures, rounds, since, until


class Tracker(RuleBasedStateMachine):
    """Attempts begin and end in any order, operators interfere, time passes."""

    @initialize(threshold=st.integers(1, 4))
    def begin(self, threshold: int) -> None:
        self.clock = ManualClock()
        self.health = HealthTracker(Cooldown(threshold=threshold), clock=self.clock)
        lengths = [5.0, 10, 20, 40, 80, 160, 300]
        self.slow = {key: Slow(threshold, lengths) for key in ("p/a", "p/b", "q/a")}
        self.flying: list[tuple[str, float]] = []

    @rule(key=KEYS)
    def start(self, key: str) -> None:
        if self.health.admit(key):
            self.flying.append((key, self.clock()))

    @rule(data=st.data(), kind=st.sampled_from(["success", "failure"]))
    def finish(self, data: st.DataObject, kind: str) -> None:
        if not self.flying:
            return
        key, started = self.flying.pop(data.draw(st.integers(0, len(self.flying) - 1)))
        before = self.slow[key].told()
        self.slow[key].events.append((kind, self.clock(), started))
        if kind == "success":
            self.health.report_success(key, started)
        else:
            benched = self.health.report_failure(key, started)
            assert benched == (self.slow[key].told()[1] > before[1])

    @rule(key=KEYS, seconds=st.floats(0.1, 400))
    def operator_benches(self, key: str, seconds: float) -> None:
        self.health.bench(key, seconds)
        self.slow[key].events.append(("bench", self.clock(), seconds))

    @rule(key=KEYS)
    def operator_releases(self, key: str) -> None:
        self.health.unbench(key)
        self.slow[key].events.append(("unbench", self.clock(), 0))

    @rule(seconds=st.floats(0.001, 400))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "slow"):
            return
        snapshot = self.health.snapshot()
        for key, slow in self.slow.items():
            failures, rounds, since, until = slow.told()
            assert self.health.available(key) == (until <= self.clock())
            state = snapshot.get(key)
            if state is None:
                assert (failures, rounds, since) == (0, 0, float("-inf"))
            else:
                assert (state.failures, state.rounds) == (failures, rounds)
                assert (state.bench.since if state.bench else float("-inf")) == since

    @invariant()
    def tells_of_several_what_it_tells_of_each(self) -> None:
        if not hasattr(self, "slow"):
            return
        told = {key: slow.told() for key, slow in self.slow.items()}
        for keys in (["p/a"], ["p/a", "q/a"], [*told, "unheard/of"]):
            found = [told[key] for key in keys if key in told]
            clean = (0, 0, float("-inf"), float("-inf"))
            assert self.health.unmarked(keys) == all(state == clean for state in found)


TestTracker = Tracker.TestCase
TestTracker.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
