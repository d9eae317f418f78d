"""Journals, read: files to runs. A torn last line is left out with a note, a damaged one is named.

Lines carry the times of their run, so the order of files does not matter. Opens files; decides
nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from understudy.core.errors import UnderstudyError
from understudy.observe import journal_lines as lines
from understudy.observe.journal_lines import Benched, Chain, Cleared, Done, Going, Marks, Tried

NAMED = 5  # damaged lines that are named; all are counted
ASIDE = re.compile(r"\.\d+$")  # the ending of a file that was put aside


class InvalidJournal(UnderstudyError, ValueError):
    """Nothing in the files can be replayed."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of the journal."""

    id: str
    at: float  # clock seconds of its run
    chain: Chain
    stream: bool
    outcome: str  # "" if the journal ends before it does
    seconds: float
    attempts: tuple[Tried, ...]
    strict: bool  # its client asked for the stricter table
    within: float | None  # seconds, if its client set itself a limit

    @property
    def left_at(self) -> float | None:
        """When its caller left, if it did."""
        if self.attempts and self.attempts[-1].outcome == "cancelled":
            return self.attempts[-1].end
        return self.at + self.seconds if self.outcome == "left" else None


@dataclass(slots=True)
class Run:
    """One process from its start, or from where its journal begins, to its end."""

    name: str
    epoch: float  # wall clock at time 0
    eras: dict[int, lines.Settings] = field(default_factory=dict)
    reloads: dict[int, float] = field(default_factory=dict)  # when an era began
    requests: list[Asked] = field(default_factory=list)  # in the order they came
    turns: list[Benched | Cleared] = field(default_factory=list)  # of the tracker, in order
    marks: Marks | None = None  # the earliest
    refused: int = 0  # requests turned away before a chain was found
    lost: int = 0  # lines that were never written

    @property
    def begins(self) -> float:
        return 0.0 if self.marks is None else self.marks.at


@dataclass(slots=True)
class Library:
    """Everything that was read, and what could not be."""

    runs: list[Run] = field(default_factory=list)
    files: int = 0
    lines: int = 0
    torn: list[str] = field(default_factory=list)  # files whose last line is half a line
    damaged: list[str] = field(default_factory=list)  # file:line, the first few
    damages: int = 0

    @property
    def requests(self) -> int:
        return sum(len(run.requests) for run in self.runs)


def files_of(names: Iterable[str]) -> list[Path]:
    """The files named, each with those that were put aside for it, the oldest first."""
    found: dict[Path, None] = {}
    for name in names:
        path = Path(name)
        beside = [] if ASIDE.search(path.name) else _aside(path)
        found.update(dict.fromkeys((*beside, path)))
    return list(found)


def _aside(path: Path) -> list[Path]:
    numbered = {
        int(other.name.removeprefix(f"{path.name}.")): other
        for other in path.parent.glob(f"{path.name}.*")
        if ASIDE.fullmatch(other.name.removeprefix(path.name))
    }
    return [numbered[n] for n in sorted(numbered, reverse=True)]


def read_journals(paths: Iterable[Path]) -> Library:
    """Raises InvalidJournal if there is nothing to replay, OSError if a file cannot be read."""
    library = Library()
    shelves: dict[str, _Shelf] = {}
    for path in paths:
        _read(path, library, shelves)
    if not shelves:
        raise InvalidJournal(
            "no journal in these files; a gateway with `path` under [journal] writes one"
        )
    library.runs = sorted((shelf.run() for shelf in shelves.values()), key=lambda run: run.epoch)
    return library


def _read(path: Path, library: Library, shelves: dict[str, _Shelf]) -> None:
    library.files += 1
    shelf: _Shelf | None = None
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            library.lines += 1
            entry = _decoded(raw)
            if isinstance(entry, lines.Head):
                if entry.version > lines.VERSION:
                    raise InvalidJournal(f"{path}:{number} was written by a newer version")
                shelf = shelves.setdefault(entry.run, _Shelf(entry.run))
            if entry is not None and shelf is not None:
                shelf.take(entry)
            elif entry is None and not raw.endswith(b"\n"):
                library.torn.append(path.name)
            elif raw.strip():
                library.damages += 1
                if len(library.damaged) < NAMED:
                    library.damaged.append(f"{path.name}:{number}")


def _decoded(raw: bytes) -> lines.Entry | None:
    try:
        return lines.DECODER.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


@dataclass(slots=True)
class _Shelf:
    """The lines of one run, as they come."""

    name: str
    heads: list[lines.Head] = field(default_factory=list)
    eras: dict[int, lines.Settings] = field(default_factory=dict)
    reloads: dict[int, float] = field(default_factory=dict)
    chains: dict[int, Chain] = field(default_factory=dict)
    done: list[Done] = field(default_factory=list)
    going: list[Going] = field(default_factory=list)
    turns: list[Benched | Cleared] = field(default_factory=list)
    marks: list[Marks] = field(default_factory=list)
    lost: int = 0

    def take(self, entry: lines.Entry) -> None:
        match entry:
            case lines.Head():
                self.heads.append(entry)
                self.eras[entry.era] = entry.settings
            case lines.Reloaded():
                self.eras[entry.era] = entry.settings
                self.reloads[entry.era] = entry.at
            case Chain():
                self.chains[entry.n] = entry
            case Done():
                self.done.append(entry)
            case Going():
                self.going.append(entry)
            case Marks():
                self.marks.append(entry)
            case lines.Lost():
                self.lost += entry.lines
            case Benched() | Cleared():
                self.turns.append(entry)

    def run(self) -> Run:
        first = min(self.heads, key=lambda head: head.part)
        marks = min(self.marks, key=lambda entry: entry.at, default=None)
        if marks is None and first.part > 1:
            marks = Marks(math.inf)  # nobody knows who was benched: nothing can be decided again
        requests = sorted((*self._finished(), *self._unfinished()), key=lambda asked: asked.at)
        return Run(
            self.name,
            first.epoch,
            self.eras,
            self.reloads,
            requests,
            sorted(self.turns, key=lambda turn: turn.at),
            marks,
            sum(done.chain == 0 for done in self.done),
            self.lost,
        )

    def _finished(self) -> Iterator[Asked]:
        for d in self.done:
            chain = self.chains.get(d.chain)
            if chain is not None:
                rest = (d.outcome, d.seconds, d.attempts, d.strict, d.within)
                yield Asked(d.id, d.at, chain, d.stream, *rest)

    def _unfinished(self) -> Iterator[Asked]:
        """Requests of which only attempts are known: the journal ends before they do."""
        told = {(done.id, tried.began) for done in self.done for tried in done.attempts}
        open_: dict[str, list[Going]] = {}
        for going in self.going:
            if (going.id, going.attempt.began) not in told:
                open_.setdefault(going.id, []).append(going)
        for name, parts in open_.items():
            chain = self.chains.get(parts[-1].chain)
            if chain is not None:
                one, attempts = parts[0], tuple(going.attempt for going in parts)
                rest = ("", 0.0, attempts, one.strict, one.within)
                yield Asked(name, one.at, chain, one.stream, *rest)
