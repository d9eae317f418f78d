"""Facts on one clock as messages without one, and back. Pure."""

from __future__ import annotations

import math

from understudy.core.faults import Fault
from understudy.core.health import Bench
from understudy.share.message import Message
from understudy.share.notes import Fact

HEAD_START = 1.0  # seconds at most that whoever learned of a bench may try before the others
HEAD_SHARE = 0.5  # of the bench's length at most
WHY = 500  # characters of a reason
FAULTS = {str(fault): fault for fault in Fault}


def message_of(fact: Fact, sender: str, now: float) -> Message:
    """What `sender` says of a fact at this moment."""
    bench = fact.bench or Bench(fact.key, fact.since, fact.until, source="success")
    return Message(
        kind="clear" if fact.bench is None else "bench",
        stamp=fact.rank[0],
        origin=fact.rank[1],
        sender=sender,
        sent=now,
        key=fact.key,
        host=fact.host,
        left=None if fact.until == math.inf else max(0.0, fact.until - now),
        age=max(0.0, now - fact.since),
        head=_head_start(fact, sender),
        fault=str(bench.fault or ""),
        scope=bench.scope,
        source="operator" if fact.order else bench.source,
        why=bench.why[:WHY],
        rounds=fact.rounds,
    )


def _head_start(fact: Fact, sender: str) -> float:
    """An order ends for all at once; what others learned has their head start within it."""
    if fact.final or fact.rank[1] != sender:
        return 0.0
    return min(HEAD_START, HEAD_SHARE * (fact.until - fact.since))


def fact_of(message: Message, now: float, *, late: float = 0.0, turn: float = 1.0) -> Fact:
    """A message that was `late` seconds under way; `turn` is our part of the head start."""
    since = now - message.age - late
    left = math.inf if message.left is None else message.left + message.head * turn
    until = now + left - late
    bench = Bench(
        message.key,
        since,
        until,
        FAULTS.get(message.fault),
        "credential" if message.scope == "credential" else "target",
        message.source,
        message.why,
    )
    return Fact(
        message.key,
        message.rank,
        message.host,
        since,
        until,
        bench if message.kind == "bench" else None,
        message.rounds,
        message.source == "operator",
    )
