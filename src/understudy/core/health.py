"""Who is benched, until when and why. Knows no providers, sends nothing, never sleeps.

State is derived from the clock when read: nothing here needs a timer. A healthy key has no entry
at all. Reports are fenced: what comes back from an attempt that began before the current bench
is old news and changes nothing, so forty requests in flight when a target dies give one bench.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from threading import Lock

from understudy.core.faults import Fault
from understudy.core.words import in_seconds

Clock = Callable[[], float]  # seconds, monotonic
PROBE_LAPSE = 150.0  # seconds after which a probe that never reported stops holding others back
PROBING = "benched, one probe is under way"
PROBE_POLL = 0.1  # seconds; how soon to look again at a target somebody else is probing
BY = {"operator": " by an operator", "remote": " by another process"}  # who else decided
SWEEP_FLOOR = 1024  # marks; below this nobody is ever forgotten


@dataclass(frozen=True, slots=True)
class Cooldown:
    """How long a repeat offender sits out. A value that makes no sense means its default."""

    threshold: int = 2  # consecutive failed attempts
    base: float = 5.0  # seconds of the first bench
    factor: float = 2.0
    cap: float = 300.0  # seconds, the longest bench by rule
    probe: bool = False  # after a bench admit one attempt at a time until one succeeds

    def __post_init__(self) -> None:
        least = {"threshold": 0, "base": 0, "factor": 1, "cap": 0, "probe": -1}
        for spec in fields(self):
            value = getattr(self, spec.name)
            if not (math.isfinite(value) and value > least[spec.name]):
                object.__setattr__(self, spec.name, spec.default)

    def seconds(self, rounds: int) -> float:
        """Length of the bench after so many benches without a success between."""
        # Compared as logarithms: 2.0 ** 1024 raises OverflowError.
        if rounds * math.log(self.factor) >= math.log(max(self.cap / self.base, 1.0)):
            return self.cap
        return min(self.cap, self.base * self.factor**rounds)


@dataclass(frozen=True)
class Bench:
    """A ledger entry: who sits out, because of what, and who decided for how long."""

    key: str
    since: float  # clock seconds
    until: float  # clock seconds; infinite means until cleared
    fault: Fault | None = None
    scope: str = "target"  # or "credential"
    source: str = "rule"  # rule, header, body, operator or remote
    why: str = ""
    _last = (-1, "")  # what was told last, and in which hundredth of a second

    def left(self, now: float) -> float:
        return max(0.0, self.until - now)

    # What stands in a request's way tells why (see `stage.Obstacle`). If this one does although
    # it is over, somebody is probing.

    def told(self, now: float) -> str:
        if now >= self.until:
            return PROBING
        tick = int(now * 100)  # every request that passes is told: once per hundredth of a second
        last, words = self._last
        if tick != last:
            words = self.sentence(now)
            object.__setattr__(self, "_last", (tick, words))
        return words

    def wait(self, now: float) -> float:
        return self.until - now if now < self.until else PROBE_POLL

    def sentence(self, now: float) -> str:
        """Why this is benched, in the words used by errors, logs, CLI and dashboard."""
        who, why, of = self._said
        left = self.until - now
        if 0 < left < math.inf:
            return f"{who}{in_seconds(left)}{of}"
        return f"{who}until cleared{why}" if left > 0 else f"{who}over, not yet proven well{why}"

    @cached_property
    def _said(self) -> tuple[str, str, str]:
        """What stays the same; it is told for every request that passes over this target."""
        label = self.key.partition("#")[2]
        who = f"credential {label} " if self.scope == "credential" and label else ""
        blame = f" for {self.fault}" if self.fault else ""
        told = f"{who}benched{BY.get(self.source, '')}{blame}, "
        why = f": {self.why}" if self.why else ""
        return told, why, f" left of {in_seconds(self.until - self.since)}{why}"


@dataclass(frozen=True, slots=True)
class State:
    """One marked key in a snapshot."""

    failures: int  # consecutive, since the last bench or success
    rounds: int  # benches by rule since the last success
    bench: Bench | None
    reason: str
    probing: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """What listeners are told: a bench began, or a key was cleared, or was ordered to be.

    An "order" is an operator's clearing of a key that nothing is held against here; others may
    hold something.
    """

    kind: str  # "bench", "clear" or "order"
    key: str
    bench: Bench | None = None
    source: str = ""  # of a clearing: success or operator; remote for all that others told


Listener = Callable[[Change], None]


class _Mark:
    """What is remembered about one key; only touched under the tracker's lock."""

    __slots__ = ("bench", "closed_until", "failures", "fence", "rounds", "touched")

    def __init__(self, now: float) -> None:
        self.failures = 0
        self.rounds = 0
        self.bench: Bench | None = None
        self.closed_until = -math.inf  # benched, or held by a probe
        self.fence = -math.inf  # what began by then is old news
        self.touched = now

    def fenced(self, started: float | None) -> bool:
        """Did that attempt begin before the current bench did?"""
        return self.bench is not None and started is not None and started <= self.fence


class HealthTracker:
    """The one mutable thing in the core. Safe under threads; the lock covers dict work only."""

    def __init__(self, cooldown: Cooldown = Cooldown(), *, clock: Clock) -> None:  # noqa: B008
        self.cooldown = cooldown
        self.clock = clock
        self._marks: dict[str, _Mark] = {}
        self._lock = Lock()
        self._sweep_at = SWEEP_FLOOR
        self._listeners: tuple[Listener, ...] = ()

    def unmarked(self, keys: Iterable[str]) -> bool:
        """Is nothing held against any of these?"""
        return self._marks.keys().isdisjoint(keys)

    def available(self, key: str) -> bool:
        """May this key be tried now? Unknown keys may."""
        mark = self._marks.get(key)
        return mark is None or mark.closed_until <= self.clock()

    def admit(self, key: str) -> bool:
        """Like `available`, but takes the probe's place if there is one to take."""
        if key not in self._marks or not self.cooldown.probe:
            return self.available(key)
        with self._lock:
            mark = self._marks.get(key)
            now = self.clock()
            if mark is None or mark.closed_until > now:
                return mark is None
            if mark.bench is not None:
                mark.closed_until = now + PROBE_LAPSE
            return True

    def release(self, key: str, started: float) -> None:
        """An admitted attempt ended without a verdict (the caller left): free its place."""
        if not self.cooldown.probe:
            return
        with self._lock:
            mark = self._marks.get(key)
            if mark is not None and mark.bench is not None and not mark.fenced(started):
                mark.closed_until = mark.bench.until

    def report_success(self, key: str, started: float | None = None) -> None:
        """Clears the key, count and exponent, unless the attempt began before its bench."""
        if key not in self._marks:
            return
        with self._lock:
            mark = self._marks.get(key)
            if mark is None or mark.fenced(started):
                return
            if mark.bench is not None and started is None and self._ordered(mark.bench):
                return
            del self._marks[key]
        self._tell(Change("clear", key, source="success"))

    def report_failure(
        self, key: str, started: float | None = None, *, fault: Fault | None = None
    ) -> bool:
        """One failed attempt more; True if this one benched the key."""
        with self._lock:
            now = self.clock()
            mark = self._mark(key, now)
            if mark.fenced(started) or self._late(mark, started, now):
                return False
            mark.failures += 1
            if mark.failures < self.cooldown.threshold:
                if mark.bench is not None:
                    mark.closed_until = mark.bench.until  # the probe has reported
                return False
            bench = self._bench_by_rule(mark, Bench(key, now, now, fault))
        self._tell(Change("bench", key, bench))
        return True

    def hold(self, bench: Bench, started: float | None = None) -> bool:
        """Bench at once, by a provider's own word. `until == since` means the current cooldown."""
        with self._lock:
            mark = self._mark(bench.key, bench.since)
            if mark.fenced(started):
                return False
            if bench.until <= bench.since:
                bench = self._bench_by_rule(mark, bench)
            elif mark.bench is not None and bench.until < mark.bench.until:
                return True  # a longer one is running already
            else:
                self._set(mark, bench)
        self._tell(Change("bench", bench.key, bench))
        return True

    def bench(self, key: str, seconds: float, why: str = "") -> None:
        """An operator's word: out for exactly so long, whatever ran before."""
        if not seconds > 0:
            raise ValueError(f"cannot bench {key!r} for {seconds!r} s; give a time above 0")
        with self._lock:
            now = self.clock()
            mark = self._mark(key, now)
            bench = Bench(key, now, now + seconds, source="operator", why=why)
            self._set(mark, bench)
        self._tell(Change("bench", key, bench))

    def unbench(self, key: str, source: str = "operator") -> bool:
        """Forget everything held against the key; False if there was nothing."""
        with self._lock:
            known = self._marks.pop(key, None) is not None
        if known or source == "operator":
            self._tell(Change("clear" if known else "order", key, source=source))
        return known

    def learn(self, bench: Bench, rounds: int = 0) -> None:
        """Take another process's entry as it stands, with the rounds that it has counted.

        What began here before it arrived is old news, though it began after the bench did.
        """
        with self._lock:
            now = self.clock()
            mark = self._mark(bench.key, now)
            self._set(mark, bench)
            mark.fence = now
            mark.rounds = max(mark.rounds, rounds)
        self._tell(Change("bench", bench.key, bench, "remote"))

    def rounds(self, key: str) -> int:
        """Benches by rule since the last success."""
        mark = self._marks.get(key)
        return 0 if mark is None else mark.rounds

    def standing(self, key: str) -> Bench | None:
        """The bench that keeps a key out now, or None. A running probe shows its old bench."""
        mark = self._marks.get(key)
        if mark is None or mark.closed_until <= self.clock():
            return None
        return mark.bench

    def snapshot(self) -> dict[str, State]:
        """Every marked key, sorted; healthy keys are absent."""
        with self._lock:
            now = self.clock()
            return {key: _state(mark, now) for key, mark in sorted(self._marks.items())}

    def listen(self, listener: Listener) -> None:
        """Call `listener` with every bench and clearing, outside the lock."""
        with self._lock:
            self._listeners = (*self._listeners, listener)

    def _tell(self, change: Change) -> None:
        for listener in self._listeners:
            listener(change)

    def _late(self, mark: _Mark, started: float | None, now: float) -> bool:
        """Without a start time, a failure told of a benched key can only be an old one."""
        return started is None and mark.bench is not None and mark.bench.until > now

    def _ordered(self, bench: Bench) -> bool:
        return bench.source == "operator" and bench.until > self.clock()

    def _bench_by_rule(self, mark: _Mark, bench: Bench) -> Bench:
        length = self.cooldown.seconds(mark.rounds)
        mark.rounds += 1
        told = Bench(bench.key, bench.since, bench.since + length, bench.fault, bench.scope)
        self._set(mark, told)
        return told

    def _set(self, mark: _Mark, bench: Bench) -> None:
        mark.bench = bench
        mark.failures = 0
        mark.fence = bench.since
        mark.closed_until = bench.until

    def _mark(self, key: str, now: float) -> _Mark:
        mark = self._marks.get(key)
        if mark is None:
            if len(self._marks) >= self._sweep_at:
                self._sweep(now)
            mark = self._marks[key] = _Mark(now)
        mark.touched = now
        return mark

    def _sweep(self, now: float) -> None:
        """Forget keys that have been quiet for long: callers may name models without end."""
        stale = now - 2 * self.cooldown.cap
        gone = [
            key
            for key, mark in self._marks.items()
            if mark.touched < stale and mark.closed_until < stale
        ]
        for key in gone:
            del self._marks[key]
        # Doubling keeps the cost of sweeping constant per new key.
        self._sweep_at = max(SWEEP_FLOOR, 2 * len(self._marks))


def _state(mark: _Mark, now: float) -> State:
    if mark.bench is None:
        times = "once" if mark.failures == 1 else f"{mark.failures} times in a row"
        return State(mark.failures, mark.rounds, None, f"failed {times}, not benched")
    probing = mark.bench.until <= now < mark.closed_until
    reason = PROBING if probing else mark.bench.sentence(now)
    return State(mark.failures, mark.rounds, mark.bench, reason, probing)
