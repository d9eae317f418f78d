"""An attempt for people and for machines. The words are the core's; here they are laid out."""

from __future__ import annotations

import math
from collections.abc import Iterable

from understudy.commands.screen import Table
from understudy.core.target import Attempt
from understudy.core.words import in_seconds


def table(attempts: Iterable[Attempt]) -> Table:
    """Each attempt with target, result, time, reason and what followed."""
    rows = [
        (a.target, a.word, "" if a.outcome == "skipped" else span(a.seconds), why(a), a.then)
        for a in attempts
    ]
    return Table(("target", "result", "time", "reason", "then"), rows, state=1)


def span(seconds: float) -> str:
    """Short times in milliseconds, long ones as in sentences: `0.57 ms`, `1.2 s`, `30 min`."""
    return f"{seconds * 1000:.3g} ms" if 0 < seconds < 0.1 else in_seconds(seconds)


def why(attempt: Attempt) -> str:
    """Its reason, its status, and whom it benched."""
    status = f"({attempt.status}) " if attempt.status else ""
    bench = ""
    if attempt.benched:
        endless = math.isinf(attempt.benched)
        bench = ", benched until cleared" if endless else f", benched for {span(attempt.benched)}"
    return f"{status}{attempt.reason}{bench}".removeprefix(", ")
