"""Counts for Prometheus. Plain dictionaries while requests run; families are made when scraped."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator

from understudy.core.health import Change, HealthTracker
from understudy.core.target import Attempt
from understudy.gateway.record import Opening, Record

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Histogram:
    """Counts per bucket, cumulated when told."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(BUCKETS, value)] += 1
        self.total += value


class Metrics:
    """One process's counts."""

    def __init__(self, in_flight: Callable[[], int], health: Callable[[], HealthTracker]) -> None:
        self._in_flight = in_flight
        self._health = health
        self.attempts: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.requests: defaultdict[tuple[str, str, str], int] = defaultdict(int)
        self.failovers: defaultdict[str, int] = defaultdict(int)
        self.benches: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.streams: defaultdict[str, int] = defaultdict(int)
        self.tokens: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.latency: defaultdict[str, Histogram] = defaultdict(Histogram)
        self.first_content: defaultdict[str, Histogram] = defaultdict(Histogram)

    def attempt(self, opening: Opening, attempt: Attempt, number: int) -> None:
        self.attempts[attempt.target, attempt.word] += 1
        if attempt.first_content is not None:
            self.first_content[attempt.target].add(attempt.first_content)
        if attempt.then == "advance":
            self.failovers[attempt.target] += 1

    def finished(self, record: Record) -> None:
        self.requests[record.opening.surface, str(record.status), record.outcome] += 1
        self.latency[record.opening.surface].add(record.seconds)
        if record.opening.stream:
            self.streams[record.outcome] += 1
        if record.usage is not None:
            self.tokens[record.target, "input"] += record.usage.total_input
            self.tokens[record.target, "output"] += record.usage.total_output

    def change(self, change: Change) -> None:
        """A listener of the health tracker."""
        if change.bench is not None:
            self.benches[change.key, str(change.bench.fault or change.bench.source)] += 1

    def text(self) -> bytes:
        """The exposition format, version 0.0.4."""
        return "".join(f"{line}\n" for line in self._lines()).encode()

    def _lines(self) -> Iterator[str]:
        yield from _counter(
            "attempts", "Attempts by target and result", ("target", "fault"), self.attempts
        )
        yield from _counter(
            "requests", "Client requests", ("surface", "status", "outcome"), self.requests
        )
        yield from _counter("failovers", "Chains that moved on", ("target",), self.failovers)
        yield from _counter("benches", "Benches begun", ("key", "fault"), self.benches)
        yield from _counter("streams", "Streams by their end", ("outcome",), self.streams)
        yield from _counter("tokens", "Tokens as told", ("target", "direction"), self.tokens)
        yield from _histogram("request_seconds", "Whole requests", "surface", self.latency)
        yield from _histogram(
            "first_content_seconds", "Streams to first content", "target", self.first_content
        )
        yield from _gauge("in_flight", "Requests being answered", self._in_flight())
        benched = sum(s.bench is not None for s in self._health().snapshot().values())
        yield from _gauge("benched", "Keys with a bench, running or not yet disproven", benched)


def _counter(name: str, means: str, labels: tuple[str, ...], values: dict) -> Iterator[str]:  # type: ignore[type-arg]
    full = f"understudy_{name}_total"
    yield f"# HELP {full} {means}."
    yield f"# TYPE {full} counter"
    for key, value in list(values.items()):
        yield f"{full}{_labels(labels, key if isinstance(key, tuple) else (key,))} {value}"


def _histogram(name: str, means: str, label: str, values: dict[str, Histogram]) -> Iterator[str]:
    full = f"understudy_{name}"
    yield f"# HELP {full} {means}."
    yield f"# TYPE {full} histogram"
    for key, histogram in list(values.items()):
        running = 0
        for bound, count in zip((*BUCKETS, "+Inf"), histogram.counts, strict=True):
            running += count
            yield f"{full}_bucket{_labels((label, 'le'), (key, str(bound)))} {running}"
        yield f"{full}_sum{_labels((label,), (key,))} {histogram.total}"
        yield f"{full}_count{_labels((label,), (key,))} {running}"


def _gauge(name: str, means: str, value: float) -> Iterator[str]:
    yield f"# HELP understudy_{name} {means}."
    yield f"# TYPE understudy_{name} gauge"
    yield f"understudy_{name} {value}"


def _labels(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    pairs = (f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
