"""Where words go: data to one stream, all else to the other; tables as people like them.

On a terminal with `rich` installed tables have colours, elsewhere they are plain columns. What
comes from a network is cleared of control characters before a terminal sees it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TextIO

# Everything that could move a cursor or paint: C0, DEL and C1, but tabs and ends of lines.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
COLOURS = {
    "ok": "green",
    "try": "green",
    "ready": "green",
    "skip": "yellow",
    "skipped": "yellow",
    "benched": "yellow",
    "probing": "cyan",
    "counting": "cyan",
}
FAILED = "red"  # any other word of a state is a fault


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; `state` is the column whose word decides a row's colour."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    state: int | None = None


@dataclass(frozen=True, slots=True)
class Screen:
    """Two streams, and what they can show."""

    out: TextIO
    err: TextIO
    env: Mapping[str, str] = field(default_factory=dict, repr=False)

    def data(self, text: str) -> None:
        """A line of what was asked for."""
        self.write(f"{text}\n")

    def write(self, text: str) -> None:
        """A piece of it, at once."""
        self.out.write(clean(text) if self.out.isatty() else text)
        self.out.flush()

    def json(self, value: object) -> None:
        self.data(json.dumps(value, ensure_ascii=False))

    def note(self, text: str) -> None:
        """A line for people, beside the data."""
        self.err.write(f"{clean(text)}\n")
        self.err.flush()

    @property
    def watched(self) -> bool:
        """Does somebody look at the notes?"""
        return self.err.isatty()

    def progress(self, text: str) -> None:
        """A line that writes over itself; nothing where nobody looks."""
        if self.watched:
            self.err.write(text)
            self.err.flush()

    def table(self, table: Table, *, beside: bool = False) -> None:
        """A table, as data or (beside it) as a note."""
        stream = self.err if beside else self.out
        if not (stream.isatty() and self._painted(table, stream)):
            stream.write("".join(f"{clean(line)}\n" for line in columns(table)))
        stream.flush()

    def clear(self) -> None:
        """Start a terminal's page anew; elsewhere pages follow each other."""
        if self.out.isatty():
            self.out.write("\x1b[H\x1b[2J")
        else:
            self.out.write("\n")

    def _painted(self, table: Table, stream: TextIO) -> bool:
        """Drawn by rich; False if that is not installed."""
        try:
            from rich.console import Console
            from rich.table import Table as Rich
            from rich.text import Text
        except ImportError:
            return False
        drawn = Rich(box=None, pad_edge=False, header_style="bold")
        for name in table.columns:
            drawn.add_column(name, overflow="fold")
        for row in table.rows:
            word = row[table.state].split(" ")[0] if table.state is not None else ""
            style = COLOURS.get(word, FAILED) if word else ""
            # Text, not markup: reasons hold square brackets.
            cells = [
                Text(clean(cell), style if n == table.state else "") for n, cell in enumerate(row)
            ]
            drawn.add_row(*cells)
        plain = bool(self.env.get("NO_COLOR"))
        Console(file=stream, no_color=plain, highlight=False).print(drawn)
        return True


def clean(text: str) -> str:
    """Without what a terminal would obey."""
    return CONTROL.sub("�", text)


def columns(table: Table) -> list[str]:
    """Aligned by blanks; the last column is not padded."""
    rows = [table.columns, *table.rows]
    widths = [max(len(row[n]) for row in rows) for n in range(len(table.columns))]
    return ["  ".join(_padded(row, widths)).rstrip() for row in rows]


def _padded(row: Sequence[str], widths: list[int]) -> list[str]:
    return [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
