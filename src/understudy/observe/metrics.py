"""Counts for Prometheus. Plain dictionaries while requests run; the text is made when scraped.

Clients may name models without end, so labels are bounded: what comes after the first thousand
targets is counted as `other`. Costs are computed when scraped, from tokens and list prices.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from understudy.core.health import Change, HealthTracker
from understudy.core.target import Attempt
from understudy.messages.response import Usage
from understudy.observe.record import Opening, Record
from understudy.providers.facts import UNKNOWN, Facts, facts

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
TEXT = "text/plain; version=0.0.4; charset=utf-8"
MOST = 1000  # targets, and health keys, with labels of their own
OTHER = "other"
MILLION = Decimal(1_000_000)


class Histogram:
    """Counts per bucket, cumulated when told."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(BUCKETS, value)] += 1
        self.total += value


class Tokens:
    """What one target was told to have used, in numbers that compare between vendors."""

    __slots__ = ("cache_read", "cache_write", "input", "output", "reasoning")

    def __init__(self) -> None:
        self.input = self.output = self.cache_read = self.cache_write = self.reasoning = 0

    def add(self, usage: Usage) -> None:
        self.input += usage.total_input
        self.output += usage.total_output
        self.cache_read += usage.cache_read
        self.cache_write += usage.cache_write
        self.reasoning += usage.reasoning

    def cost(self, prices: Facts) -> Decimal | None:
        """US dollars at list prices of the lowest tier; None if neither price is known."""
        if prices.input_price is None and prices.output_price is None:
            return None
        fresh = prices.input_price or Decimal(0)
        read = fresh if prices.cache_read_price is None else prices.cache_read_price
        write = fresh if prices.cache_write_price is None else prices.cache_write_price
        uncached = max(0, self.input - self.cache_read - self.cache_write)
        spent = uncached * fresh + self.cache_read * read + self.cache_write * write
        return (spent + self.output * (prices.output_price or Decimal(0))) / MILLION


class Names(dict[str, str]):
    """Label values, a bounded number of them."""

    def __missing__(self, name: str) -> str:
        if len(self) >= MOST:
            return OTHER
        self[name] = name
        return name


@dataclass(frozen=True, slots=True)
class Shared:
    """What a process counted of its ties to others; None where it has no such tie."""

    messages: Mapping[str, int] = field(default_factory=dict)  # sent, taken, ignored
    connected: bool | None = None  # to the server between hosts
    alone: Mapping[str, int] = field(default_factory=dict)  # by kind of limit
    limits: bool | None = None  # are they those of all hosts now


class Metrics:
    """One process's counts."""

    def __init__(
        self,
        in_flight: Callable[[], int],
        health: Callable[[], HealthTracker],
        vendor: Callable[[str], str] = str,  # of a provider
        shared: Callable[[], Shared] = Shared,
        lost: Callable[[], int] = int,  # log lines
    ) -> None:
        self._in_flight = in_flight
        self._health = health
        self._vendor = vendor
        self._shared = shared
        self._lost = lost
        self._target = Names()
        self._key = Names()
        self._prices: dict[str, Facts] = {}
        self.attempts: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.requests: defaultdict[tuple[str, int, str], int] = defaultdict(int)
        self.failovers: defaultdict[str, int] = defaultdict(int)
        self.benches: defaultdict[tuple[str, str], int] = defaultdict(int)
        self.streams: defaultdict[str, int] = defaultdict(int)
        self.reloads: defaultdict[str, int] = defaultdict(int)
        self.tokens: defaultdict[str, Tokens] = defaultdict(Tokens)
        self.latency: defaultdict[str, Histogram] = defaultdict(Histogram)
        self.attempt_latency: defaultdict[str, Histogram] = defaultdict(Histogram)
        self.first_content: defaultdict[str, Histogram] = defaultdict(Histogram)

    def attempt(self, opening: Opening, attempt: Attempt, number: int) -> None:
        self._attempted(attempt)

    def _attempted(self, attempt: Attempt) -> None:
        target = self._target[attempt.target]
        self.attempts[target, attempt.word] += 1
        self.attempt_latency[target].add(attempt.seconds)
        if attempt.first_content is not None:
            self.first_content[target].add(attempt.first_content)
        if attempt.then == "advance" and attempt.next:
            self.failovers[target] += 1

    def finished(self, record: Record) -> None:
        opening, attempts, usage = record.opening, record.attempts, record.usage
        for attempt in attempts:
            if attempt.outcome == "ok":  # of who failed we have heard
                self._attempted(attempt)
            elif attempt.outcome == "skipped":
                self.attempts[self._target[attempt.target], "skipped"] += 1
        self.requests[opening.surface, record.status, record.outcome] += 1
        self.latency[opening.surface].add(record.seconds)
        if opening.stream:
            self.streams[record.outcome] += 1
        if usage is not None:
            self.tokens[self._target[record.target]].add(usage)

    def change(self, change: Change) -> None:
        """A listener of the health tracker."""
        if change.bench is not None:
            cause = str(change.bench.fault or change.bench.source)
            self.benches[self._key[change.key], cause] += 1

    @property
    def unpriced(self) -> bool:
        """Is there a target whose prices were not looked up yet? The first look takes long."""
        return any(target not in self._prices for target in self.tokens)

    def look_up(self) -> None:
        """Look up the prices of all targets; may run in another thread."""
        for target in list(self.tokens):
            if target not in self._prices:
                provider, _, model = target.partition("/")
                self._prices[target] = facts(self._vendor(provider), model)

    def text(self) -> bytes:
        """The exposition format, version 0.0.4."""
        return "".join(f"{line}\n" for line in self._lines()).encode()

    def _lines(self) -> Iterator[str]:
        shared = self._shared()
        for name, means, labels, counts in (
            ("attempts", "Attempts by target and result", ("target", "fault"), self.attempts),
            ("requests", "Client requests", ("surface", "status", "outcome"), self.requests),
            ("failovers", "Chains that moved on", ("target",), self.failovers),
            ("benches", "Benches begun", ("key", "fault"), self.benches),
            ("streams", "Streams by their end", ("outcome",), self.streams),
            ("reloads", "Configurations taken or refused", ("result",), self.reloads),
            ("tokens", "Tokens as told", ("target", "kind"), self._token_counts()),
            ("cost_usd", "US dollars at list prices, lowest tier", ("target",), self._costs()),
            ("log_lines_lost", "Log lines that nobody took", (), {(): self._lost()}),
            ("share_messages", "Health messages", ("direction",), shared.messages),
            ("limits_open", "Requests held to one process's own limit", ("limit",), shared.alone),
        ):
            yield from _counter(name, means, labels, counts)
        for name, means, label, histograms in (
            ("request_seconds", "Whole requests", "surface", self.latency),
            ("attempt_seconds", "Single attempts", "target", self.attempt_latency),
            ("first_content_seconds", "Streams to first content", "target", self.first_content),
        ):
            yield from _histogram(name, means, label, histograms)
        yield from _gauge("in_flight", "Requests being answered", self._in_flight())
        benched = sum(s.bench is not None for s in self._health().snapshot().values())
        yield from _gauge("benched", "Keys with a bench, running or not yet disproven", benched)
        yield from _gauge("share_connected", "Health is shared between hosts", shared.connected)
        yield from _gauge("limits_shared", "Limits are those of all hosts", shared.limits)

    def _token_counts(self) -> dict[tuple[str, str], int]:
        return {
            (target, kind): count
            for target, used in list(self.tokens.items())
            for kind, count in (
                ("input", used.input),
                ("output", used.output),
                ("cache_read", used.cache_read),
                ("cache_write", used.cache_write),
                ("reasoning", used.reasoning),
            )
        }

    def _costs(self) -> dict[str, Decimal]:
        costs = {t: used.cost(self._prices.get(t, UNKNOWN)) for t, used in self.tokens.items()}
        return {target: cost for target, cost in costs.items() if cost is not None}


Counts = (
    Mapping[str, int]
    | Mapping[str, Decimal]
    | Mapping[tuple[()], int]
    | Mapping[tuple[str, str], int]
    | Mapping[tuple[str, int, str], int]
)


def _counter(name: str, means: str, labels: tuple[str, ...], values: Counts) -> Iterator[str]:
    full = f"understudy_{name}_total"
    yield f"# HELP {full} {means}."
    yield f"# TYPE {full} counter"
    for key, value in list(values.items()):
        texts = key if isinstance(key, tuple) else (key,)
        yield f"{full}{_labels(labels, tuple(map(str, texts)))} {value:f}"


def _histogram(
    name: str, means: str, label: str, values: Mapping[str, Histogram]
) -> Iterator[str]:
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


def _gauge(name: str, means: str, value: int | None) -> Iterator[str]:
    """Without a sample where there is nothing to measure: nobody is alarmed by a zero."""
    yield f"# HELP understudy_{name} {means}."
    yield f"# TYPE understudy_{name} gauge"
    if value is not None:
        yield f"understudy_{name} {int(value)}"


def _labels(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    pairs = [f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True)]
    return "{" + ",".join(pairs) + "}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
