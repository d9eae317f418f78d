"""Journals on a clock moved by hand, and the configuration that asks for one."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.gateway.desk import (
    Told,
    aliases,
    provider,
)
from understudy import AVAILABILITY, Cooldown, Registry
from understudy.core.target import Attempt
from understudy.gateway.house import House
from understudy.gateway.journal import Journal, Post, Written
from understudy.observe.journal_file import Sheet, Shelf
from understudy.observe.record import Opening, Record
from understudy.testing import Fake, ManualClock


def config(path: Path, url: str, more: str = "") -> str:
    return f'[journal]\npath = "{path}"\n{more}' + provider("p", url) + aliases(chat="p/m, p/n")


def told(path: Path) -> list[Told]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@dataclass
class Desk:
    """A journal on a clock moved by hand; its writer works at once unless told to wait."""

    shelf: Shelf
    waits: bool = False
    complaints: list[str] = field(default_factory=list)
    jobs: list[tuple[Callable[[], Written], Callable[[Written], None]]] = field(
        default_factory=list
    )

    def __post_init__(self) -> None:
        self.clock = ManualClock(100.0)
        registry = Registry(
            env={}, policy=AVAILABILITY, cooldown=Cooldown(probe=True), clock=self.clock
        )
        registry.register_provider(Fake("p"))
        registry.register_alias("chat", "p/a, p/b")
        self.house = House(registry)
        later: Callable[[Callable[[], None]], None] = lambda flush: None  # noqa: E731
        post = Post(later, self._aside, self.complaints.append)
        sheet = Sheet(self.shelf)
        self.journal = Journal(sheet, self.house, "run", lambda: 1e9 + self.clock(), post)
        registry.health.listen(self.journal.change)

    def _aside(self, job: Callable[[], Written], then: Callable[[Written], None]) -> None:
        self.jobs.append((job, then))
        if not self.waits:
            self.work()

    def work(self) -> None:
        while self.jobs:
            job, then = self.jobs.pop(0)
            then(job())

    def request(self, name: str, model: str = "chat") -> None:
        now = self.clock()
        opening = Opening(name, "openai", model, False, "", 1e9 + now, began=now)
        attempt = Attempt("p/a", "ok", seconds=0.5, n=1, credential="default", began=now)
        self.clock.advance(1.0)
        self.journal.finished(Record(opening, 200, "ok", 0.5, (attempt,)))
