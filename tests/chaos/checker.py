"""Judges a soak after the fact: `python -m tests.chaos.checker DIR` prints a table, one law a row.

Exit code 1 if a law was broken, or had nothing to judge.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.laws import LAWS, Law
from tests.chaos.lines import Run, read

SHOWN = 5  # breaches of one law that are printed
# Laws that need one process's whole log; with several workers they have nothing to judge.
ALONE = frozenset(("the_bench_is_kept", "counts_agree", "nothing_is_left_over"))


@dataclass(frozen=True)
class Ruling:
    """One law, how much it looked at, and what it found."""

    name: str
    law: Law
    judged: int
    breaches: tuple[str, ...]

    @property
    def idle(self) -> bool:
        return self.judged == 0


def judged(run: Run) -> list[Ruling]:
    rulings = []
    for name, law in LAWS:
        if not run.alone and law.__name__ in ALONE:
            continue
        findings = list(law(run))
        breaches = tuple(finding for finding in findings if finding)
        rulings.append(Ruling(name, law, len(findings), breaches))
    return rulings


def table(rulings: list[Ruling]) -> Iterator[str]:
    for ruling in rulings:
        word = "nothing to judge" if ruling.idle else f"{len(ruling.breaches)} breaches"
        means = (ruling.law.__doc__ or "").partition(": ")[2] or ruling.law.__doc__
        yield f"{ruling.name:<4} {ruling.judged:>7} judged  {word:<17} {means}"
        for breach in ruling.breaches[:SHOWN]:
            yield f"       {breach}"


def wrong(rulings: list[Ruling]) -> list[Ruling]:
    return [ruling for ruling in rulings if ruling.breaches or ruling.idle]


def main(folder: str) -> int:
    rulings = judged(read(Path(folder)))
    sys.stdout.write("\n".join(table(rulings)) + "\n")
    return 1 if wrong(rulings) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
