"""What only this gateway is asked: how fast it starts, how it ages, how many it can hold."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway_sides import Side, Stage
from processes import Load, Process, loaded

STARTS = 5
SLICES = 10
CROWD = 5_000  # streams open at once
RAMP = 2_000  # of them begun a second
CROWD_EVENTS = 16  # of each: 15 chunks, and the end mark in the last of them


@dataclass(frozen=True, slots=True)
class Bench:
    """The place of a measurement: who is measured, before what, with which load generator."""

    stage: Stage
    side: Side
    load: str  # the load generator's path

    @contextmanager
    def running(self) -> Iterator[Process]:
        assert self.side.start is not None
        with Process(self.side.start, 0, self.log) as process:
            yield process

    @property
    def log(self) -> Path:
        return self.stage.folder / f"{self.side.name}.log"

    def ask(self, door: str, kind: str, load: Load) -> Load:
        """A load, aimed at a door of this side."""
        target = self.side.doors[door]
        return Load(
            target.port,
            self.stage.body(kind, target.model),
            load.connections,
            load.seconds,
            load.requests,
            load.ramp,
            load.events,
            target.headers,
        )


def start_seconds(bench: Bench) -> list[float]:
    """From spawning it to the first 200 on /healthz; bytecode is there, as when installed."""
    with bench.running():
        pass
    seconds = []
    for _ in range(STARTS):
        with bench.running() as process:
            seconds.append(process.ready_seconds)
    return seconds


@dataclass(frozen=True, slots=True)
class Age:
    """Megabytes in memory as requests go by."""

    requests: int
    resident: list[float]  # after each slice
    errors: int

    @property
    def growth(self) -> float:
        """Megabytes gained from when buffers and histories were full to the end."""
        third = len(self.resident) // 3
        return statistics.median(self.resident[-2:]) - statistics.median(
            self.resident[third : third + 2]
        )


def ageing(bench: Bench, requests: int) -> Age:
    resident, errors = [], 0
    part = Load(0, Path(), connections=32, requests=requests // SLICES)
    load = bench.ask("live", "plain", part)
    with bench.running() as process:
        for _ in range(SLICES):
            figures = loaded(bench.load, load)
            errors += int(figures["errors"] + figures["refused"])
            resident.append(process.resident)
    return Age(requests, resident, errors)


@dataclass(frozen=True, slots=True)
class Crowd:
    """Many streams at once."""

    streams: int
    open: int  # most that were open at one time
    lost: int  # broken, refused, or with other than all their events
    peak: float  # megabytes
    cpu: float  # seconds of all of it


def crowd(bench: Bench, streams: int) -> Crowd:
    load = Load(0, Path(), streams, requests=streams, ramp=RAMP, events=CROWD_EVENTS)
    with bench.running() as process:
        before = process.cpu
        figures = loaded(bench.load, bench.ask("crowd", "stream", load))
        told = int(figures["errors"] + figures["refused"] + figures["short"])
        missing = streams - int(figures["requests"])
        lost = max(told, missing)
        return Crowd(streams, int(figures["open"]), lost, process.peak, process.cpu - before)
