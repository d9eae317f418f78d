# ruff: noqa: E501 - the style sheet
"""Results as one HTML page that needs nothing from elsewhere: no script, font or picture."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from understudy.rehearse.chart import bars, timeline
from understudy.rehearse.sweep import Result
from understudy.rehearse.table import ROWS, best, cells

TIMELINES = 12  # runs that are drawn; the table has all of them
CHARTS = ("success", "added_p99", "wasted_attempts", "wasted_money")

STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --soft: #5c6675; --paper: #fbfbf9; --line: #d8dbe0;
  --ok: #2f6fb2; --bad: #c2412d; --outage: #f3d6cf; --slow: #f4e6c2; --bench: #6b5b95; --star: #e6f0e2; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --soft: #98a3b3; --paper: #14181f;
  --line: #323a46; --ok: #6fa8e0; --bad: #ec7a66; --outage: #4a2a26; --slow: #473c20; --bench: #a393d6;
  --star: #24382a; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 1000px; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .4rem; }
p, caption { color: var(--soft); } .wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child { text-align: left; font-weight: 500; } td.best { background: var(--star); font-weight: 600; }
svg { width: 100%; height: auto; } svg text { font-size: 11px; fill: var(--soft); }
svg line { stroke: var(--line); } .ok { fill: var(--ok); } .bad { fill: var(--bad); }
.outage { fill: var(--outage); } .slow { fill: var(--slow); } .bench { fill: var(--bench); }
.key i { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em; background: currentColor; }
"""
KEY = "".join(
    f'<i style="color:var(--{name})"></i>{words}'
    for name, words in (
        ("ok", "answers"),
        ("bad", "failures"),
        ("outage", "outage"),
        ("slow", "slow"),
        ("bench", "benched"),
    )
)


def page(results: Sequence[Result], title: str = "Understudy rehearsal") -> str:
    """The whole page."""
    seeds = sorted({result.seed for result in results})
    intro = f"{len(results)} run{'s' * (len(results) != 1)}, seed {', '.join(map(str, seeds))}"
    parts = [f"<h1>{escape(title)}</h1><p>{intro}</p>", _scores(results)]
    if len(results) > 1:
        parts += [_chart(results, name) for name in CHARTS]
    drawn = results[:TIMELINES]
    parts += [_drawn(result) for result in drawn]
    if len(drawn) < len(results):
        parts.append(f"<p>Timelines of the first {len(drawn)} runs only.</p>")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body>{''.join(parts)}</body></html>\n"
    )


def _scores(results: Sequence[Result]) -> str:
    columns, stars = [cells(r.scores) for r in results], best(results)
    head = "".join(f'<th scope="col">{escape(result.label)}</th>' for result in results)
    rows = []
    for n, (_, words, _, _) in enumerate(ROWS):
        told = "".join(
            f"<td{' class=best' if place in stars[n] else ''}>{escape(column[n])}</td>"
            for place, column in enumerate(columns)
        )
        rows.append(f'<tr><th scope="row">{escape(words)}</th>{told}</tr>')
    return f'<div class="wide"><table><tr><th></th>{head}</tr>{"".join(rows)}</table></div>'


def _chart(results: Sequence[Result], name: str) -> str:
    _, words, form, _ = next(row for row in ROWS if row[0] == name)
    values = [result.scores.to_dict()[name] for result in results]
    drawn = bars(
        [result.label for result in results],
        [value or 0.0 for value in values],
        [form(value) for value in values],
        words,
    )
    return f"<h2>{escape(words)}</h2>{drawn}"


def _drawn(result: Result) -> str:
    return (
        f'<h2>{escape(result.label)}</h2><p class="key">{KEY}</p>'
        f'<div class="wide">{timeline(result.tally)}</div>'
    )
