"""`understudy simulate`: rehearse an outage before it happens, and compare settings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from understudy.commands.progress import Say, bar, little_garbage
from understudy.rehearse.page import page
from understudy.rehearse.sweep import Play, Result, combinations, run_all
from understudy.rehearse.table import table


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for on the command line."""

    files: tuple[str, ...]  # the scenario, and those it is compared with
    sweeps: tuple[str, ...] = ()  # health.threshold=1,2,3
    seed: int | None = None
    html: str | None = None
    as_json: bool = False


def simulate(wanted: Wanted, *, echo: Say, say: Say | None = None) -> int:
    """Run everything; the result goes to `echo`, progress to `say` if there is one."""
    plays = [
        run
        for file in wanted.files
        for run in combinations(Play(Path(file).stem, _text(file)), wanted.sweeps)
    ]
    with little_garbage():
        results = run_all(plays, seed=wanted.seed, progress=bar(say, "runs"))
    if wanted.html is not None:
        title = f"Rehearsal of {', '.join(Path(file).stem for file in wanted.files)}"
        Path(wanted.html).write_text(page(results, title), encoding="utf-8")
    echo(as_json(results) if wanted.as_json else table(results))
    return 0


def as_json(results: Sequence[Result]) -> str:
    return json.dumps(
        [{"run": r.label, "seed": r.seed, "scores": r.scores.to_dict()} for r in results]
    )


def _text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")
