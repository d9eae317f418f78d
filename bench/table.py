"""Tables of figures for the bench scripts: rich when it is installed, plain text otherwise."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number, and the most it may be."""

    name: str
    value: float
    unit: str = "µs"
    limit: float | None = None
    note: str = ""

    @property
    def failed(self) -> bool:
        return self.limit is not None and not self.value <= self.limit

    def cells(self) -> tuple[str, ...]:
        limit = "" if self.limit is None else f"{short(self.limit)} {self.unit}"
        mark = "" if self.limit is None else ("FAIL" if self.failed else "ok")
        return (self.name, f"{short(self.value)} {self.unit}", limit, mark, self.note)


def short(value: float) -> str:
    """Three digits are all a busy machine can promise."""
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def show_figures(title: str, figures: Sequence[Figure]) -> bool:
    """Print them against their limits; True when all hold."""
    show(title, ("", "measured", "at most", "", ""), [figure.cells() for figure in figures])
    return not any(figure.failed for figure in figures)


def show(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; columns with a heading hold numbers, the others words."""
    try:
        _rich(title, head, rows)
    except ImportError:
        _plain(title, head, rows)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _rich(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold")
    for name in head:
        table.add_column(name, justify="right" if name else "left")
    for row in rows:
        table.add_row(*(COLOURS.get(cell, cell) for cell in row))
    # A pipe has no width of its own, and folded figures cannot be compared.
    Console(width=None if sys.stdout.isatty() else 120).print(table)


COLOURS = {"ok": "[green]ok[/]", "FAIL": "[bold red]FAIL[/]"}


def _plain(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = [head, *rows]
    widths = [max(len(row[place]) for row in table) for place in range(len(head))]
    say(f"\n{title}")
    for row in table:
        cells = [
            cell.rjust(width) if name else cell.ljust(width)
            for cell, width, name in zip(row, widths, head, strict=True)
        ]
        say("  " + "  ".join(cells).rstrip())
