"""What a request leaves behind: no errors that wait for the garbage collector, no probe.

A failed attempt's traceback leads to the frames of the walk, and those to the request with all
its pictures. If the walk kept the error too, all of it would stay until the collector comes by.
"""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncGenerator, Iterator
from contextlib import suppress

import pytest

import understudy as us
from understudy.core.health import HealthTracker
from understudy.core.stage import Candidate, Stage
from understudy.core.walk import Step, run, walk
from understudy.messages.response import Event
from understudy.providers.base import Call
from understudy.testing import ManualClock


class Odd(Exception):
    """Something no classifier has heard of."""


class Frail:
    """A provider that fails, and remembers its errors without keeping them alive."""

    name = "frail"

    def __init__(self, error: Exception) -> None:
        self._error = error
        self.made: list[weakref.ref[Exception]] = []

    async def generate(self, call: Call) -> us.Response:
        raise self._fresh()

    async def stream(self, call: Call) -> AsyncGenerator[Event, None]:
        yield await self.generate(call)

    def _fresh(self) -> Exception:
        made = type(self._error)(*self._error.args)
        self.made.append(weakref.ref(made))
        return made


class Sound(Frail):
    """One that answers."""

    name = "sound"

    async def generate(self, call: Call) -> us.Response:
        return us.Response(text="hello")


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


ERRORS = {
    "transient": us.ProviderError(us.Fault.TRANSIENT, "frail/a", 503),
    "told of nobody": us.ProviderError(us.Fault.TRANSIENT),
    "permanent": us.ProviderError(us.Fault.PERMANENT, "frail/a", 400),
    "odd": Odd("what is this"),
}


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("spec", ["frail/a, sound/b", "frail/a, frail/b"])
@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_errors_are_gone_when_the_request_is_over(error: Exception, spec: str) -> None:
    frail = Frail(error)
    registry = us.Registry(env={})
    registry.register_provider(frail)
    registry.register_provider(Sound(error))

    async def ask() -> None:
        with suppress(us.UnderstudyError):
            await registry.parse(spec).generate("hello")

    asyncio.run(ask())
    assert frail.made
    assert [ref() for ref in frail.made] == [None] * len(frail.made)


def test_a_request_that_is_out_of_time_leaves_the_probe_to_others() -> None:
    clock = ManualClock()
    health = HealthTracker(us.Cooldown(threshold=1, probe=True), clock=clock)
    health.report_failure("p/b")
    clock.advance(5.0)
    chain = [Candidate(us.Target("p", "a")), Candidate(us.Target("p", "b"))]
    steps = walk(chain, Stage(us.AVAILABILITY, us.classify, clock, health), deadline=clock() + 9)

    def slow(step: Step) -> object:
        clock.advance(10.0)
        raise us.ProviderError(us.Fault.EMPTY_CONTENT)

    with pytest.raises(us.ChainExhausted, match=r"p/b: .* the request's own time was up"):
        run(steps, slow)
    assert health.available("p/b")
