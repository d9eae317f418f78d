"""The table of mutants keeps up with the code; `make mutants` runs them."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.mutants import LAWS, MUTANTS, ROOT, lost


def test_every_invariant_is_broken_by_a_mutant() -> None:
    assert {mutant.law for mutant in MUTANTS} == set(LAWS)


def test_every_mutant_finds_its_place_in_the_code() -> None:
    assert lost(MUTANTS) == []


def test_a_mutant_without_a_place_is_told(tmp_path: Path) -> None:
    path = MUTANTS[0].place(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text("nothing of the kind")
    [told] = lost(MUTANTS[:1], tmp_path)
    assert told.startswith("R1 gateway/exchange.py: 0 places for")


def test_the_tests_of_a_mutant_exist() -> None:
    for mutant in MUTANTS:
        for test in mutant.tests.split():
            path, _, name = test.partition("::")
            assert f"def {name}" in (ROOT / path).read_text(encoding="utf-8")
