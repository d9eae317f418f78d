"""Results as text: one column a run, one row a number. Readable without colour."""

from __future__ import annotations

from collections.abc import Sequence

from understudy.rehearse.score import Scores
from understudy.rehearse.sweep import Result

Cell = float | int | None


def seconds(value: Cell) -> str:
    if value is None:
        return "-"
    return f"{value * 1000:,.0f} ms" if value < 1 else f"{value:,.2f} s"


def share(value: Cell) -> str:
    return "-" if value is None else f"{100 * value:.3f} %"


def count(value: Cell) -> str:
    return "-" if value is None else f"{value:,.0f}"


def money(value: Cell) -> str:
    return "-" if value is None else f"$ {value:,.2f}"


# Field, words, form, and whether more of it is better (None: neither).
ROWS = (
    ("requests", "requests", count, None),
    ("success", "answered", share, True),
    ("failed", "failed before content", count, False),
    ("broken", "broken after content", count, False),
    ("left", "callers who left", count, None),
    ("latency_p50", "latency, median", seconds, False),
    ("latency_p99", "latency, 99 %", seconds, False),
    ("added_p50", "added by failover, median", seconds, False),
    ("added_p99", "added by failover, 99 %", seconds, False),
    ("attempts", "attempts", count, None),
    ("wasted_attempts", "wasted attempts", count, False),
    ("wasted_tokens", "wasted tokens", count, False),
    ("wasted_money", "wasted money", money, False),
    ("money", "money in all", money, False),
    ("benches", "benches", count, None),
    ("notice", "outage noticed after", seconds, False),
    ("unnoticed", "outages never noticed", count, False),
    ("back", "back in use after", seconds, False),
    ("not_back", "not back by the end", count, False),
)


def cells(scores: Scores) -> list[str]:
    values = scores.to_dict()
    return [form(values[name]) for name, _, form, _ in ROWS]


def best(results: Sequence[Result]) -> list[set[int]]:
    """For each row, who is best at it; nobody when all are alike or it is no contest."""
    winners = []
    for name, _, _, more in ROWS:
        values = [result.scores.to_dict()[name] for result in results]
        known = [value for value in values if value is not None]
        if more is None or len(set(values)) < 2 or not known:
            winners.append(set[int]())
            continue
        top = max(known) if more else min(known)
        winners.append({n for n, value in enumerate(values) if value == top})
    return winners


def table(results: Sequence[Result]) -> str:
    """Runs as columns; a star marks the best of a row. Many runs: runs as rows instead."""
    columns = [cells(result.scores) for result in results]
    stars = best(results)
    names = [words for _, words, _, _ in ROWS]
    if len(results) > 4:
        return _long(results, columns, stars)
    lines = [["", *(result.label for result in results)]]
    for row, name in enumerate(names):
        marked = [c[row] + (" *" if n in stars[row] else "  ") for n, c in enumerate(columns)]
        lines.append([name, *marked])
    return aligned(lines)


SHORT = ("success", "added_p99", "wasted_attempts", "wasted_money", "benches", "notice", "back")


def _long(results: Sequence[Result], columns: list[list[str]], stars: list[set[int]]) -> str:
    places = [n for n, (name, *_) in enumerate(ROWS) if name in SHORT]
    lines = [["", *(ROWS[n][1] for n in places)]]
    for n, result in enumerate(results):
        marked = [columns[n][p] + (" *" if n in stars[p] else "  ") for p in places]
        lines.append([result.label, *marked])
    return aligned(lines)


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Columns: words on the left, then numbers."""
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip()
        for line in lines
    )
