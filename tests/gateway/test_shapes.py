"""How lines of the ledger look: who benched, and who cleared."""

from __future__ import annotations

import pytest

from understudy.core.health import Bench, Change
from understudy.gateway.shapes import When, entry_told

WHEN = When(clock=100.0, wall=1000.0)


@pytest.mark.parametrize("source", ["success", "operator", "remote"])
def test_a_clearing_says_who_cleared(source: str) -> None:
    told = entry_told(1000.0, Change("clear", "p/a", source=source), WHEN)
    assert told == {"at": 1000.0, "kind": "clear", "key": "p/a", "source": source}


def test_a_bench_says_who_decided_its_length() -> None:
    bench = Bench("p/a", 90.0, 150.0, source="header")
    told = entry_told(1000.0, Change("bench", "p/a", bench), WHEN)
    assert (told["kind"], told["source"], told["since"], told["until"]) == (
        "bench",
        "header",
        990.0,
        1050.0,
    )
