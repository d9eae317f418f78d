"""How well a policy did in one run: a handful of numbers, made from a tally."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from understudy.rehearse.flight import Actor
from understudy.rehearse.scenario import Outage, Scenario
from understudy.rehearse.tally import Tally

MILLION = 1e6


@dataclass(frozen=True, slots=True)
class Scores:
    """One run in numbers. Times in seconds, money in dollars; None: it did not come to that."""

    requests: int
    success: float  # share of those whose caller stayed
    answered: int
    failed: int  # before any content
    broken: int  # after it
    left: int
    latency_p50: float | None  # to the first content of a stream, to the whole of a plain answer
    latency_p99: float | None
    added_p50: float | None  # over what the fastest healthy target takes
    added_p99: float | None
    attempts: int
    wasted_attempts: int
    wasted_tokens: float
    wasted_money: float
    money: float  # all of it, waste included
    benches: int
    notice: float | None  # from an outage's start to the bench; the mean over outages
    unnoticed: int
    back: float | None  # from an outage's end to the next answer of that target; the mean
    not_back: int

    def to_dict(self) -> dict[str, float | None]:
        return {spec.name: getattr(self, spec.name) for spec in fields(self)}


def score(tally: Tally) -> Scores:
    """Read the numbers off a finished run."""
    actors, outcomes = tally.actors, tally.outcomes
    stayed = tally.requests - outcomes["left"]
    latency, added = sorted(tally.latencies), sorted(tally.added)
    wasted = sum(a.failed for a in actors) + tally.cancelled
    noticed, returned = _told(tally)
    return Scores(
        requests=tally.requests,
        success=tally.answers / stayed if stayed else 1.0,
        answered=tally.answers,
        failed=outcomes["failed"],
        broken=outcomes["broken"],
        left=outcomes["left"],
        latency_p50=share_of(latency, 0.5),
        latency_p99=share_of(latency, 0.99),
        added_p50=share_of(added, 0.5, tally.unhurt),
        added_p99=share_of(added, 0.99, tally.unhurt),
        attempts=tally.answers + wasted,
        wasted_attempts=wasted,
        wasted_tokens=sum(a.wasted_in + a.wasted_out for a in actors),
        wasted_money=sum(_price(a, a.wasted_in, a.wasted_out) for a in actors),
        money=sum(_spent(a, tally.scenario) for a in actors),
        benches=len(tally.benches),
        notice=_mean(noticed),
        unnoticed=sum(value is None for value in noticed),
        back=_mean(returned),
        not_back=sum(value is None for value in returned),
    )


def share_of(ordered: Sequence[float], share: float, zeros: int = 0) -> float | None:
    """The value below which this share lies; `zeros` more values are 0 and not in the list."""
    count = len(ordered) + zeros
    if not count:
        return None
    place = min(count - 1, int(share * count))
    return 0.0 if place < zeros else ordered[place - zeros]


def failing(actor: Actor) -> list[Outage]:
    return [outage for outage in actor.outages if outage.fault is not None]


def _told(tally: Tally) -> tuple[list[float | None], list[float | None]]:
    pairs = [(actor, outage) for actor in tally.actors for outage in failing(actor)]
    return (
        [tally.noticed(actor, outage) for actor, outage in pairs],
        [tally.returned(actor, outage) for actor, outage in pairs],
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _price(actor: Actor, tokens_in: float, tokens_out: float) -> float:
    role = actor.role
    return (tokens_in * role.input_price + tokens_out * role.output_price) / MILLION


def _spent(actor: Actor, scenario: Scenario) -> float:
    paid_in = actor.served * scenario.traffic.input_tokens + actor.wasted_in
    return _price(actor, paid_in, actor.tokens_out + actor.wasted_out)
