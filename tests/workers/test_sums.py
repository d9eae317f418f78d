"""Counts of several processes as one: sums, what lasts, and nobody counted twice."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from understudy.core.health import Bench, Change, HealthTracker
from understudy.core.target import Attempt
from understudy.gateway.counts import fold, keep, kept
from understudy.messages.response import Usage
from understudy.observe.metrics import Metrics
from understudy.observe.record import Opening, Record
from understudy.observe.sums import added, families, lasting
from understudy.testing import ManualClock

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]
names = st.text(st.sampled_from('ab/" \\\n{}=é'), min_size=1, max_size=6)


def counted(targets: list[str], in_flight: int = 0, benched: int = 0) -> str:
    """What a process tells that served these targets."""
    health = HealthTracker(clock=ManualClock())
    metrics = Metrics(lambda: in_flight, lambda: health)
    for n in range(benched):
        health.bench(f"p/{n}", 60)
        metrics.change(Change("bench", f"p/{n}", Bench(f"p/{n}", 0, 60)))
    for target in targets:
        opening = Opening("1", "openai", target, False, "", 0.0)
        attempt = Attempt(target, "ok", seconds=0.02)
        metrics.attempt(opening, attempt, 1)
        metrics.finished(Record(opening, 200, "ok", 0.02, (attempt,), Usage(3, 2), target=target))
    return metrics.text().decode()


def read(text: str) -> Samples:
    """By a judge that is not ours."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@given(st.lists(st.lists(names, max_size=5), min_size=1, max_size=4))
def test_counters_and_histograms_of_many_are_those_of_one_who_did_it_all(
    work: list[list[str]],
) -> None:
    alone = read(counted([target for part in work for target in part]))
    together = read(added(counted(part) for part in work))
    assert together.keys() == alone.keys()
    assert together == pytest.approx(alone)


def test_requests_under_way_add_up_and_the_benched_are_the_same_for_all() -> None:
    found = read(added([counted([], 3, 2), counted([], 4, 2), counted([], 0, 1)]))
    assert found["understudy_in_flight", ()] == 7
    assert found["understudy_benched", ()] == 2
    assert sum(v for (name, _), v in found.items() if name == "understudy_benches_total") == 5


def test_a_text_alone_stays_what_it_is() -> None:
    text = counted(["p/a", "p/b"], 2, 1)
    assert read(added([text])) == read(text)
    assert added([text, ""]) == added([text])


def test_only_what_counts_up_lasts() -> None:
    kinds = {family.kind for family in families(lasting(counted(["p/a"], 5, 1)))}
    assert kinds == {"counter", "histogram"}


def test_a_broken_line_costs_nobody_else() -> None:
    text = '# TYPE a counter\na 1\na{x="y"} what\n# a comment\n#\na_b 2\n'
    (family,) = families(text)
    assert family.samples == {"a": Decimal(1), "a_b": Decimal(2)}


# -- those who ended


def sum_of(folder: Path, living: set[str]) -> float:
    found = read(added(kept(folder, living)))
    return sum(v for (name, _), v in found.items() if name == "understudy_requests_total")


def test_who_ended_counts_once_before_and_after_the_supervisor_knows(tmp_path: Path) -> None:
    keep(tmp_path, "1-1", counted(["p/a"] * 3))
    keep(tmp_path, "2-2", counted(["p/a"] * 5))
    assert sum_of(tmp_path, {"1-1", "2-2"}) == 0
    assert sum_of(tmp_path, {"2-2"}) == 3
    fold(tmp_path, "1-1")
    assert sum_of(tmp_path, {"2-2"}) == 3
    fold(tmp_path, "2-2")
    assert sum_of(tmp_path, set()) == 8
    assert [path.name for path in tmp_path.iterdir()] == ["gone.sum"]


def test_a_file_that_is_in_the_sum_already_is_not_added_to_it(tmp_path: Path) -> None:
    keep(tmp_path, "1-1", counted(["p/a"] * 3))
    text = (tmp_path / "1-1.counts").read_bytes()
    fold(tmp_path, "1-1")
    (tmp_path / "1-1.counts").write_bytes(text)  # as one sees it who looked a moment too early
    assert sum_of(tmp_path, set()) == 3


def test_one_who_never_told_anything_leaves_nothing(tmp_path: Path) -> None:
    fold(tmp_path, "1-1")
    assert (list(tmp_path.iterdir()), added(kept(tmp_path, set()))) == ([], "")
