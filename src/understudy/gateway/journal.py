"""What the targets did and what was decided, line by line, to be replayed under other settings.

A reader of records and a listener of health. On the request path it only appends to a list; once
or twice a second the list is turned into lines and written elsewhere (`aside`: a thread), so a
slow disk delays nobody. What cannot be written is counted, told once, and forgotten.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import NamedTuple

from understudy.core.errors import UnderstudyError
from understudy.core.faults import Fault
from understudy.core.health import Change, Clock
from understudy.core.target import Attempt
from understudy.gateway.house import House
from understudy.observe import journal_lines as lines
from understudy.observe.journal_file import Sheet
from understudy.observe.record import Opening, Record

FLUSH = 0.5  # seconds a line may wait
MOST = 50_000  # entries that may wait for a slow disk
NAMES = 4096  # chains known by number at a time; clients may name them without end
NAME_MOST = 300  # characters
LONGEST = 60_000  # bytes of one line
ERAS = 8  # settings remembered for requests that outlive them


class Written(NamedTuple):
    """How a batch went."""

    problem: str = ""
    lost: int = 0
    turned: bool = False  # a new file was begun


@dataclass(frozen=True, slots=True)
class Post:
    """How entries get to the disk, and where trouble is told."""

    later: Callable[[Callable[[], None]], None]
    aside: Callable[[Callable[[], Written], Callable[[Written], None]], None]
    complain: Callable[[str], None]


class _Era(NamedTuple):
    """A house and from when on it serves, by the wall clock."""

    since: float
    number: int
    house: House


class _Ended(NamedTuple):
    """An attempt whose request goes on."""

    opening: Opening
    attempt: Attempt


Entry = Record | _Ended | lines.Line


class Journal:
    """Keeps a sheet; told of everything, says nothing of what was said."""

    def __init__(
        self, sheet: Sheet, house: House, run: str, wall: Callable[[], float], post: Post
    ) -> None:
        self._sheet = sheet
        self._run = run
        self._wall = wall
        self._post = post
        self._clock: Clock = house.registry.health.clock
        self._start = self._clock()
        self._eras: deque[_Era] = deque([_Era(0.0, 0, house)], maxlen=ERAS)
        self._pending: list[Entry] = []
        self._due = self._writing = self._troubled = False
        self._lost = 0
        self._parts = 0
        self._told = (0, settings_of(house))  # as the lines have it: an era and its settings
        self._chains: dict[tuple[int, str, bool], int] = {}
        self._numbers = 0
        self._put(self._marks())

    # -- being told ---------------------------------------------------------------------------

    def attempt(self, opening: Opening, attempt: Attempt, number: int) -> None:
        """Others feel the failure at once; the request itself may go on for minutes."""
        if attempt.outcome == "failed" and attempt.next:
            self._put(_Ended(opening, attempt))

    def finished(self, record: Record) -> None:
        self._put(record)

    def change(self, change: Change) -> None:
        """A listener of the health tracker."""
        health = self._eras[-1].house.registry.health
        self._put(lines.turned(change, health, self._start))

    def reloaded(self, house: House) -> None:
        era = _Era(self._wall(), self._eras[-1].number + 1, house)
        self._eras.append(era)
        self._put(lines.Reloaded(self._now(), era.number, settings_of(house)))

    def close(self) -> None:
        """Write what is left, here and now. To be called when nothing is written elsewhere."""
        self._writing = False
        batch, self._pending = self._batch(), []
        written = self._write(batch, self._epoch())
        if written.turned:
            self._write([self._marks()], self._epoch())
        self._complain(written)
        self._sheet.close()

    def _put(self, entry: Entry) -> None:
        if len(self._pending) >= MOST:
            self._lost += 1
            return
        self._pending.append(entry)
        if not self._due:
            self._due = True
            self._post.later(self.flush)

    def _now(self) -> float:
        return self._clock() - self._start

    def _epoch(self) -> float:
        """The wall clock at the run's start, as it goes now."""
        return self._wall() - self._now()

    def _marks(self) -> lines.Marks:
        registry = self._eras[-1].house.registry
        alias = next(iter(registry.aliases), "")
        budget = registry.parse(alias).cast.stage.budget if alias else None
        states = registry.health.snapshot()
        held = {key: lines.held(state, self._start) for key, state in states.items()}
        return lines.Marks(self._now(), held, None if budget is None else budget.left)

    # -- writing ------------------------------------------------------------------------------

    def flush(self) -> None:
        """Hand over what has gathered; later, if the last is not written yet."""
        self._due = False
        if self._writing:
            self._due = True
            return self._post.later(self.flush)
        if self._pending:
            batch, self._pending = self._batch(), []
            self._writing = True
            self._post.aside(partial(self._write, batch, self._epoch()), self._written)
        return None

    def _batch(self) -> list[Entry]:
        lost, self._lost = self._lost, 0
        return [*self._pending, lines.Lost(self._now(), lost)] if lost else self._pending

    def _written(self, written: Written) -> None:
        self._writing = False
        self._complain(written)
        if written.turned:
            self._put(self._marks())

    def _complain(self, written: Written) -> None:
        """One line for each trouble, however long it lasts."""
        self._lost += written.lost
        if written.problem and not self._troubled:
            self._post.complain(written.problem)
        self._troubled = bool(written.problem)

    def _write(self, batch: list[Entry], epoch: float) -> Written:
        parts = self._parts
        try:
            for entry in batch:
                self._add(entry, epoch)
            self._sheet.flush()
        except OSError as error:
            self._sheet.headed = False  # who knows what of it arrived: begin anew
            lost = sum(e.lines if isinstance(e, lines.Lost) else 1 for e in batch)
            return Written(error.strerror or str(error), lost, turned=True)
        return Written(turned=self._parts > max(parts, 1))

    def _add(self, entry: Entry, epoch: float) -> None:
        if not self._sheet.headed:
            self._begin(epoch)
        data = self._encoded(entry)
        if self._sheet.full(len(data)):
            self._sheet.turn()
            self._begin(epoch)
            data = self._encoded(entry)
        self._sheet.add(data)

    def _begin(self, epoch: float) -> None:
        """The head of a file; chains get their numbers anew."""
        self._chains.clear()
        self._parts += 1
        era, settings = self._told
        head = lines.Head(lines.VERSION, self._run, self._parts, self._now(), epoch, era, settings)
        self._sheet.add(lines.ENCODER.encode(head) + b"\n")
        self._sheet.headed = True

    def _encoded(self, entry: Entry) -> bytes:
        told: list[lines.Line] = []
        if isinstance(entry, lines.Line):
            told.append(entry)
            if isinstance(entry, lines.Reloaded):
                self._told = (entry.era, entry.settings)
        elif isinstance(entry, Record):
            chain = self._chain(entry.opening, entry.attempts, told) if entry.attempts else 0
            told.append(self._done(entry, chain))
        else:
            chain = self._chain(entry.opening, (entry.attempt,), told)
            told.append(self._going(entry, chain))
        data = b"".join(lines.ENCODER.encode(line) + b"\n" for line in told)
        if len(data) > LONGEST:
            self._chains.clear()
            return lines.ENCODER.encode(lines.Lost(self._now(), len(told))) + b"\n"
        return data

    def _done(self, record: Record, chain: int) -> lines.Done:
        opening = record.opening
        return lines.Done(
            opening.id,
            opening.began - self._start,
            chain,
            opening.stream,
            record.outcome,
            record.status,
            record.seconds,
            tuple(lines.tried(attempt, self._start) for attempt in record.attempts),
            opening.strict,
            opening.within,
        )

    def _going(self, ended: _Ended, chain: int) -> lines.Going:
        opening, attempt = ended
        return lines.Going(
            opening.id,
            opening.began - self._start,
            chain,
            opening.stream,
            lines.tried(attempt, self._start),
            opening.strict,
            opening.within,
        )

    def _chain(
        self, opening: Opening, attempts: tuple[Attempt, ...], told: list[lines.Line]
    ) -> int:
        """The number of a chain; told before it is first used in a file. 0: nobody knows it."""
        era = next((e for e in reversed(self._eras) if e.since <= opening.at), self._eras[0])
        sized = any(attempt.fault is Fault.CONTEXT_LENGTH for attempt in attempts)
        name = (era.number, opening.model, sized)
        if name in self._chains:
            return self._chains[name]
        try:
            cast = era.house.cast(opening.model)
        except UnderstudyError:
            return 0
        if len(self._chains) >= NAMES:
            self._chains.clear()
        self._numbers += 1
        self._chains[name] = self._numbers
        # Only an overflow asks for windows, and has then looked them up already: it can be slow.
        members = tuple(
            lines.Member(c.key, c.labels, c.window if sized else None) for c in cast.chain
        )
        model = opening.model[:NAME_MOST]
        told.append(lines.Chain(self._numbers, era.number, model, members))
        return self._numbers


def settings_of(house: House) -> lines.Settings:
    registry, rules = house.registry, house.rules
    return lines.Settings(
        lines.rules_of(registry.policy),
        {alias: lines.rules_of(policy) for alias, policy in rules.policies.items()},
        {name: float(value) for name, value in asdict(registry.health.cooldown).items()},
        None if rules.timeout == math.inf else rules.timeout,
    )
