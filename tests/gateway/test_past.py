"""What is remembered of finished requests: the last ones, whole, in order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.core.faults import Fault
from understudy.core.target import Attempt
from understudy.gateway.past import BLOCK, Past
from understudy.messages.response import Usage
from understudy.observe.record import Opening, Record


def record(number: int) -> Record:
    """Every field with something in it."""
    failed = Attempt(
        "p/a", "failed", Fault.RATE_LIMIT, 429, 0.1, "slow down", 1, "k1", 2.5, "advance", 5.0,
        None, "p/b", began=float(number),
    )  # fmt: skip
    served = Attempt("p/b", "ok", seconds=0.2, n=1, first_content=0.1)
    opening = Opening(f"r-{number}", "openai", "chat", True, "key", 1.5, "00-1", 2.5, True, 3.0)
    usage = Usage(3, 4, cache_read=1, reasoning=2)
    return Record(opening, 200, "ok", 0.3, (failed, served), usage, "p/b", 42, "why", 1)


def test_what_was_packed_comes_back_as_it_was() -> None:
    past = Past()
    told = [record(n) for n in range(BLOCK + 3)]
    for one in told:
        past.finished(one)
    assert list(past.last()) == told
    assert [a.began for one in past.last() for a in one.attempts] == [
        a.began for one in told for a in one.attempts
    ]


@given(
    heard=st.integers(0, 6 * BLOCK),
    room=st.integers(1, 4 * BLOCK),
    most=st.integers(0, 5 * BLOCK),
    since=st.integers(0, 7 * BLOCK),
)
def test_the_last_ones_are_those_that_a_list_would_have_kept(
    heard: int, room: int, most: int, since: int
) -> None:
    past = Past(room)
    told = [
        Record(Opening(str(n), "openai", "m", False, "", 0.0), 200, "ok", 0.1)
        for n in range(heard)
    ]
    for one in told:
        past.finished(one)
    fresh = told[since:][-room:]
    assert list(past.last(most, since)) == (fresh[-most:] if most else [])
    assert (past.so_far, len(past)) == (heard, min(heard, room))


def test_long_names_are_remembered_for_a_shorter_time() -> None:
    past = Past(room=200_000)
    told = [
        Record(Opening(str(n), "openai", "m" * 2000, False, "", 0.0), 200, "ok", 0.1)
        for n in range(5 * BLOCK)
    ]
    for one in told:
        past.finished(one)
    assert list(past.last()) == told[-BLOCK:]
    assert (past.so_far, len(past)) == (5 * BLOCK, BLOCK)
    for n in range(3 * BLOCK):
        past.finished(record(n))
    assert len(past) == 3 * BLOCK


def test_a_record_that_cannot_be_packed_troubles_nobody_after_it() -> None:
    past = Past()
    opening = Opening("odd", "openai", "m", False, "", 0.0)
    past.finished(Record(opening, 200, "ok", 0.1, usage=Usage(2**64)))
    for n in range(BLOCK - 2):
        past.finished(record(n))
    with pytest.raises(OverflowError):
        past.finished(record(BLOCK))
    later = [record(n) for n in range(2 * BLOCK)]
    for one in later:
        past.finished(one)
    assert list(past.last()) == later
    assert len(past) == 2 * BLOCK
