"""`route_sync`: without an event loop, inside one, and inside an agent that was asked by one."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading

import pytest

from tests.agents.rig import TASK, House, fails, later, ok, raises, run, task
from understudy.agents import AgentRegistry, AgentResponse, ErrorCode, IntentEnvelope, Router
from understudy.agents.blocking import Bridge


def test_plain_agents_run_on_the_callers_thread_and_no_other_is_started() -> None:
    where: list[int] = []

    def notes(envelope: IntentEnvelope) -> AgentResponse:
        where.append(threading.get_ident())
        return AgentResponse.success()

    before = threading.active_count()
    House(a=fails(), b=notes).router.route_sync(task())
    assert where == [threading.get_ident()]
    assert threading.active_count() == before


def test_it_works_inside_a_running_event_loop() -> None:
    house = House(a=later(fails()), b=later(ok("b")))

    async def story() -> AgentResponse:
        return house.router.route_sync(task())

    assert run(story()).payload == "b"
    house.router.close()


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_async_agents_may_block_on_further_routes(depth: int) -> None:
    registry = AgentRegistry()
    router = Router(registry)

    @registry.agent("a", capabilities=[TASK])
    async def deeper(envelope: IntentEnvelope) -> AgentResponse:
        left = envelope.payload
        assert isinstance(left, int)
        if left:
            return router.route_sync(envelope.child(TASK, left - 1, by="a"))
        return AgentResponse.success("bottom")

    assert router.route_sync(task(payload=depth)).payload == "bottom"
    router.close()


def test_an_interrupt_of_an_async_agent_leaves_the_bridge_usable() -> None:
    async def exits(envelope: IntentEnvelope) -> AgentResponse:
        raise SystemExit(2)

    house = House(a=exits, b=later(ok("b")))
    with pytest.raises(SystemExit):
        house.router.route_sync(task())
    assert house.router.route_sync(task("direct", target_agent="b")).payload == "b"
    house.router.close()


@pytest.mark.parametrize("strategy", ["fallback", "broadcast", "parallel"])
def test_an_agent_that_meets_a_cancelled_thread_is_a_failure_and_no_cancellation(
    strategy: str,
) -> None:
    meets = later(raises(concurrent.futures.CancelledError("theirs")))
    house = House(a=meets, b=later(ok("b")), require_determinism=False)
    assert house.router.route_sync(task(strategy)).payload == "b"
    house.router.close()
    (error,) = [end.error for end in house.record.ends if end.agent == "a"]
    assert (error.code, error.message) == (ErrorCode.INTERNAL_AGENT_ERROR, "theirs")


def test_a_coroutine_that_suspends_is_refused_rather_than_lost() -> None:
    async def suspends() -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="about to suspend"):
        Bridge().run(suspends())
