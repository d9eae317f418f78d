"""Watchdogs on one timer, in an event loop whose time jumps to the next thing that is due."""

from __future__ import annotations

import asyncio
import gc
import selectors
import time
import weakref
from collections.abc import Coroutine
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.testing import ManualClock
from understudy.timers import LULL, Alone, Watchdog, Watches

T = TypeVar("T")


class Jumping(selectors.SelectSelector):
    """Does not wait for a timer: moves the time there."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "everybody waits, and nothing is due any more"
            self.now += max(0.0, timeout)
        return ready


class Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.jumping = Jumping()
        self.timers = 0
        super().__init__(self.jumping)

    def time(self) -> float:
        return self.jumping.now

    def call_at(self, when, callback, *args, context=None):  # type: ignore[no-untyped-def, override]
        self.timers += callback.__name__ == "_ring"
        return super().call_at(when, callback, *args, context=context)


class Late(Exception):
    """What the watchdogs here raise."""


def play(work: Coroutine[object, object, T]) -> tuple[T, Loop]:
    with asyncio.Runner(loop_factory=Loop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, Loop)
        return runner.run(work), loop


async def wait(
    watches: Watches, limit: float, needs: float, start: float = 0.0
) -> tuple[str, float]:
    """How it ended, and when."""
    clock = asyncio.get_running_loop().time
    await asyncio.sleep(start)
    try:
        with Watchdog(watches.here(), limit, Late):
            await asyncio.sleep(needs)
    except Late:
        return "late", clock()
    return "done", clock()


def test_a_wait_is_ended_at_its_limit() -> None:
    (ending, _) = play(wait(Watches(time.monotonic), limit=15.0, needs=100.0))
    assert ending == ("late", 15.0)


def test_a_wait_that_ends_in_time_does_not_end_the_next_one_early() -> None:
    async def both() -> list[tuple[str, float]]:
        watches = Watches(time.monotonic)
        return [await wait(watches, 10.0, 1.0), await wait(watches, 10.0, 100.0)]

    assert play(both())[0] == [("done", 1.0), ("late", 11.0)]


def test_the_shorter_limit_rings_first_whoever_began_first() -> None:
    async def both() -> list[tuple[str, float]]:
        watches = Watches(time.monotonic)
        long, short = wait(watches, 100.0, 200.0), wait(watches, 5.0, 200.0, start=1.0)
        return list(await asyncio.gather(long, short))

    assert play(both())[0] == [("late", 100.0), ("late", 6.0)]


SECONDS = st.integers(0, 400).map(lambda n: n / 8)


@given(st.lists(st.tuples(SECONDS.filter(bool), SECONDS, SECONDS), max_size=12))
def test_every_wait_ends_at_its_limit_or_when_it_is_done(
    waits: list[tuple[float, float, float]],
) -> None:
    async def everybody() -> list[tuple[str, float]]:
        watches = Watches(time.monotonic)
        return await asyncio.gather(*(wait(watches, *one) for one in waits))

    for (limit, needs, start), (how, when) in zip(waits, play(everybody())[0], strict=True):
        if needs != limit:  # a draw may go either way
            assert how == ("done" if needs < limit else "late")
        assert start + min(limit, needs) <= when <= start + min(limit, needs) + LULL + 0.002


def test_a_thousand_waits_in_a_row_take_one_timer() -> None:
    async def many() -> None:
        watches = Watches(time.monotonic)
        for _ in range(1_000):
            await wait(watches, limit=120.0, needs=0.0)

    assert play(many())[1].timers == 1


def test_a_thousand_waits_that_run_out_one_by_one_are_looked_at_a_few_times() -> None:
    async def storm() -> list[tuple[str, float]]:
        watches = Watches(time.monotonic)
        waits = [wait(watches, 15.0, 100.0, start=n / 1000) for n in range(1_000)]
        return await asyncio.gather(*waits)

    endings, loop = play(storm())
    assert {how for how, _ in endings} == {"late"}
    assert loop.timers <= 1 / LULL + 2


def test_a_closed_loop_is_not_kept() -> None:
    watches = Watches(time.monotonic)
    loops = [weakref.ref(play(wait(watches, 15.0, 1.0))[1]) for _ in range(5)]
    gc.collect()
    assert [loop() for loop in loops[:-1]] == [None] * 4


def test_a_clock_with_timers_of_its_own_keeps_none_that_nobody_waits_for() -> None:
    clock = ManualClock()

    async def waited() -> int:
        watch = Watches(clock).here()
        assert isinstance(watch, Alone)
        with Watchdog(watch, 15.0, Late):
            assert clock.waiting == 1
        return clock.waiting

    assert asyncio.run(waited()) == 0


def test_the_caller_who_cancels_wins_over_the_watchdog() -> None:
    async def left() -> None:
        task = asyncio.create_task(wait(Watches(time.monotonic), 15.0, 100.0))
        asyncio.get_running_loop().call_at(15.0, task.cancel)
        await task

    with pytest.raises(asyncio.CancelledError):
        play(left())
