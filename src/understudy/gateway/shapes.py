"""How records, attempts and benches look as JSON: the same in the admin API and the live feed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from understudy.core.health import Bench, Change, State
from understudy.core.target import Attempt
from understudy.observe.record import Record

Told = dict[str, object]


@dataclass(frozen=True, slots=True)
class When:
    """The same moment on the registry's clock and on the wall."""

    clock: float
    wall: float

    def epoch(self, clock: float) -> float | None:
        """A clock's time as epoch seconds; None for never."""
        return round(self.wall + clock - self.clock, 3) if math.isfinite(clock) else None


def state_told(state: State, when: When) -> Told:
    bench = state.bench
    return {
        "reason": state.reason,
        "failures": state.failures,
        "rounds": state.rounds,
        "probing": state.probing,
        "benched": bench is not None and bench.until > when.clock,
        "seconds_left": None if bench is None else seconds_told(bench.left(when.clock)),
        "bench": None if bench is None else bench_told(bench, when),
    }


def bench_told(bench: Bench, when: When) -> Told:
    return {
        "key": bench.key,
        "scope": bench.scope,
        "fault": None if bench.fault is None else str(bench.fault),
        "source": bench.source,
        "why": bench.why,
        "since": when.epoch(bench.since),
        "until": when.epoch(bench.until),
        "seconds": seconds_told(bench.until - bench.since),
    }


def entry_told(at: float, change: Change, when: When) -> Told:
    line: Told = {"key": change.key, "source": change.source}
    if change.bench is not None:
        line = bench_told(change.bench, when)
    return {"at": round(at, 3), "kind": change.kind, **line}


def seconds_told(value: float) -> float | None:
    return round(value, 3) if math.isfinite(value) else None


def record_told(record: Record) -> Told:
    opening, usage = record.opening, record.usage
    return {
        "request_id": opening.id,
        "at": round(opening.at, 3),
        "surface": opening.surface,
        "model": opening.model,
        "stream": opening.stream,
        "key": opening.key,
        "status": record.status,
        "outcome": record.outcome,
        "target": record.target,
        "seconds": round(record.seconds, 6),
        "bytes": record.sent,
        "input_tokens": None if usage is None else usage.total_input,
        "output_tokens": None if usage is None else usage.total_output,
        "reason": record.reason,
        "attempts": [attempt_told(attempt) for attempt in record.attempts],
    }


def attempt_told(attempt: Attempt) -> Told:
    return {
        "target": attempt.target,
        "outcome": attempt.outcome,
        "fault": None if attempt.fault is None else str(attempt.fault),
        "status": attempt.status,
        "seconds": round(attempt.seconds, 6),
        "first_content": attempt.first_content,
        "reason": attempt.reason,
        "credential": attempt.credential,
        "retry_after": attempt.retry_after,
        "then": attempt.then,
        "next": attempt.next,
        "benched": seconds_told(attempt.benched),
    }
