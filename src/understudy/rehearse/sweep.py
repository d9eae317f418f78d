"""Many runs side by side: several files, or one under many settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from understudy.rehearse.scenario_file import InvalidScenario, read_scenario
from understudy.rehearse.score import Scores, score
from understudy.rehearse.simulator import Simulator
from understudy.rehearse.tally import Tally

Progress = Callable[[int, int], None]  # runs done, of how many
MOST = 10_000  # runs of one sweep


@dataclass(frozen=True, slots=True)
class Play:
    """A scenario to be run, with what is changed in it."""

    name: str
    text: str  # TOML
    settings: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return ", ".join((self.name, *self.settings))


@dataclass(frozen=True, slots=True)
class Result:
    """One run and what came of it."""

    label: str
    seed: int
    scores: Scores
    tally: Tally


def combinations(play: Play, sweeps: Sequence[str]) -> Iterator[Play]:
    """Every combination of `key=a,b,c`, the last one turning fastest."""
    axes = [list(_values(sweep)) for sweep in sweeps]
    count = 1
    for axis in axes:
        count *= len(axis)
    if count > MOST:
        raise InvalidScenario([f"{count} runs are too many; at most {MOST}"])
    for settings in product(*axes):
        yield Play(play.name, play.text, (*play.settings, *settings))


def _values(sweep: str) -> Iterator[str]:
    name, equals, values = sweep.partition("=")
    if not equals or not name.strip() or not values.strip(", "):
        raise InvalidScenario([f"{sweep!r} is no sweep; write for example health.threshold=1,2,3"])
    for value in values.split(","):
        if value.strip():
            yield f"{name.strip()}={value.strip()}"


def run_all(
    plays: Iterable[Play], *, seed: int | None = None, progress: Progress | None = None
) -> list[Result]:
    """All of them, in order; nothing is run before all have been read and found right."""
    cast = [(p, read_scenario(p.text, p.settings, name=p.name)) for p in plays]
    results = []
    for done, (play, scenario) in enumerate(cast):
        if progress is not None:
            progress(done, len(cast))
        simulator = Simulator(scenario, seed=seed)
        tally = simulator.run()
        label = play.label if play.settings else scenario.name
        results.append(Result(label, simulator.seed, score(tally), tally))
    if progress is not None:
        progress(len(cast), len(cast))
    return results
