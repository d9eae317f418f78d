"""Two workers against one: answers a second on two cores, and an estimate without the load.

    python bench/workers.py [--rounds N] [--seconds S] [--strict]

    one   the gateway of `bench/gateway.py`: on core 0; load generator and upstream on core 1
    two   two workers on both cores, which they share with load generator and upstream

`two` over `one` is what two cores can show: the load takes its part of the second, so it is less
than what two workers can do. The estimate leaves the load out: twice the CPU time that one worker
needs for an answer, over what two need. It takes connections to be spread evenly, which holds for
many. Rounds alternate, ratios are taken within a round, figures are medians. `--strict` exits
with 1 if the estimate misses the goal.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gateway_sides import ALIKE, AUTHORIZED, Stage, our_config, put_up
from processes import (
    HERE,
    Failed,
    Load,
    Process,
    Start,
    free_ports,
    loaded,
    raise_file_limit,
)
from table import say, short, show

GOAL = 1.7
CONNECTIONS = 64
WARM = 0.7  # seconds
CASES = {"plain": "live", "translated": "translated"}


@dataclass(frozen=True, slots=True)
class Side:
    """So many workers on these cores."""

    workers: int
    cores: str


SIDES = {"one": Side(1, "0"), "two": Side(2, "0,1")}


@dataclass(frozen=True, slots=True)
class Reading:
    """One case of one round."""

    rate: float
    cpu: float  # µs of all workers for an answer


Found = dict[tuple[str, str], list[Reading]]


@dataclass(frozen=True, slots=True)
class Hall:
    """Where it happens."""

    stage: Stage
    load: str

    def readings(self, name: str, seconds: float) -> dict[str, Reading]:
        """Every case, before a gateway that is started for them."""
        side, (port,) = SIDES[name], free_ports(1)
        with Process(self._start(side, port), 0, self.stage.folder / f"{name}.log") as process:
            self._loaded(port, "live", WARM)
            return {c: self._reading(port, m, seconds, process) for c, m in CASES.items()}

    def _start(self, side: Side, port: int) -> Start:
        config = self.stage.folder / f"{port}.toml"
        text = our_config(port, self.stage.ports, ALIKE)
        config.write_text(text.replace("[gateway]", f"[gateway]\nworkers = {side.workers}", 1))
        command = [sys.executable, "-m", "understudy.cli", "serve", "--config", str(config)]
        env = {"PYTHONPATH": str(HERE.parent / "src")}
        return Start(["taskset", "-c", side.cores, *command], port, "/healthz", env=env)

    def _reading(self, port: int, model: str, seconds: float, process: Process) -> Reading:
        before = process.cpu
        figures = self._loaded(port, model, seconds)
        if bad := figures["errors"] + figures["refused"] + figures["short"]:
            raise Failed(f"{bad:.0f} requests failed")
        spent = process.cpu - before
        return Reading(figures["rate"], spent / figures["requests"] * 1e6)

    def _loaded(self, port: int, model: str, seconds: float) -> dict[str, float]:
        body = self.stage.body("plain", model)
        load = Load(port, body, CONNECTIONS, seconds, headers=AUTHORIZED)
        return loaded(self.load, load)


@contextmanager
def hall() -> Iterator[Hall]:
    with put_up() as (stage, load):
        yield Hall(stage, load)


def measured(rounds: int, seconds: float) -> Found:
    found: Found = {}
    with hall() as place:
        for number in range(rounds):
            for name in SIDES if number % 2 == 0 else reversed(SIDES):
                for case, reading in place.readings(name, seconds).items():
                    found.setdefault((case, name), []).append(reading)
                    told = f"{reading.rate:,.0f}/s, {reading.cpu:.0f} µs"
                    say(f"round {number + 1}, {name}, {case}: {told}")
    return found


def report(found: Found) -> bool:
    """Print it; True if the goal is reached."""
    rows, held = [], True
    for case in CASES:
        pairs = list(zip(found[case, "one"], found[case, "two"], strict=True))
        measure = statistics.median(two.rate / one.rate for one, two in pairs)
        estimate = statistics.median(2 * one.cpu / two.cpu for one, two in pairs)
        held = held and estimate >= GOAL
        sides = [found[case, name] for name in SIDES]
        rates = [short(statistics.median(r.rate for r in side)) for side in sides]
        costs = [f"{statistics.median(r.cpu for r in side):.0f}" for side in sides]
        rows.append((case, *rates, " and ".join(costs), f"{measure:.2f}", f"{estimate:.2f}"))
    head = ("", "one /s", "two /s", "CPU µs an answer", "measured", "estimate")
    show(f"Workers, {CONNECTIONS} connections, {os.cpu_count()} cores", head, rows)
    say("measured: two over one, while the load takes a part of the second core")
    say(f"estimate: by CPU time, without the load; goal {GOAL}")
    return held


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each case")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if the goal is missed")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started must be ended
    raise_file_limit()
    try:
        held = report(measured(given.rounds, given.seconds))
    except Failed as error:
        sys.exit(f"error: {error}")
    if given.strict and not held:
        sys.exit(1)


if __name__ == "__main__":
    main()
