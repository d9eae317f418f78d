"""What several workers know, as one: health, ledger, requests. Pure.

A bench that one worker learned is in everybody's ledger, there marked as remote. It is told once,
as the one who learned it tells it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge

from understudy.core.health import Change, State
from understudy.observe.record import Record

SAME = 0.5  # seconds within which news of the same kind and key are the same news
LOOK_BACK = 64  # lines among which a line is looked for

Entry = tuple[float, Change]  # wall clock


def states_of(every: Iterable[Mapping[str, State]], now: float) -> dict[str, State]:
    """For each key the state that weighs most."""
    found: dict[str, State] = {}
    for states in every:
        for key, state in states.items():
            known = found.get(key)
            if known is None or _weight(state, now) > _weight(known, now):
                found[key] = state
    return dict(sorted(found.items()))


def _weight(state: State, now: float) -> tuple[bool, bool, bool, float, int]:
    bench = state.bench
    if bench is None:
        return (False, False, False, -math.inf, state.failures)
    running = bench.until > now
    return (running, state.probing, bench.source != "remote", bench.until, state.failures)


def ledger_of(every: Iterable[Sequence[Entry]]) -> list[Entry]:
    """Oldest first, each line once."""
    told = [(entry, who) for who, ledger in enumerate(every) for entry in ledger]
    lines: list[tuple[Entry, int]] = []
    for entry, who in sorted(told, key=lambda line: line[0][0]):
        twin = _twin(entry, who, lines)
        if twin is None:
            lines.append((entry, who))
        elif _is_remote(lines[twin][0]) and not _is_remote(entry):
            lines[twin] = (entry, who)
    return [entry for entry, _ in lines]


def _twin(entry: Entry, who: int, lines: Sequence[tuple[Entry, int]]) -> int | None:
    """Where another's line with the same news stands; None if none does."""
    for index in range(len(lines) - 1, max(-1, len(lines) - 1 - LOOK_BACK), -1):
        line, other = lines[index]
        if other != who and same(entry, line):
            return index
    return None


def same(one: Entry, other: Entry) -> bool:
    """Do two workers tell the same news, one of them having it from another?"""
    (at, change), (then, before) = one, other
    copied = change.source == "remote" or before.source == "remote"
    if not copied or (change.kind, change.key) != (before.kind, before.key):
        return False
    if change.bench is None or before.bench is None:
        return change.bench is before.bench and abs(at - then) < SAME
    # A worker that starts learns of old benches: what counts is when they began.
    return abs(change.bench.since - before.bench.since) < SAME


def _is_remote(entry: Entry) -> bool:
    return entry[1].source == "remote"


def records_of(every: Iterable[Iterable[Record]]) -> Iterator[Record]:
    """In the order in which they ended."""
    return merge(*every, key=ended)


def ended(record: Record) -> float:
    """Wall clock."""
    return record.opening.at + record.seconds
