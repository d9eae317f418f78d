"""A client that takes nothing is no silence of its target."""

from __future__ import annotations

from tests.rig import run
from understudy import Registry
from understudy.core.errors import Stall
from understudy.core.walk import Try
from understudy.gateway.hops import Hop
from understudy.gateway.http import Reply
from understudy.testing import Fake, ManualClock


class Outlet:
    """A client's end of the line, as the connection keeps it."""

    paused = True
    resumed = None

    def put(self, data: bytes) -> None: ...
    def abort(self) -> None: ...
    def over(self) -> None: ...


class Caller:
    """Who made the attempt."""

    def __init__(self) -> None:
        self.errors: list[Exception] = []

    def answered(self, answer: bytes) -> None: ...
    def committed(self, hop: Hop) -> None: ...

    def failed(self, error: Exception) -> None:
        self.errors.append(error)


class Carried(Hop):
    """An attempt whose stream is under way."""

    def _drop(self) -> None: ...


def test_as_long_as_the_client_takes_nothing_its_target_is_not_taken_for_silent() -> None:
    async def work() -> None:
        clock, caller, outlet = ManualClock(), Caller(), Outlet()
        registry = Registry(env={}, clock=clock)
        registry.register_provider(Fake("p"))
        cast = registry.parse("p/a").cast
        [candidate] = cast.chain
        hop = Carried(caller, cast, Try(candidate.target, 1, "default"))
        hop.carry(Reply(outlet, keep=True))
        idle = cast.patience(hop._step).idle
        for _ in range(5):
            clock.advance(idle)
        assert caller.errors == []
        outlet.paused = False
        clock.advance(idle)
        [error] = caller.errors
        assert isinstance(error, Stall)

    run(work())
