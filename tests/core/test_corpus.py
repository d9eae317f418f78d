"""The classifier against real recorded failures, when the corpus lies beside the checkout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from understudy.core.classify import classify
from understudy.core.faults import Verdict

CORPUS = Path(__file__).parents[2] / "../shared/corpus/failures.jsonl"

pytestmark = pytest.mark.skipif(not CORPUS.exists(), reason="no shared corpus beside the checkout")

Row = dict[str, object]


@pytest.fixture(scope="module")
def judged() -> list[tuple[Row, Verdict]]:
    rows: list[Row] = [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()]
    return [(row, verdict_of(row)) for row in rows]


def verdict_of(row: Row) -> Verdict:
    status, headers, error = row["status"], row["headers"], row.get("error")
    assert isinstance(status, int | None)
    assert isinstance(headers, dict | None)
    return classify(
        error if isinstance(error, str) else None,
        status=status,
        headers=headers,
        body=row["body"],
        provider=str(row["provider"]),
        stream=row["stream"] is True,
    )


def also_ok(row: Row) -> list[object]:
    others = row.get("also_ok")
    return others if isinstance(others, list) else []


def test_at_least_97_percent_of_the_corpus_gets_exactly_its_class(
    judged: list[tuple[Row, Verdict]],
) -> None:
    misses = [(r["id"], r["class"], v) for r, v in judged if v.fault != r["class"]]
    assert len(misses) <= 0.03 * len(judged), misses


def test_at_least_99_percent_gets_a_class_that_can_be_defended(
    judged: list[tuple[Row, Verdict]],
) -> None:
    misses = [
        (r["id"], r["class"], v)
        for r, v in judged
        if v.fault != r["class"] and v.fault not in also_ok(r)
    ]
    assert len(misses) <= 0.01 * len(judged), misses


def test_at_least_95_percent_of_the_delays_are_read(judged: list[tuple[Row, Verdict]]) -> None:
    given = [(r, v) for r, v in judged if r["retry_after_s"] is not None]
    misses = [(r["id"], r["retry_after_s"], v) for r, v in given if not close(r, v)]
    assert given
    assert len(misses) <= 0.05 * len(given), misses


def test_no_delay_is_invented(judged: list[tuple[Row, Verdict]]) -> None:
    invented = [(r["id"], v) for r, v in judged if r["retry_after_s"] is None and v.retry_after]
    assert invented == []


def close(row: Row, verdict: Verdict) -> bool:
    wanted = row["retry_after_s"]
    assert isinstance(wanted, int | float)
    return verdict.retry_after == pytest.approx(wanted, rel=0.02)
