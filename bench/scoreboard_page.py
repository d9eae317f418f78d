"""The scoreboard as tables, on screen and in docs/scoreboard.md. Says only what was measured."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from scoreboard_judge import Case, Ought, Seen, Verdict, judged
from table import show

PAGE = Path(__file__).parents[1] / "docs" / "scoreboard.md"
MARKS = ("<!-- figures -->", "<!-- /figures -->")
Wanted = Callable[[Case], bool]
DIALECT_NAMES = {"openai": "OpenAI chat completions", "anthropic": "Anthropic messages"}


@dataclass(frozen=True, slots=True)
class Score:
    """One product and what its clients saw, case by case."""

    name: str
    title: str
    version: str
    settings: str
    seen: Sequence[tuple[Case, Seen]]

    @property
    def verdicts(self) -> Iterator[tuple[Case, Verdict]]:
        return ((case, judged(case, seen)) for case, seen in self.seen)

    @property
    def wrong(self) -> list[tuple[Case, Verdict]]:
        return [(case, verdict) for case, verdict in self.verdicts if not verdict.right]


def summary(scores: Sequence[Score]) -> list[tuple[str, ...]]:
    """How many of each group are right: one row a group, one column a product."""
    ways = [
        (f"{DIALECT_NAMES[dialect]}, {_way(stream)}", _is_way(dialect, stream))
        for dialect in DIALECT_NAMES
        for stream in (False, True)
    ]
    oughts = [(f"expected: {ought}", _is_ought(ought)) for ought in Ought]
    rows = [
        (name, *(_count(score, wanted) for score in scores)) for name, wanted in (*ways, *oughts)
    ]
    rows.append(("all", *(_count(score, lambda _: True) for score in scores)))
    aside = "all, the number of calls aside"
    rows.append((aside, *(_seen_right(score, tuple(Ought)) for score in scores)))
    others = tuple(ought for ought in Ought if ought is not Ought.TOLD)
    rows.append((f"{aside}, and refusals", *(_seen_right(score, others) for score in scores)))
    return [row for row in rows if set(row[1:]) != {"-"}]


def _is_way(dialect: str, stream: bool) -> Wanted:
    return lambda case: (case.dialect, case.stream) == (dialect, stream)


def _is_ought(ought: Ought) -> Wanted:
    return lambda case: case.ought is ought


def _count(score: Score, wanted: Wanted) -> str:
    marks = [verdict.right for case, verdict in score.verdicts if wanted(case)]
    return f"{sum(marks)} of {len(marks)}" if marks else "-"


def _seen_right(score: Score, oughts: Sequence[Ought]) -> str:
    marks = [verdict.seen_right for case, verdict in score.verdicts if case.ought in oughts]
    return f"{sum(marks)} of {len(marks)}"


def _way(stream: bool) -> str:
    return "streamed" if stream else "plain"


def cell(case: Case, seen: Seen) -> str:
    """Mark, words, seconds, calls of head + tail."""
    verdict = judged(case, seen)
    calls = f"{'?' if seen.head is None else seen.head}+{seen.tail}"
    seconds = f"{seen.seconds:.2f}" if seen.seconds < 1 else f"{seen.seconds:.1f}"
    return f"{'✓' if verdict.right else '✗'} {verdict.words}; {seconds} s; {calls}"


def tables(scores: Sequence[Score]) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """A heading and rows for each dialect and form of answer."""
    found = [{case.name: (case, seen) for case, seen in score.seen} for score in scores]
    cases = [case for case, _ in scores[0].seen]
    for dialect, title in DIALECT_NAMES.items():
        for stream in (False, True):
            rows = [
                (f"`{case.fault.name}`", case.expected, *(cell(*by[case.name]) for by in found))
                for case in cases
                if (case.dialect, case.stream) == (dialect, stream)
            ]
            if rows:
                yield f"{title}, {_way(stream)}", rows


def print_all(scores: Sequence[Score]) -> None:
    for score in scores:
        told = [
            (case.fault.name, f"{case.dialect} {_way(case.stream)}", verdict.words, case.expected)
            for case, verdict in score.wrong
        ]
        if told:
            show(f"{score.title} {score.version}: wrong", ("", "", "", ""), told)
    heads = ("", *(score.title for score in scores))
    show("right by the contract", heads, summary(scores))


def fill_page(facts: Sequence[str], scores: Sequence[Score]) -> None:
    """Put what was measured between the marks of the page."""
    begin, end = MARKS
    text = PAGE.read_text(encoding="utf-8")
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    inside = figures(facts, scores)
    PAGE.write_text(pattern.sub(lambda _: f"{begin}\n\n{inside}\n\n{end}", text), encoding="utf-8")


def figures(facts: Sequence[str], scores: Sequence[Score]) -> str:
    titles = tuple(f"{score.title} {score.version}" for score in scores)
    parts = ["\n".join(f"- {fact}" for fact in facts), "## Summary"]
    parts.append(_markdown(("Right by the contract", *titles), summary(scores)))
    for heading, rows in tables(scores):
        parts += [f"## {heading}", _markdown(("Fault", "Expected", *titles), rows)]
    return "\n\n".join(parts)


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---"] * len(head)
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))


def as_json(facts: Sequence[str], scores: Sequence[Score]) -> dict[str, object]:
    return {
        "facts": list(facts),
        "scores": [
            {
                "product": score.name,
                "version": score.version,
                "cases": [
                    {
                        "fault": case.fault.name,
                        "dialect": case.dialect,
                        "stream": case.stream,
                        "expected": case.expected,
                        "verdict": asdict(judged(case, seen)),
                        "seen": asdict(seen),
                    }
                    for case, seen in score.seen
                ],
            }
            for score in scores
        ],
    }
