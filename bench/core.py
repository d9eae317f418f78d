"""The speed figures of the core, against their limits and beside other failover libraries.

    python bench/core.py [--no-peers] [--quick] [--strict]

Everything is measured in turns, in CPU time: a busy neighbour then troubles all cases alike. A
figure is the least of the medians of several blocks. `--strict` exits with 1 if a limit is broken.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from timeit import Timer

from peers import PEERS, TEXT, Ask, Missing, Worker, batch, set_up
from table import Figure, say, short, show, show_figures

import understudy as us
from understudy.messages.capabilities import ANYTHING
from understudy.messages.response import Event
from understudy.providers.base import Call, Patience

Measure = Callable[[int], Awaitable[float]]  # so many calls -> CPU seconds
SLICE = 0.005  # CPU seconds one case runs before it is the next one's turn
WARM = 300  # calls, so that the interpreter has specialised what it can
NEVER = 10**9  # failures in a row, a threshold nobody reaches
CROWD, FEW = 100_000, 10


class Instant:
    """A provider that answers, or fails, at once."""

    credentials = ("default",)
    patience = Patience()

    def __init__(self, name: str, *, fails: bool = False) -> None:
        self.name = name
        self.fails = fails
        self.answer = us.Response(text=TEXT, usage=us.Usage(3, 2))

    def capabilities(self, model: str) -> us.Capabilities:
        return ANYTHING

    async def generate(self, call: Call) -> us.Response:
        if self.fails:
            target = f"{self.name}/{call.model}"
            raise us.ProviderError(us.Fault.TRANSIENT, target, 503, message="boom")
        return self.answer

    async def stream(self, call: Call) -> AsyncGenerator[Event, None]:
        yield await self.generate(call)


GOOD, BAD = Instant("good"), Instant("bad", fails=True)


def registry(retries: int = 1, threshold: int = NEVER, benched: int = 0) -> us.Registry:
    made = us.Registry(
        env={},
        policy=replace(us.FAIL_FAST, transient_retries=retries),
        cooldown=us.Cooldown(threshold=threshold, base=3600.0, cap=3600.0),
    )
    made.register_provider(GOOD)
    made.register_provider(BAD)
    for number in range(benched):
        made.health.bench(f"other/model-{number}", 3600.0)
    return made


async def calls_alone(failing: int) -> object:
    """What the chain does to the fakes, done by hand: the part that is not ours."""
    call = Call("m", REQUEST)
    for _ in range(failing):
        try:
            await BAD.generate(call)
        except us.ProviderError:
            continue
    return await GOOD.generate(call)


REQUEST = us.Request.of("hello")


def chain_cases() -> dict[str, Ask]:
    """A call of a two-target chain, and what of it is the fakes' own doing."""
    healthy, broken = "good/a, good/b", "bad/a, good/b"
    call = Call("a", REQUEST)
    model = registry().parse(healthy)
    once, twice = registry(retries=0).parse(broken), registry(retries=1).parse(broken)
    benched = registry(threshold=2).parse(broken)
    few, crowd = (registry(benched=n).parse(healthy) for n in (FEW, CROWD))
    return {
        "fake": lambda: GOOD.generate(call),
        "fakes, one failing": lambda: calls_alone(1),
        "fakes, two failing": lambda: calls_alone(2),
        "head answers": lambda: model.generate("hello"),
        "head answers in time": lambda: model.generate("hello", timeout=60.0),
        "head fails": lambda: once.generate("hello"),
        "head fails twice": lambda: twice.generate("hello"),
        "head benched": lambda: benched.generate("hello"),
        "few benched": lambda: few.generate("hello"),
        "crowd benched": lambda: crowd.generate("hello"),
    }


def plain_cases() -> dict[str, Measure]:
    """Things that are not awaited."""
    known, few, crowd = registry(), registry(benched=FEW), registry(benched=CROWD)
    known.parse("good/a, good/b")
    return {
        "nothing": timed("pass", {}),
        "parse": timed("parse('good/a, good/b')", {"parse": known.parse}),
        "available, healthy": timed("ask('good/a')", {"ask": known.health.available}),
        "available, benched": timed("ask('other/model-1')", {"ask": few.health.available}),
        "available, few": timed(ASK_TEN, {"ask": few.health.available}),
        "available, crowd": timed(ASK_TEN, {"ask": crowd.health.available}),
        "reports, few": timed(REPORT, {"health": few.health}),
        "reports, crowd": timed(REPORT, {"health": crowd.health}),
    }


ASK_TEN = "for n in '0123456789': ask('other/model-' + n)"
REPORT = "health.report_failure('a/new'); health.report_success('a/new')"


def timed(statement: str, names: dict[str, object]) -> Measure:
    timer = Timer(statement, timer=time.process_time, globals=names)

    async def measure(calls: int) -> float:
        return timer.timeit(calls)

    return measure


def awaited(ask: Ask) -> Measure:
    async def measure(calls: int) -> float:
        return await batch(ask, calls)

    return measure


def served(worker: Worker, case: str) -> Measure:
    async def measure(calls: int) -> float:
        return worker.batch(case, calls)

    return measure


@dataclass(frozen=True, slots=True)
class Measured:
    """Microseconds a call: for every case one median a block."""

    medians: Mapping[str, list[float]]

    def best(self, case: str) -> float:
        return min(self.medians[case])

    def beyond(self, case: str, base: str) -> float:
        """What a case costs more than another one."""
        return self.best(case) - self.best(base)

    def ratio(self, case: str, base: str) -> float:
        """How the two compare when measured side by side."""
        pairs = zip(self.medians[case], self.medians[base], strict=True)
        return statistics.median(whole / part for whole, part in pairs)


async def measured(cases: Mapping[str, Measure], blocks: int, rounds: int) -> Measured:
    """Every case once a round, all in turns."""
    sizes = {name: await size_of(measure) for name, measure in cases.items()}
    medians: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(blocks):
        block: dict[str, list[float]] = {name: [] for name in cases}
        for _ in range(rounds):
            for name, measure in cases.items():
                block[name].append(await measure(sizes[name]) / sizes[name] * 1e6)
        for name, values in block.items():
            medians[name].append(statistics.median(values))
    return Measured(medians)


async def size_of(measure: Measure) -> int:
    """How many calls fill a slice; on the way it warms up."""
    first = await measure(10) / 10
    if first < SLICE:
        first = await measure(WARM) / WARM
    return max(3, int(SLICE / max(first, 1e-8)))


def core_figures(seen: Measured) -> list[Figure]:
    """Chains have two targets; counted is what they cost beyond awaiting the fakes by hand."""
    once = seen.beyond("head fails", "fakes, one failing")
    twice = seen.beyond("head fails twice", "fakes, two failing")
    return [
        Figure("generate: head answers", seen.beyond("head answers", "fake"), limit=25),
        Figure("  the same with timeout=60", seen.beyond("head answers in time", "fake")),
        Figure("generate: head benched after two", seen.beyond("head benched", "fake"), limit=60),
        Figure("generate: head fails, not retried", once, limit=60),
        Figure("generate: head fails, is retried, fails", twice, limit=60),
        Figure("parse of a known spec", seen.beyond("parse", "nothing"), limit=1),
        Figure(
            "available(), healthy key", seen.beyond("available, healthy", "nothing"), limit=0.3
        ),
        Figure(
            "available(), benched key", seen.beyond("available, benched", "nothing"), limit=0.3
        ),
        *crowd_figures(seen),
    ]


def crowd_figures(seen: Measured) -> list[Figure]:
    """What a tracker full of benched keys costs those who are not concerned."""
    title = f"{CROWD:,} benched keys to {FEW}: "
    pairs = {
        "available()": ("available, crowd", "available, few"),
        "a failure, a success": ("reports, crowd", "reports, few"),
        "generate": ("crowd benched", "few benched"),
    }
    # "No slower": a tenth is what two runs of the same thing differ by.
    return [
        Figure(title + name, seen.ratio(crowd, few), "×", limit=1.1)
        for name, (crowd, few) in pairs.items()
    ]


IMPORT = """
import sys, time
before, started = set(sys.modules), time.process_time()
{statement}
spent = time.process_time() - started
new = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(spent, *sorted(new - sys.stdlib_module_names - {{"understudy"}}))
"""


def import_figures() -> list[Figure]:
    """CPU milliseconds of an import in a fresh process, and what it drags in."""
    return [
        _import_figure("import understudy", limit=60.0),
        _import_figure("import understudy.core.walk, understudy.core.classify"),
        _import_figure("from understudy import Registry"),
        _import_figure("import asyncio"),
    ]


def _import_figure(statement: str, limit: float | None = None) -> Figure:
    command = [sys.executable, "-c", IMPORT.format(statement=statement)]
    lines = [
        subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        for _ in range(7)
    ]
    foreign = ", ".join(lines[0][1:]) or "nothing"
    spent = min(float(line[0]) for line in lines) * 1e3
    return Figure(statement, spent, "ms", limit, f"third-party: {foreign}")


@contextmanager
def workers() -> Iterator[dict[str, Worker]]:
    """The peers that can be had here; the others are named."""
    with ExitStack() as stack:
        found = {}
        for package in PEERS:
            try:
                set_up(package)
                found[package] = stack.enter_context(Worker(package))
            except Missing as error:
                say(f"{package}: skipped, it cannot be set up: {error}")
        yield found


def show_peers(seen: Measured, packages: list[str]) -> None:
    """Whole calls, and what is left of them without the fake model's own time."""
    ours = (
        seen.best("head answers"),
        seen.beyond("head answers", "fake"),
        seen.best("head fails"),
    )
    rows = [_peer_row("understudy", ours, ours)]
    for package in packages:
        theirs = (
            seen.best(f"{package} answers"),
            seen.beyond(f"{package} answers", f"{package} direct"),
            seen.best(f"{package} fails"),
        )
        rows.append(_peer_row(PEERS[package].what, theirs, ours))
    head = ("", "head answers", "× ours", "less the model", "× ours", "head fails", "× ours")
    show("Beside others, µs of CPU a call", head, rows)


Costs = tuple[float, float, float]


def _peer_row(name: str, costs: Costs, ours: Costs) -> list[str]:
    pairs = zip(costs, ours, strict=True)
    return [name, *(text for cost, own in pairs for text in (short(cost), short(cost / own)))]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--no-peers", action="store_true", help="only our own figures")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, rougher figures")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a limit is broken")
    options = parser.parse_args()
    blocks, rounds = (3, 5) if options.quick else (7, 11)
    cases = {name: awaited(ask) for name, ask in chain_cases().items()} | plain_cases()
    with ExitStack() as stack:
        found = {} if options.no_peers else stack.enter_context(workers())
        for package, worker in found.items():
            for case in ("direct", "answers", "fails"):
                cases[f"{package} {case}"] = served(worker, case)
        seen = await measured(cases, blocks, rounds)
    held = show_figures("The core, CPU time", core_figures(seen) + import_figures())
    if found:
        show_peers(seen, list(found))
    sys.exit(1 if options.strict and not held else 0)


if __name__ == "__main__":
    asyncio.run(main())
