"""Journals written by hand, and by a crowd at a real gateway."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random

from tests.gateway.desk import (
    HELLO,
    HELLO_STREAM,
    Asked,
    Line,
    Plays,
    Upstream,
    aliases,
    answer,
    provider,
    says,
    serving,
)
from understudy import AVAILABILITY, Cooldown, Policy
from understudy.observe import journal_lines as lines
from understudy.observe.journal_lines import (
    Benched,
    Chain,
    Done,
    Entry,
    Head,
    Marks,
    Member,
    Tried,
)
from understudy.rehearse.replay_read import Library, files_of, read_journals
from understudy.rehearse.replay_report import Comparison, compare
from understudy.rehearse.replay_settings import read_changes

EPOCH = 1_700_000_000.0


def settings(
    policy: Policy = AVAILABILITY, cooldown: Cooldown | None = None, timeout: float = 600.0
) -> lines.Settings:
    numbers = asdict(cooldown or Cooldown(probe=True))
    cool = {name: float(value) for name, value in numbers.items()}
    return lines.Settings(
        lines.rules_of(policy), {}, cool, None if timeout == math.inf else timeout
    )


@dataclass
class Paper:
    """One run's journal; requests are told in the order of their ends."""

    run: str = "r"
    told: lines.Settings = field(default_factory=settings)
    entries: list[Entry] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.entries = [
            Head(lines.VERSION, self.run, 1, 0.0, EPOCH, 0, self.told),
            Marks(0.0),
            *self.entries,
        ]

    def chain(
        self, *targets: str, n: int = 1, credentials: tuple[str, ...] = ("default",)
    ) -> Paper:
        members = tuple(Member(target, credentials) for target in targets)
        self.entries.append(Chain(n, 0, ", ".join(targets), members))
        return self

    def request(self, name: str, outcome: str, *attempts: Tried, chain: int = 1) -> Paper:
        end = attempts[-1].end
        at = attempts[0].began
        status = 200 if outcome == "ok" else 503
        self.entries.append(Done(name, at, chain, False, outcome, status, end - at, attempts))
        return self

    @property
    def text(self) -> bytes:
        return b"".join(lines.ENCODER.encode(entry) + b"\n" for entry in self.entries)

    def at(self, folder: Path, name: str = "journal.jsonl") -> Path:
        path = folder / name
        path.write_bytes(self.text)
        return path


def ok(target: str, began: float, seconds: float = 0.5, n: int = 1) -> Tried:
    return Tried(target, "ok", began, seconds, n=n, credential="default")


def failed(
    target: str, began: float, then: str, n: int = 1, benched: float | None = None
) -> Tried:
    return Tried(
        target, "failed", began, 0.1, "transient", 503,
        n=n, credential="default", then=then, benched=benched,
    )  # fmt: skip


def skipped(target: str, at: float, fault: str = "transient") -> Tried:
    return Tried(target, "skipped", at, fault=fault)


# -- played again


def read(*paths: Path) -> Library:
    return read_journals(files_of(map(str, paths)))


def again(*paths: Path, change: tuple[str, ...] = ()) -> Comparison:
    return compare(read(*paths), read_changes(change))


def stories(found: Comparison) -> list[tuple[str, str, str, str]]:
    return [(one.id, one.means, one.before.story, one.after.story) for one in found.changed]


# -- a crowd

# What an upstream does, and how often out of a hundred; the rest is good answers.
MOODS: Sequence[tuple[int, Plays]] = (
    (28, says(503)),
    (5, says(429)),
    (5, says(429, retry_after="0.2")),
    (3, says(401)),
    (2, says(400, "bad")),
    (4, Plays(200, b"{}")),
)


def moody(luck: Random):  # type: ignore[no-untyped-def]
    async def play(asked: Asked) -> Plays:
        await asyncio.sleep(luck.random() * 0.03)
        draw = luck.random() * 100
        for share, plays in MOODS:
            if draw < share:
                return plays
            draw -= share
        if not asked.json.get("stream"):
            return Plays(200, answer())
        return Plays(200, HELLO_STREAM if draw > 5 else HELLO_STREAM[:1])

    return play


async def crowd(path: Path, seed: int, requests: int, journal: str = "", clients: int = 20) -> int:
    """Many at once at a gateway whose targets are moody; how many were asked in all."""
    play = moody(Random(seed))
    async with Upstream(play) as one, Upstream(play) as two:
        text = f'[journal]\npath = "{path}"\n{journal}[health]\nbase = 0.15\ncap = 1\n'
        text += "[policy]\nmax_wait = 0.3\ndegrade_seconds = 0.2\n"
        first = provider("p", one.url).replace('api_key = "k-provider"', 'api_keys = ["k1", "k2"]')
        text += first + provider("q", two.url) + aliases(chat="p/m, q/m", solo="q/m")
        async with serving(text) as served, asyncio.timeout(120):
            await asyncio.gather(
                *(
                    client(served.address, Random(f"{seed}/{n}"), requests // clients)
                    for n in range(clients)
                )
            )
        return len(one.asked) + len(two.asked)


def froze(library: Library) -> bool:
    """Did the process stand still for long within one decision? A busy machine may do that."""
    return any(
        isinstance(turn, Benched) and turn.at - turn.since > 0.1
        for run in library.runs
        for turn in run.turns
    )


async def client(address: str, luck: Random, requests: int) -> None:
    """Some stream, some set a deadline, some ask for the strict table, some leave."""
    for _ in range(requests):
        await asyncio.sleep(luck.random() * 0.02)
        headers = {}
        if luck.random() < 0.1:
            headers["x-understudy-policy"] = "fail_fast"
        if luck.random() < 0.1:
            headers["x-understudy-timeout"] = "0.03"
        model = luck.choice(["chat", "chat", "solo"])
        body = {**HELLO, "model": model, "stream": luck.random() < 0.4}
        patience = 0.02 if luck.random() < 0.05 else 30.0
        line = await Line.to(address)
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await line.ask("POST", "/v1/chat/completions", body, headers)
        line.close()
