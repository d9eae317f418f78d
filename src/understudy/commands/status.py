"""`understudy status`: who is benched at a gateway and why, what was ordered, how busy it is."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import dataclass, field

from understudy.commands.parser import Unreachable
from understudy.commands.remote import Desk, Told
from understudy.commands.screen import Screen, Table
from understudy.core.words import in_seconds, plural

SAMPLE = re.compile(r"understudy_(\w+?)(?:\{(.*)\})? ([0-9.eE+-]+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
NOT_FAILED = ("ok", "skipped", "cancelled")  # words of an attempt that are no fault
LEDGER = 10  # lines shown
STATES = ("benched", "probing", "unproven", "counting")  # who sits out now comes first


@dataclass(frozen=True, slots=True)
class Counts:
    """What `/metrics` has counted so far, at one moment."""

    at: float = 0.0  # epoch seconds
    requests: Counter[str] = field(default_factory=Counter)  # by outcome
    attempts: Counter[tuple[str, str]] = field(default_factory=Counter)  # by target and word
    failovers: Counter[str] = field(default_factory=Counter)  # by target

    @classmethod
    def read(cls, text: str, at: float) -> Counts:
        counts = cls(at)
        for line in text.splitlines():
            match = SAMPLE.match(line)
            if match is None:
                continue
            labels, value = dict(LABEL.findall(match[2] or "")), int(float(match[3]))
            if match[1] == "requests_total":
                counts.requests[labels["outcome"]] += value
            elif match[1] == "attempts_total":
                counts.attempts[labels["target"], labels["fault"]] += value
            elif match[1] == "failovers_total":
                counts.failovers[labels["target"]] += value
        return counts

    @property
    def targets(self) -> list[str]:
        return sorted({target for target, _ in self.attempts})

    def of(self, target: str) -> dict[str, int]:
        """Attempts at one target: how many answered, failed, were passed over."""
        words = {word: n for (name, word), n in self.attempts.items() if name == target}
        failed = sum(n for word, n in words.items() if word not in NOT_FAILED)
        return {
            "ok": words.get("ok", 0),
            "failed": failed,
            "skipped": words.get("skipped", 0),
            "failovers": self.failovers[target],
        }

    def rate(self, before: Counts | None) -> float | None:
        """Requests a second since an earlier look."""
        if before is None or self.at <= before.at:
            return None
        return max(0, self.requests.total() - before.requests.total()) / (self.at - before.at)

    def to_dict(self) -> Told:
        return {
            "requests": dict(self.requests),
            "targets": {target: self.of(target) for target in self.targets},
        }


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a gateway."""

    health: Told
    counts: Counts

    @property
    def keys(self) -> dict[str, Told]:
        keys = self.health["keys"]
        assert isinstance(keys, dict)
        return keys

    @property
    def benched(self) -> int:
        return sum(bool(state["benched"]) for state in self.keys.values())

    @property
    def ledger(self) -> list[Told]:
        ledger = self.health["ledger"]
        assert isinstance(ledger, list)
        return ledger

    def to_dict(self, before: Look | None = None) -> Told:
        rate = self.counts.rate(before.counts if before else None)
        return {**self.health, **self.counts.to_dict(), "requests_per_second": rate}


async def look(desk: Desk) -> Look:
    health = await desk.ask("/understudy/api/health", has="at")
    return Look(health, Counts.read(await desk.text("/metrics"), float(str(health["at"]))))


def status(desk: Desk, screen: Screen, *, as_json: bool, every: float | None = None) -> int:
    """Once, or every so many seconds until interrupted; how many keys are benched."""
    return asyncio.run(_watched(desk, screen, as_json, every))


async def _watched(desk: Desk, screen: Screen, as_json: bool, every: float | None) -> int:
    before: Look | None = None
    while True:
        try:
            now = await look(desk)
        except Unreachable as error:
            if before is None or every is None:
                raise
            _lost(error, screen, as_json)  # it may come back: whoever watches wants to see that
        else:
            if every is not None and not as_json:
                screen.clear()
            _told(now, before, screen, as_json)
            before = now
        if every is None:
            return 0 if before is None else before.benched
        await asyncio.sleep(every)


def _told(now: Look, before: Look | None, screen: Screen, as_json: bool) -> None:
    if as_json:
        screen.json(now.to_dict(before))
    else:
        show(now, before, screen)


def _lost(error: Unreachable, screen: Screen, as_json: bool) -> None:
    if as_json:
        screen.json({"error": str(error)})
    else:
        screen.clear()
        screen.data(f"error: {error}")


def show(now: Look, before: Look | None, screen: Screen) -> None:
    screen.data(headline(now, before))
    if now.keys:
        screen.data("")
        rows = [(key, word(state), str(state["reason"])) for key, state in now.keys.items()]
        rows.sort(key=lambda row: STATES.index(row[1]))
        screen.table(Table(("key", "state", "why"), rows, state=1))
    if now.counts.targets:
        screen.data("")
        screen.table(_targets(now.counts))
    if now.ledger:
        screen.data("")
        screen.table(_ledger(now))


def headline(now: Look, before: Look | None = None) -> str:
    """The gateway in one line."""
    counts, total = now.counts, now.counts.requests.total()
    rate = counts.rate(before.counts if before else None)
    parts = [
        f"{now.health['status']}, policy {now.health['policy']}",
        f"{now.health['in_flight']} in flight",
        plural(total, "request") + ("" if rate is None else f" ({rate:.3g} a second)"),
        plural(counts.failovers.total(), "failover"),
        f"{counts.requests['failed'] + counts.requests['broken']} failed",
    ]
    return ", ".join(parts) + (
        f"; {now.benched} benched" if now.benched else "; nobody is benched"
    )


def word(state: Told) -> str:
    """A key's state: the first that holds."""
    if state["benched"]:
        return "benched"
    if state["probing"]:
        return "probing"
    return "counting" if state["bench"] is None else "unproven"


def _targets(counts: Counts) -> Table:
    names = ("ok", "failed", "skipped", "failovers")
    told = ((target, counts.of(target)) for target in counts.targets)
    rows = [(target, *(str(found[name]) for name in names)) for target, found in told]
    return Table(("target", *names), rows)


def _ledger(now: Look) -> Table:
    rows = [_entry(entry, now.counts.at) for entry in now.ledger[:LEDGER]]
    return Table(("ago", "ledger", "key", "length", "because", "why"), rows)


def _entry(entry: Told, at: float) -> tuple[str, ...]:
    ago = in_seconds(round(max(0.0, at - float(str(entry["at"])))))
    if entry["kind"] == "clear":
        by = f"by {entry['source']}" if entry.get("source") else ""
        return (ago, str(entry["kind"]), str(entry["key"]), "", by, "")
    seconds = entry["seconds"]
    length = "until cleared" if seconds is None else in_seconds(float(str(seconds)))
    because = f"{entry['fault'] or ''} by {entry['source']}".strip()
    return (ago, str(entry["kind"]), str(entry["key"]), length, because, str(entry["why"]))
