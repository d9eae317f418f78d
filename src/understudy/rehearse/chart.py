"""Drawings for the report: timelines and bars as inline SVG. Text in, text out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from understudy.rehearse.flight import SLOTS, Actor
from understudy.rehearse.tally import Tally

WIDTH, LEFT, ROW, GAP = 960, 150, 44, 10
PLOT = WIDTH - LEFT


def timeline(tally: Tally) -> str:
    """What each target answered and where it failed, with its outages and benches."""
    actors, span = tally.actors, tally.width * SLOTS
    height = (ROW + GAP) * (len(actors) + 1) + 24
    most = max(max(*a.line.served, *a.line.failed) for a in actors) or 1
    rows = [_row(tally, actor, n * (ROW + GAP), most) for n, actor in enumerate(actors)]
    top = len(actors) * (ROW + GAP)
    lost = _bars(tally.lost, top, max(*tally.lost, 1), "bad")
    label = _label("requests lost", top)
    axis = _axis(span, top + ROW)
    words = "answers, failures, outages and benches over time, one row a target"
    body = "".join((*rows, label, lost, axis))
    return _svg(height, words, body)


def bars(names: Sequence[str], values: Sequence[float], shown: Sequence[str], words: str) -> str:
    """One bar a run."""
    most = max((v for v in values if math.isfinite(v)), default=0.0) or 1.0
    parts = []
    for n, (name, value, text) in enumerate(zip(names, values, shown, strict=True)):
        top, width = n * 22, (PLOT - 240) * max(0.0, value) / most
        past = LEFT + 146 + width
        parts.append(
            f'<text x="{LEFT + 130}" y="{top + 14}" text-anchor="end">{escape(name[-44:])}</text>'
            f'<rect class="ok" x="{LEFT + 140}" y="{top + 3}" width="{width:.1f}" height="14"/>'
            f'<text x="{past:.1f}" y="{top + 14}">{escape(text)}</text>'
        )
    return _svg(22 * len(names) + 4, words, "".join(parts))


def _row(tally: Tally, actor: Actor, top: int, most: int) -> str:
    span = tally.width * SLOTS
    outages = "".join(
        _band("slow" if o.fault is None else "outage", o.start, o.end, (span, top, ROW))
        for o in actor.outages
    )
    benches = "".join(
        _band("bench", b.since, min(b.until, span), (span, top + ROW, 5))
        for b in tally.benches
        if b.key in actor.keys
    )
    served = _bars(actor.line.served, top, most, "ok")
    failed = _bars(actor.line.failed, top, most, "bad")
    return _label(actor.role.key, top) + outages + served + failed + benches


def _band(kind: str, start: float, end: float, where: tuple[float, int, int]) -> str:
    span, top, height = where
    x, width = LEFT + PLOT * start / span, PLOT * max(0.0, min(end, span) - start) / span
    about = f"{kind} from {start:.1f} s to {end:.1f} s"
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{top}" width="{max(width, 1):.1f}" '
        f'height="{height}"><title>{about}</title></rect>'
    )


def _bars(counts: Sequence[int], top: int, most: int, kind: str) -> str:
    width = PLOT / SLOTS
    path = "".join(
        f"M{LEFT + n * width:.1f} {top + ROW}v-{max(1.0, ROW * min(1.0, count / most)):.1f}"
        f"h{width - 1:.1f}V{top + ROW}z"
        for n, count in enumerate(counts)
        if count
    )
    return f'<path class="{kind}" d="{path}"/>' if path else ""


def _label(text: str, top: int) -> str:
    place = f'x="{LEFT - 8}" y="{top + ROW // 2 + 4}" text-anchor="end"'
    return f"<text {place}>{escape(text[-22:])}</text>"


def _axis(span: float, top: int) -> str:
    marks = "".join(
        f'<text x="{LEFT + PLOT * n / 6:.0f}" y="{top + 20}" text-anchor="middle">'
        f"{span * n / 6:.3g} s</text>"
        for n in range(6)
    )
    return f'<line x1="{LEFT}" x2="{WIDTH}" y1="{top + 2}" y2="{top + 2}"/>{marks}'


def _svg(height: int, words: str, body: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(words)}">{body}</svg>'
    )
