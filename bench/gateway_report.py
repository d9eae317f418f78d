"""What was measured against what is wanted: ratios, marks, tables on screen and in the page."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from gateway_sides import CASES
from gateway_trials import Age, Crowd
from table import short, show

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "speed.md"
# For newcomers: figure, case, and which reading of it.
BRIEF = (
    ("plain requests a second", "plain 32", 1),
    ("CPU µs each", "plain 32", 5),
    ("streams a second", "stream 16", 1),
    ("with a failing head", "failing 32", 1),
    ("p50 ms, one connection", "plain 1", 2),
    ("memory MB", "stream 16", 7),
)
NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Reading:
    """One case of one side in one round."""

    rate: float  # answers a second
    p50: float  # microseconds
    p99: float
    first50: float  # to the first byte of the body
    cpu: float  # microseconds of the side's processes an answer; NaN: it has none
    busy: float  # part of a core
    failed: int  # errors, refusals, streams that came short
    resident: float  # megabytes afterwards


Readings = Mapping[tuple[str, str], Sequence[Reading | None]]  # by side and case, round by round


@dataclass(frozen=True, slots=True)
class Trials:
    """What only this gateway was asked."""

    start: Sequence[float] = ()
    age: Age | None = None
    crowd: Crowd | None = None


@dataclass(frozen=True, slots=True)
class Goal:
    """A ratio that is wanted: this case of ours to that of somebody, in a figure.

    `by`: which of ours, with everybody's settings or as it is shipped.
    """

    name: str
    ours: str
    side: str
    case: str
    least: float = 0.0
    most: float = float("inf")
    figure: str = "rate"
    by: str = "ours"

    @property
    def wanted(self) -> str:
        return f"≥ {self.least:g}" if self.least else f"≤ {self.most:g}"


GOALS = (
    Goal("plain relay to nginx", "plain 32", "nginx", "plain 32", 0.2),
    Goal("benched head to own plain", "benched 32", "ours", "plain 32", 0.9),
    Goal("failing head to nginx", "failing 32", "nginx", "failing 32", 0.6),
    Goal("the same as shipped", "failing 32", "nginx", "failing 32", 0.6, by="shipped"),
    Goal("streams to nginx", "stream 16", "nginx", "stream 16", 0.7),
    Goal("p50 at one connection to nginx", "plain 1", "nginx", "plain 1", most=3, figure="p50"),
    Goal("translation to own relay", "translated 32", "ours", "plain 32", 0.4),
    Goal("translated to own streams", "translated stream 16", "ours", "stream 16", 0.4),
    Goal("plain to LiteLLM", "plain 32", "litellm", "plain 32", 100),
    Goal("streams to LiteLLM", "stream 16", "litellm", "stream 16", 15),
    Goal("plain to Portkey", "plain 32", "portkey", "plain 32", 15),
    Goal("streams to Portkey", "stream 16", "portkey", "stream 16", 15),
    Goal("bulk streams to Portkey", "bulk stream 16", "portkey", "bulk stream 16", 15),
)


@dataclass(frozen=True, slots=True)
class Result:
    """A goal and what came of it."""

    name: str
    measured: str
    wanted: str
    held: bool
    note: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.name, self.measured, self.wanted, "ok" if self.held else "FAIL", self.note)


def results(readings: Readings, trials: Trials) -> list[Result]:
    found = [r for goal in GOALS if (r := _ratio(goal, readings)) is not None]
    return [*found, *_trials(trials)]


def _ratio(goal: Goal, readings: Readings) -> Result | None:
    """The median of the rounds' ratios: what stands side by side had the same neighbours."""
    ours, theirs = readings.get((goal.by, goal.ours)), readings.get((goal.side, goal.case))
    if not ours or not theirs:
        return None
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a and b]
    ratios = [getattr(a, goal.figure) / getattr(b, goal.figure) for a, b in pairs if b.rate]
    if not ratios:
        return None
    ratio = statistics.median(ratios)
    cpu = statistics.median(b.cpu / a.cpu for a, b in pairs if a.cpu)
    failed = sum(a.failed + b.failed for a, b in pairs)
    held = goal.least <= ratio <= goal.most and not failed
    note = f"by CPU time {short(cpu)}" + (f"; {failed} FAILED" if failed else "")
    if (bound := _bound(goal, readings)) < goal.least:
        note += f"; the upstream itself, asked directly: {short(bound)}"
    return Result(goal.name, short(ratio), goal.wanted, held, note)


def _bound(goal: Goal, readings: Readings) -> float:
    """The same ratio for nobody in between: where upstream and load generator are the limit."""
    direct, theirs = readings.get(("direct", goal.ours)), readings[goal.side, goal.case]
    rates = [a.rate / b.rate for a, b in zip(direct or (), theirs, strict=False) if a and b]
    return statistics.median(rates) if rates and goal.figure == "rate" else float("inf")


def _trials(trials: Trials) -> Iterator[Result]:
    if trials.start:
        seconds = statistics.median(trials.start)
        yield Result("start to ready", f"{seconds:.2f} s", "≤ 0.6 s", seconds <= 0.6)
    if (age := trials.age) is not None:
        now = f"{age.resident[-1]:.0f} MB"
        after = f"after {age.requests:,} requests, {age.errors} failed"
        yield Result("memory", now, "≤ 80 MB", age.resident[-1] <= 80 and not age.errors, after)
        held = age.growth <= 2
        yield Result("memory stays", f"{age.growth:+.1f} MB", "≤ 2 MB", held, "over the last part")
    if (many := trials.crowd) is not None:
        held = many.peak <= 400 and not many.lost and many.open == many.streams
        note = f"{many.open:,} of them open at once, {many.lost:,} lost, {many.cpu:.1f} s of CPU"
        yield Result(f"{many.streams:,} streams", f"{many.peak:.0f} MB", "≤ 400 MB", held, note)


HEAD = ("", "answers/s", "p50 ms", "p99 ms", "first ms", "CPU µs", "core", "RSS MB", "failed")


def rows(readings: Readings, case: str) -> Iterator[tuple[str, ...]]:
    """One row a side: medians of the rounds."""
    for (side, name), rounds in readings.items():
        made = [reading for reading in rounds if reading is not None]
        if name != case or not made:
            continue
        figures = {
            key: statistics.median(getattr(reading, key) for reading in made)
            for key in ("rate", "p50", "p99", "first50", "cpu", "busy", "resident")
        }
        yield (
            side,
            short(figures["rate"]),
            *(short(figures[key] / 1000) for key in ("p50", "p99", "first50")),
            short(figures["cpu"]),
            "-" if figures["busy"] != figures["busy"] else f"{100 * figures['busy']:.0f} %",
            short(figures["resident"]),
            str(sum(reading.failed for reading in made)),
        )


def print_all(readings: Readings, found: Sequence[Result]) -> None:
    for case in CASES:
        lines = list(rows(readings, case.name))
        if lines:
            show(f"{case.name}: {case.means}", HEAD, lines)
    show("ratios and limits", ("", "measured", "wanted", "", ""), [r.cells for r in found])


def fill_page(facts: Sequence[str], readings: Readings, found: Sequence[Result]) -> None:
    """Put the figures between the marks of the reference page."""
    parts = ["\n".join(f"- {fact}" for fact in facts)]
    parts.append(_markdown(("", "measured", "wanted", "", ""), [r.cells for r in found]))
    for case in CASES:
        lines = list(rows(readings, case.name))
        if lines:
            parts.append(f"**{case.name}**: {case.means}\n\n{_markdown(HEAD, lines)}")
    _fill(PAGE, "figures", "\n\n".join(parts))
    _fill(ROOT / "README.md", "speed", brief(facts, readings))


def brief(facts: Sequence[str], readings: Readings) -> str:
    """The few figures of the front page: one row a side, one gateway on one core."""
    cases = {case.name: {line[0]: line for line in rows(readings, case.name)} for case in CASES}
    sides = [side for side in cases["plain 32"] if side != "direct"]
    lines = [
        (side, *(cases[case].get(side, ("-",) * 9)[column] for _, case, column in BRIEF))
        for side in sides
    ]
    table = _markdown(("one core", *(name for name, _, _ in BRIEF)), lines)
    return table + "\n\n" + ". ".join(fact.rstrip(".") for fact in facts[:4]) + "."


def _fill(page: Path, mark: str, inside: str) -> None:
    begin, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    text = page.read_text(encoding="utf-8")
    page.write_text(pattern.sub(lambda _: f"{begin}\n\n{inside}\n\n{end}", text), encoding="utf-8")


def _markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = ["---", *("---:" for _ in head[1:-1]), "---"]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *lines))


def as_json(
    facts: Sequence[str], readings: Readings, found: Sequence[Result]
) -> dict[str, object]:
    return {
        "facts": list(facts),
        "readings": [
            {"side": side, "case": case, "rounds": [r and asdict(r) for r in rounds]}
            for (side, case), rounds in readings.items()
        ],
        "results": [asdict(result) for result in found],
    }
