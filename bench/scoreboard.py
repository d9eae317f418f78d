"""The fault catalogue through this gateway and others: what their clients see, and is it right.

    python bench/scoreboard.py [--quick] [--only ours,portkey] [--json FILE] [--page]

A head that shows the fault, a healthy tail, one request a case, judged by one judge. Products are
set up under `.bench/` when first needed; one that cannot be is named and left out. `--quick` asks
in the OpenAI dialect only, with short timeouts; `--page` writes docs/scoreboard.md.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import aiohttp
from peers import Missing
from processes import Failed, Process
from scoreboard_client import PATIENCE, asked
from scoreboard_judge import CONTROL, DIALECTS, LARGE, Case, Seen, cases, controls, judged
from scoreboard_page import Score, as_json, fill_page, print_all
from scoreboard_products import PRODUCTS, Product, Stage
from scoreboard_stage import Ports, upstreams
from table import say

CROWD = 16  # requests at once
PACE = 0.1  # seconds between two that begin: less would spend a retry budget
TOLD = 50  # cases between two lines of progress
WELL = 60.0  # seconds in which a product must answer when nothing is wrong


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of everything."""

    dialects: Sequence[str]
    seconds: float  # the timeout of each product


FULL = Plan(DIALECTS, 3.0)
QUICK = Plan(("openai",), 1.0)


@dataclass(frozen=True, slots=True)
class Round:
    """One product that is running, and the session of its clients."""

    product: Product
    session: aiohttp.ClientSession
    room: asyncio.Semaphore

    async def one(self, case: Case) -> tuple[Case, Seen]:
        async with self.room:
            return case, await asked(self.session, self.product.door(case), case)

    async def crowd(self, several: Sequence[Case]) -> list[tuple[Case, Seen]]:
        tasks = []
        for number, case in enumerate(several):
            if number % TOLD == 0:
                say(f"{self.product.name}: {number} of {len(several)} begun")
            tasks.append(asyncio.create_task(self.one(case)))
            await asyncio.sleep(PACE)
        return list(await asyncio.gather(*tasks))

    async def well(self, control: Case) -> None:
        """Wait until it answers as if nothing had happened; raises Failed."""
        until = time.monotonic() + WELL
        while True:
            _, seen = await self.one(control)
            verdict = judged(control, replace(seen, head=1))
            if verdict.right:
                return
            if time.monotonic() > until:
                way = f"{control.dialect}, stream {control.stream}"
                said = f"{verdict.words} {seen.error}".strip()[:200]
                raise Failed(f"a healthy head is not answered ({way}): {said}")


async def measured(
    product: Product, every: Sequence[Case], ports: Ports
) -> list[tuple[Case, Seen]]:
    """Every case of one product, with the calls its upstreams counted."""
    healthy = [case for case in every if case.fault is CONTROL]
    large = [case for case in every if case.fault.name in LARGE]
    others = [case for case in every if case not in healthy and case not in large]
    connector = aiohttp.TCPConnector(force_close=True)
    limits = aiohttp.ClientTimeout(total=None)
    async with (
        upstreams(every, ports) as everybody,
        aiohttp.ClientSession(connector=connector, timeout=limits) as session,
    ):
        now = Round(product, session, asyncio.Semaphore(CROWD))
        for control in healthy:
            await now.well(control)
        found = await now.crowd(others)
        # These keep a core busy for long: alone, and each when the last one is over.
        for case in large:
            say(f"{product.name}: {case.fault.name}")
            found.append(await now.one(case))
            await now.well(healthy[0])
        return [(case, everybody.counted(case, seen)) for case, seen in found]


def score(name: str, plan: Plan, folder: Path) -> Score:
    """Start one product and measure it; raises Missing or Failed."""
    every = [*controls(plan.dialects), *cases(plan.dialects)]
    began = time.perf_counter()
    with closing(Ports.kept(every)) as ports:
        heads = {case.name: ports.address(case) for case in every}
        product = PRODUCTS[name](Stage(folder, every, heads, ports.tail_address, plan.seconds))
        with Process(product.start, 0, folder / f"{name}.log") as process:
            say(f"{name} {product.version}: ready after {process.ready_seconds:.1f} s")
            seen = asyncio.run(measured(product, every, ports))
    # The order of the catalogue, not that in which they came to an end.
    seen.sort(key=lambda pair: pair[0].name)
    made = Score(name, product.title, product.version, product.settings, seen)
    right = len(seen) - len(made.wrong)
    say(f"{name}: {right} of {len(seen)} right, {time.perf_counter() - began:.0f} s")
    return made


def facts(scores: Sequence[Score], left_out: Sequence[str]) -> list[str]:
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    told = [
        f"Date: {today}",
        *(f"{made.title} {made.version}: {made.settings}" for made in scores),
        f"The client gives up after {PATIENCE:g} s; up to {CROWD} requests at once",
    ]
    return [*told, *(f"Left out: {why}" for why in left_out)]


def work(given: argparse.Namespace) -> None:
    plan = QUICK if given.quick else FULL
    names = given.only.split(",") if given.only else list(PRODUCTS)
    if unknown := [name for name in names if name not in PRODUCTS]:
        raise Failed(f"no product {unknown[0]!r}; known: {', '.join(PRODUCTS)}")
    scores = list[Score]()
    left_out = [f"{name}: not asked for" for name in PRODUCTS if name not in names]
    for name in names:
        with tempfile.TemporaryDirectory(prefix="understudy-scoreboard-") as folder:
            try:
                scores.append(score(name, plan, Path(folder)))
            except (Missing, Failed) as error:
                left_out.append(f"{name}: {error}")
                say(f"{name}: left out: {error}")
    if not scores:
        raise Failed("nobody was measured")
    print_all(scores)
    told = facts(scores, left_out)
    if given.json:
        Path(given.json).write_text(json.dumps(as_json(told, scores), indent=1))
    if given.page:
        fill_page(told, scores)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="one dialect, short timeouts")
    parser.add_argument("--only", metavar="PRODUCTS", help=f"some of {','.join(PRODUCTS)}")
    parser.add_argument("--json", metavar="FILE", help="write everything there")
    parser.add_argument("--page", action="store_true", help="fill docs/scoreboard.md")
    return parser.parse_args()


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started must be ended
    try:
        work(options())
    except Failed as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
