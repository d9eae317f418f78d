"""The gateway's speed, beside nginx and other gateways, in one interleaved run.

    python bench/gateway.py [--quick] [--only ours,nginx] [--json FILE] [--page] [--strict]

All sides stand throughout, on core 0; upstream and load generator are on core 1. A round asks one
case after another, each of every side in turn, the next in the opposite order; those who are quick
have several short turns in a round. Who is compared had the same seconds. Figures are medians
over the turns, ratios are taken within one.
CPU time an answer is the steady figure; answers a second need a quiet machine.
`--million` ages the gateway by a million requests instead of 200,000; `--page` writes the figures
into docs/reference/speed.md and README.md; `--strict` exits with 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from gateway_report import NAN, Reading, Result, Trials, as_json, fill_page, print_all, results
from gateway_sides import CASES, EVENTS, SIDES, Case, Side, put_up
from gateway_trials import CROWD, Bench, ageing, crowd, start_seconds
from peers import Missing
from processes import Failed, Load, Process, loaded, raise_file_limit
from table import say

PACED_LEAST = 1.0  # seconds; a paced stream alone takes a third of one


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of everything."""

    rounds: int
    seconds: float  # of each case and side in a round
    warm: float
    requests: int
    turns: int = 3  # in which those who are quick spend them, taking turns

    @property
    def readings(self) -> int:
        return self.rounds * self.turns


FULL = Plan(11, 0.9, 1.0, 200_000)
QUICK = Plan(3, 0.9, 0.4, 20_000)
BRISK = ("direct", "nginx", "ours", "shipped")  # thousands of answers in a third of a second
PEERLESS = ("direct", "nginx", "ours", "shipped")

Found = dict[tuple[str, str], list[Reading | None]]
Up = list[tuple[Bench, Process | None]]  # who stands, and its process


def measured(bench: Bench, case: Case, seconds: float, process: Process | None) -> Reading:
    """One case: the load for so long, and what it cost."""
    events = EVENTS if case.stream and case.door != "translated" and bench.side.exact else 0
    least = PACED_LEAST if case.door == "paced" else 0.0
    load = Load(0, Path(), case.connections, max(seconds, least), events=events)
    before = process.cpu if process else NAN
    figures = loaded(bench.load, bench.ask(case.door, case.body, load))
    spent = (process.cpu if process else NAN) - before
    answers = figures["requests"]
    return Reading(
        figures["rate"],
        figures["p50"],
        figures["p99"],
        figures["first50"],
        spent / answers * 1e6 if answers else NAN,
        spent / figures["elapsed"],
        int(figures["errors"] + figures["refused"] + figures["short"]),
        process.resident if process else NAN,
    )


@contextmanager
def warmed_up(bench: Bench, plan: Plan) -> Iterator[Process | None]:
    """The side's process, if it has one, asked often enough to have settled."""
    with bench.running() if bench.side.start else nullcontext() as process:
        door = next(iter(bench.side.doors))
        for kind in ("plain", "stream") if process else ():
            loaded(bench.load, bench.ask(door, kind, Load(0, Path(), 16, plan.warm)))
        yield process


def asked(bench: Bench, case: Case, seconds: float, process: Process | None) -> Reading | None:
    """A reading, unless the side fails at it; that is said."""
    try:
        if case.door == "benched":  # its head says it wants to be left alone
            loaded(bench.load, bench.ask("benched", "plain", Load(0, Path(), requests=2)))
        return measured(bench, case, seconds, process)
    except Failed as error:
        say(f"{case.name}, {bench.side.name}: left out: {error}")
        return None


def one_case(up: Up, case: Case, plan: Plan, number: int, found: Found) -> None:
    """The same of every side, one right after the other; of those who are slow, now and then."""
    told = []
    for bench, process in up if number % 2 == 0 else reversed(up):
        brisk = bench.side.name in BRISK and case.door != "paced"
        if case.door in bench.side.doors and (brisk or number % plan.turns == 0):
            seconds = plan.seconds / plan.turns if brisk else plan.seconds
            reading = asked(bench, case, seconds, process)
            found[bench.side.name, case.name][number] = reading
            told += [f"{bench.side.name} {reading.rate:,.0f}/s"] if reading else []
    if told:
        say(f"turn {number + 1} of {plan.readings}, {case.name}: {', '.join(told)}")


def run_rounds(benches: list[Bench], plan: Plan) -> Found:
    # Ordered by case before side, as the tables are.
    found: Found = {
        (bench.side.name, case.name): [None] * plan.readings
        for case in CASES
        for bench in benches
        if case.door in bench.side.doors
    }
    up: Up = []
    with ExitStack() as stack:
        for bench in benches:
            try:
                up.append((bench, stack.enter_context(warmed_up(bench, plan))))
            except Failed as error:
                say(f"{bench.side.name}: left out: {error}")
        for number in range(plan.readings):
            for case in CASES:
                one_case(up, case, plan, number, found)
    return found


def run_trials(bench: Bench, plan: Plan) -> Trials:
    say(f"starting it, ageing it by {plan.requests:,} requests, {CROWD:,} streams at once")
    return Trials(start_seconds(bench), ageing(bench, plan.requests), crowd(bench, CROWD))


@contextmanager
def standing(names: list[str]) -> Iterator[list[Bench]]:
    """The upstream running, the programs built, the sides set up that can be."""
    with put_up() as (stage, load):
        benches = []
        for name in names:
            try:
                benches.append(Bench(stage, SIDES[name](stage), load))
            except Missing as error:
                say(f"{name}: skipped: {error}")
        yield benches


def facts(benches: list[Bench], plan: Plan, busy: float) -> list[str]:
    sides: list[Side] = [bench.side for bench in benches]
    versions = ", ".join(f"{side.name} {side.version}" for side in sides if side.version)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    words = [word for word in sys.argv[1:] if not word.startswith(("--json", "/"))]
    command = " ".join(["python", "bench/gateway.py", *words])
    kernel = ".".join(platform.release().split(".")[:2])
    return [
        f"Command: `{command}`",
        f"Date: {today}",
        f"Versions: {versions}; Python {platform.python_version()}, Linux {kernel}",
        f"Machine: {os.cpu_count()} cores of {_processor()}",
        f"Rounds: {plan.rounds} of {plan.seconds:g} s a case and side, for {', '.join(BRISK)} in "
        f"{plan.turns} turns; load average before: {busy:.2f}",
    ]


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="short windows, no other gateways")
    parser.add_argument("--only", metavar="SIDES", help=f"some of {','.join(SIDES)}")
    parser.add_argument("--no-trials", action="store_true", help="only the rounds")
    parser.add_argument("--million", action="store_true", help="age it by a million requests")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float, help="of each case")
    parser.add_argument("--json", metavar="FILE", help="write everything there")
    parser.add_argument("--page", action="store_true", help="fill docs/reference/speed.md")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a goal is missed")
    return parser.parse_args()


def plan_of(given: argparse.Namespace) -> Plan:
    plan = QUICK if given.quick else FULL
    return Plan(
        given.rounds or plan.rounds,
        given.seconds or plan.seconds,
        plan.warm,
        1_000_000 if given.million else plan.requests,
    )


def sides_of(given: argparse.Namespace) -> list[str]:
    if given.only is None:
        return list(PEERLESS if given.quick else SIDES)
    names = given.only.split(",")
    if unknown := [name for name in names if name not in SIDES]:
        raise Failed(f"no side {unknown[0]!r}; known: {', '.join(SIDES)}")
    return [name for name in SIDES if name in names]


def work(given: argparse.Namespace) -> list[Result]:
    plan, names = plan_of(given), sides_of(given)
    raise_file_limit()
    busy, _, _ = os.getloadavg()
    with standing(names) as benches:
        readings = run_rounds(benches, plan)
        ours = [bench for bench in benches if bench.side.name == "ours"]
        trials = run_trials(ours[0], plan) if ours and not given.no_trials else Trials()
        told = facts(benches, plan, busy)
    found = results(readings, trials)
    print_all(readings, found)
    if given.json:
        Path(given.json).write_text(json.dumps(as_json(told, readings, found), indent=1))
    if given.page:
        fill_page(told, readings, found)
    return found


def main() -> None:
    given = options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started must be ended
    try:
        found = work(given)
    except Failed as error:
        sys.exit(f"error: {error}")
    if given.strict and not all(result.held for result in found):
        sys.exit(1)


if __name__ == "__main__":
    main()
