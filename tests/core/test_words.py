"""Numbers and reasons as people read them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.core.faults import Fault
from understudy.core.health import PROBE_POLL, PROBING, Bench
from understudy.core.words import in_seconds


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.25, "0.25 s"),
        (4.2, "4.2 s"),
        (59.96, "60 s"),
        (600.0, "600 s"),
        (1778.4, "29 min 38 s"),
        (1800.4, "30 min"),
        (259_199.0, "2 d 23 h"),
        (0.0123456, "0.0123 s"),
        (1e-7, "0 s"),
        (0.0, "0 s"),
    ],
)
def test_seconds_are_told_in_three_figures(seconds: float, told: str) -> None:
    assert in_seconds(seconds) == told


@given(st.floats(0.0, 1e12))
def test_no_number_of_seconds_is_told_with_an_exponent(seconds: float) -> None:
    assert "e" not in in_seconds(seconds)


def bench(until: float) -> Bench:
    return Bench("p/m", 100.0, until, Fault.RATE_LIMIT)


def test_who_is_passed_over_is_told_what_the_ledger_says_at_that_moment() -> None:
    sits_out = bench(until=160.0)
    for now in (100.0, 100.004, 130.0, 159.5, 130.0):  # back as well: clocks of tests may be set
        assert sits_out.told(now) == sits_out.sentence(now)
        assert sits_out.wait(now) == 160.0 - now


@given(st.lists(st.floats(100.0, 159.9), min_size=1))
def test_what_is_told_is_never_off_by_more_than_a_hundredth_of_a_second(when: list[float]) -> None:
    sits_out = bench(until=160.0)
    for now in when:
        told = sits_out.told(now)
        begun = int(now * 100) / 100
        moments = (begun, now, math.nextafter(begun + 0.01, 0.0))
        words = {sits_out.sentence(moment) for moment in moments}
        figures = [float(said.split(", ")[1].split(" s ")[0]) for said in words | {told}]
        assert max(figures) - min(figures) <= 0.1 + 1e-9  # one in the last place shown


def test_a_bench_that_is_over_and_still_in_the_way_is_being_probed() -> None:
    over = bench(until=160.0)
    assert over.told(159.999).startswith("benched for rate_limit, ")
    assert over.told(160.0) == PROBING
    assert over.wait(160.0) == PROBE_POLL


def test_a_bench_without_end_is_told_as_such() -> None:
    assert bench(until=math.inf).told(101.0) == "benched for rate_limit, until cleared"
    assert bench(until=math.inf).wait(101.0) == math.inf
