"""Several workers' views as one, and one worker's part of what all may do."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.core.health import Bench, Change, HealthTracker, State
from understudy.gateway.config import read_config
from understudy.gateway.portion import portion
from understudy.gateway.station import Station
from understudy.gateway.whole import Entry, ledger_of, records_of, states_of
from understudy.observe.record import Opening, Record
from understudy.testing import ManualClock


def learned(at: float, key: str = "p/m", since: float | None = None) -> Entry:
    began = at if since is None else since
    return at, Change("bench", key, Bench(key, began, began + 5))


def heard(at: float, key: str = "p/m", since: float | None = None) -> Entry:
    began = at if since is None else since
    bench = Bench(key, began, began + 5, source="remote", why="learned by another")
    return at, Change("bench", key, bench, "remote")


def cleared(at: float, source: str) -> Entry:
    return at, Change("clear", "p/m", source=source)


@pytest.mark.parametrize(
    ("one", "other", "lines"),
    [
        pytest.param([learned(1)], [heard(1.01)], [learned(1)], id="a copy"),
        pytest.param([heard(1)], [learned(1.01)], [learned(1.01)], id="the copy came first"),
        pytest.param([learned(1)], [learned(1.01)], [learned(1), learned(1.01)], id="both"),
        pytest.param([heard(1)], [heard(1.01)], [heard(1)], id="from another host"),
        pytest.param([learned(1)], [heard(9, since=1)], [learned(1)], id="a late newcomer"),
        pytest.param([learned(1)], [heard(9)], [learned(1), heard(9)], id="another bench"),
        pytest.param(
            [cleared(1, "success")], [cleared(1.01, "remote")], [cleared(1, "success")], id="clear"
        ),
        pytest.param(
            [cleared(1, "success"), cleared(1.1, "success")],
            [],
            [cleared(1, "success"), cleared(1.1, "success")],
            id="one worker's own lines are all told",
        ),
        pytest.param(
            [learned(1, "p/a")], [heard(1, "p/b")], [learned(1, "p/a"), heard(1, "p/b")], id="keys"
        ),
    ],
)
def test_the_ledger_tells_what_was_learned_once(
    one: list[Entry], other: list[Entry], lines: list[Entry]
) -> None:
    assert ledger_of([one, other]) == lines


@given(st.lists(st.lists(st.floats(0, 1e9), max_size=8).map(sorted), max_size=4))
def test_requests_are_told_in_the_order_in_which_they_ended(times: list[list[float]]) -> None:
    def record(at: float) -> Record:
        return Record(Opening("1", "openai", "m", False, "", at), 200, "ok", 0.0)

    found = list(records_of([[record(at) for at in part] for part in times]))
    assert [r.opening.at for r in found] == sorted(at for part in times for at in part)


def test_the_state_that_weighs_most_is_told() -> None:
    def state(failures: int = 0, until: float | None = None, source: str = "rule") -> State:
        bench = None if until is None else Bench("k", 0.0, until, source=source)
        return State(failures, 0, bench, "")

    now = 10.0
    ranking = [
        state(1),
        state(2),
        state(0, 9.0),
        state(0, 20.0, "remote"),
        state(0, 15.0),
        state(0, math.inf),
    ]
    for weaker, stronger in pairwise(ranking):
        assert states_of([{"k": weaker}, {"k": stronger}], now) == {"k": stronger}
        assert states_of([{"k": stronger}, {"k": weaker}], now) == {"k": stronger}


def test_every_key_that_anybody_holds_something_against_is_told() -> None:
    trackers = [HealthTracker(clock=ManualClock()) for _ in range(3)]
    for n, health in enumerate(trackers):
        health.report_failure(f"p/{n}")
    found = states_of([health.snapshot() for health in trackers], 0.0)
    assert list(found) == ["p/0", "p/1", "p/2"]


# -- portions


@pytest.mark.parametrize("workers", [1, 2, 3, 64])
def test_what_a_key_may_do_is_divided_and_never_becomes_nothing(workers: int) -> None:
    text = "[gateway]\nmax_concurrent = 4\nrate = 6\nmax_connections = 100\n"
    part = portion(read_config(text, {}), workers)
    assert part.gateway["max_concurrent"] == math.ceil(4 / workers)
    assert part.gateway["max_connections"] == math.ceil(100 / workers)
    assert part.gateway["rate"] == 6 / workers
    assert part.policy["budget_rate"] == 10 / workers


def test_what_is_not_limited_stays_without_limit() -> None:
    config = read_config("[policy]\nbudget_rate = 3\n", {})
    part = portion(config, 3)
    assert part.gateway.get("rate") is None
    assert part.gateway.get("max_concurrent") is None
    assert part.gateway["timeout"] == config.gateway["timeout"]
    assert part.policy["budget_rate"] == 1


@given(st.integers(1, 9), st.integers(1, 20))
def test_every_door_is_opened_by_exactly_one_worker(workers: int, doors: int) -> None:
    numbers = tuple(range(100, 100 + doors))
    stations = [Station(n, workers, n, "/x", numbers, 3, -1) for n in range(1, workers + 1)]
    opened = [door for station in stations for door in station.own]
    assert sorted(opened) == list(numbers)
    assert all(Station.from_env(station.to_env()) == station for station in stations)
    assert Station.from_env({}) is None
