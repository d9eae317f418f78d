"""What everybody wrote down in a soak, joined by request id. Reads; judges nothing."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any  # JSON lines, for tests only

from tests.chaos.spoken import unpack

Line = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One request as each side saw it."""

    client: Line
    tries: list[Line]  # by the targets, in order of their beginning
    told: list[Line]  # by the gateway's log
    spared: bool = False  # a worker was killed while it ran

    @property
    def id(self) -> str:
        return str(self.client["id"])

    @property
    def text(self) -> str:
        return unpack(self.client["text"])

    @property
    def requests(self) -> list[Line]:
        return [line for line in self.told if line["event"] == "request"]

    @property
    def stayed(self) -> bool:
        return self.client["left"] is None and not self.spared


@dataclass
class Run:
    """Everything there is to judge."""

    cases: list[Case] = field(default_factory=list)
    log: list[Line] = field(default_factory=list)
    stage: list[Line] = field(default_factory=list)
    metrics: str = ""
    papers: dict[str, bytes] = field(default_factory=dict)  # file name -> all it holds

    def staged(self, *events: str) -> list[Line]:
        return [line for line in self.stage if line["event"] in events]

    @property
    def begun(self) -> Line:
        return self.staged("begun")[0]

    @property
    def chains(self) -> dict[str, list[str]]:
        return dict(self.begun["chains"])

    @property
    def alone(self) -> bool:
        """One process, whose log and counts are whole."""
        return bool(self.begun["workers"] == 1)

    def clock(self, wall: float) -> float:
        """The clock's time of a moment that a log line tells by the wall's."""
        return float(wall - self.begun["wall"] + self.begun["at"])


def read(folder: Path) -> Run:
    """The lines in a folder that `soak` has filled."""
    papers = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    lines = {name: list(_lines(data)) for name, data in papers.items() if name.endswith(".jsonl")}
    metrics = next((p for p in papers.values() if b"understudy_requests_total" in p), b"")
    return joined(
        [*lines["clients.jsonl"], *lines["targets.jsonl"]],
        lines["gateway.jsonl"],
        lines["stage.jsonl"],
        metrics.decode(),
        papers,
    )


def _lines(data: bytes) -> Iterator[Line]:
    for line in data.splitlines():
        if line.startswith(b"{"):
            yield json.loads(line)


def joined(
    parties: Iterable[Line],
    log: list[Line],
    stage: list[Line],
    metrics: str = "",
    papers: dict[str, bytes] | None = None,
) -> Run:
    """By id, never by time."""
    tries: defaultdict[str, list[Line]] = defaultdict(list)
    told: defaultdict[str, list[Line]] = defaultdict(list)
    clients: list[Line] = []
    for line in parties:
        if line["who"] == "client":
            clients.append(line)
        else:
            tries[line["id"]].append(line)
    for line in log:
        told[line.get("request_id", "")].append(line)
    kills = [line["at"] for line in stage if line["event"] == "killed"]
    cases = [
        Case(
            client,
            sorted(tries[client["id"]], key=lambda line: float(line["began"])),
            told[client["id"]],
            any(client["sent"] - 1.0 <= at <= client["ended"] + 1.0 for at in kills),
        )
        for client in clients
    ]
    return Run(cases, log, stage, metrics, papers or {})
