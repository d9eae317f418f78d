"""Cancellation ends a route, whatever the agents do."""

from __future__ import annotations

import asyncio

import pytest

from tests.agents.rig import House, fails, later, ok, raises, run, task
from tests.rig import until
from understudy.agents import AgentResponse, IntentEnvelope
from understudy.agents.agent import Handle


class Deaf:
    """Hangs; when it is cancelled it says something else."""

    def __init__(self, answer: Handle) -> None:
        self.answer = answer
        self.hanging = asyncio.Event()

    async def __call__(self, envelope: IntentEnvelope) -> AgentResponse:
        self.hanging.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return self.answer(envelope)  # type: ignore[return-value]
        raise AssertionError


@pytest.mark.parametrize("strategy", ["direct", "fallback", "broadcast", "parallel"])
@pytest.mark.parametrize("answer", [ok(), raises(RuntimeError("cancelled, it seems"))])
def test_after_the_caller_left_nobody_else_is_asked(strategy: str, answer: Handle) -> None:
    async def story() -> House:
        deaf = Deaf(answer)
        others = {} if strategy == "parallel" else {"b": ok("b")}
        house = House(a=deaf, **others, require_determinism=False)
        route = asyncio.create_task(house.router.route(task(strategy)))
        await until(deaf.hanging.is_set)
        route.cancel()
        with pytest.raises(asyncio.CancelledError):
            await route
        return house

    house = run(story())
    assert house.calls == ["a"]
    assert house.span.error == "cancelled"
    assert str(house.record.events[-1]).endswith("FINAL a cancelled")


def test_who_was_cancelled_may_still_route_while_cleaning_up() -> None:
    async def story() -> AgentResponse:
        house, hanging = House(a=later(fails()), b=later(ok("b"))), asyncio.Event()

        async def leaves() -> AgentResponse:
            hanging.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return await house.router.route(task())
            raise AssertionError

        leaving = asyncio.create_task(leaves())
        await until(hanging.is_set)
        leaving.cancel()
        return await leaving

    assert run(story()).payload == "b"


def test_an_agents_own_timeout_is_its_failure() -> None:
    async def gives_up(envelope: IntentEnvelope) -> AgentResponse:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
        raise AssertionError

    assert House(a=gives_up, b=ok("b")).route().payload == "b"
