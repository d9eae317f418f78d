"""A5 to A8 of the contract: strategies, nobody to ask, and the same path every time."""

from __future__ import annotations

import asyncio
from threading import Event

import pytest

from tests.agents.rig import (
    TASK,
    House,
    error,
    fails,
    gives,
    later,
    ok,
    raises,
    run,
    task,
)
from understudy.agents import (
    Agent,
    AgentResponse,
    ErrorCode,
    IntentEnvelope,
    RoutingStrategy,
)

# -- A5: the strategy -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "asked"),
    [
        (None, ["a"]),
        ("", ["a"]),
        ("direct", ["a"]),
        ("DIRECT", ["a"]),
        (RoutingStrategy.DIRECT, ["a"]),
        ("fallback", ["a", "b"]),
        ("FALLBACK", ["a", "b"]),
        (RoutingStrategy.FALLBACK, ["a", "b"]),
        ("round_robin", ["a", "b"]),
        (" ", ["a", "b"]),
        (42, ["a", "b"]),
        (["direct"], ["a", "b"]),
        ({}, ["a"]),
        ("broadcast", ["a", "b", "c"]),
    ],
)
def test_a5_nothing_means_direct_and_anything_unknown_means_fallback(
    strategy: str | None, asked: list[str]
) -> None:
    house = House(a=fails(), b=ok(), c=ok())
    house.route(task(strategy))
    assert house.calls == asked


def test_a5_an_unknown_strategy_leaves_a_visible_note() -> None:
    house = House(a=ok())
    response = house.route(task("fancy"))
    assert response.metadata["requested_strategy"] == "fancy"
    assert (house.span.strategy, house.span.requested_strategy) == ("fallback", "fancy")
    assert house.record.events[0].note == "fancy"


def test_a5_no_routing_at_all_means_direct() -> None:
    house = House(a=fails(), b=ok())
    house.route(task("fallback").having(routing=None))
    assert house.calls == ["a"]


def test_a5_a_known_strategy_leaves_none() -> None:
    house = House(a=ok())
    assert "requested_strategy" not in house.route().metadata
    assert house.span.requested_strategy is None


# -- A6: the other strategies ---------------------------------------------------------------------


def test_a6_direct_asks_the_named_agent_and_does_not_fall_back() -> None:
    house = House(a=ok(), b=fails("b failed"), c=ok())
    response = house.route(task("direct", target_agent="b"))
    assert response.error is not None
    assert response.error.message == "b failed"
    assert (house.calls, response.metadata["agent"]) == (["b"], "b")


def test_a6_direct_without_a_name_asks_the_first() -> None:
    house = House(b=ok("b"), a=ok("a"))
    assert house.route(task("direct")).payload == "a"
    assert house.calls == ["a"]


@pytest.mark.parametrize("target", ["nobody", "other"])
def test_a6_direct_at_somebody_unknown_or_incapable_asks_nobody(target: str) -> None:
    house = House(Agent("other", ok(), ["something else"]), a=ok())
    response = house.route(task("direct", target_agent=target))
    assert response.error is not None
    assert response.error.code is ErrorCode.ROUTING_ERROR
    assert repr(target) in response.error.message
    assert (house.calls, response.metadata["agent"]) == ([], "router")


def test_a6_broadcast_asks_all_in_order_and_the_last_success_counts() -> None:
    house = House(a=ok("a"), b=later(ok("b")), c=fails())
    response = house.route(task("broadcast"))
    assert (response.payload, house.calls) == ("b", ["a", "b", "c"])
    assert (response.metadata["agent"], response.decision_path) == ("b", ("a", "b", "c"))


def test_a6_a_broadcast_that_all_fail_gives_the_last_error() -> None:
    response = House(a=fails("a"), b=fails("b")).route(task("broadcast"))
    assert response.error is not None
    assert response.error.message == "b"


def test_a6_parallel_is_refused_while_determinism_is_required() -> None:
    house = House(a=ok())
    response = house.route(task("parallel"))
    assert response.error is not None
    assert response.error.code is ErrorCode.VALIDATION_ERROR
    assert response.error.details["strategy"] == "parallel"
    assert response.error.details["require_determinism"] is True
    assert "require_determinism=False" in str(response.error.details["remediation"])
    assert house.calls == []


def test_a6_parallel_gives_the_first_success_and_cancels_and_awaits_the_losers() -> None:
    ended: list[str] = []

    async def slow(envelope: IntentEnvelope) -> AgentResponse:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("slow")
        raise AssertionError

    house = House(a=slow, b=later(fails()), c=later(later(ok("c"))), require_determinism=False)

    async def story() -> AgentResponse:
        response = await house.router.route(task("parallel"))
        assert ended == ["slow"]
        return response

    response = run(story())
    assert (response.payload, response.metadata["agent"]) == ("c", "c")
    assert response.decision_path == ("a", "b", "c")
    assert [(end.agent, end.status) for end in house.record.ends] == [
        ("b", "error"),
        ("c", "success"),
        ("a", "cancelled"),
    ]


def test_a6_two_that_finish_together_are_taken_in_order() -> None:
    house = House(a=later(ok("a")), b=later(ok("b")), require_determinism=False)
    assert house.route(task("parallel")).payload == "a"


def test_a6_a_race_that_all_lose_gives_the_failure_that_came_last() -> None:
    house = House(a=later(later(fails("a"))), b=later(fails("b")), require_determinism=False)
    response = house.route(task("parallel"))
    assert response.error is not None
    assert response.error.message == "a"


@pytest.mark.parametrize("blocking", [True, False])
def test_a6_a_plain_function_holds_up_nobody_in_a_race(blocking: bool) -> None:
    won, waited = Event(), []

    def waits(envelope: IntentEnvelope) -> AgentResponse:
        waited.append(won.wait(5))
        return AgentResponse.failure(error())

    def wins(envelope: IntentEnvelope) -> AgentResponse:
        won.set()
        return AgentResponse.success("b")

    for winner in (wins, later(wins)):
        won.clear()
        house = House(a=waits, b=winner, require_determinism=False)
        route = house.router.route_sync if blocking else house.route
        assert route(task("parallel")).payload == "b"
        house.router.close()
        assert house.record.path == ("a", "b")
    assert waited == [True, True]


def test_a6_a_race_works_for_blocking_callers() -> None:
    house = House(a=later(fails()), b=later(ok("b")), require_determinism=False)
    assert house.router.route_sync(task("parallel")).payload == "b"
    house.router.close()


# -- A7: no candidate (transport failures are in test_agents_remote) ------------------------------


def test_a7_without_a_candidate_the_capability_is_not_found() -> None:
    house = House(Agent("a", ok(), [f"{TASK}@2.0"]))
    response = house.route()
    assert response.error is not None
    assert (response.error.code, response.error.retryable) == (
        ErrorCode.CAPABILITY_NOT_FOUND,
        False,
    )
    assert (house.calls, house.span.agent, house.span.status) == ([], "router", "error")
    assert response.metadata["agent"] == "router"


# -- A8: determinism ------------------------------------------------------------------------------


def test_a8_a_thousand_runs_take_one_path() -> None:
    async def story() -> set[tuple[object, ...]]:
        house = House(a=fails(), b=later(raises(TimeoutError("late"))), c=gives(3), d=ok("d"))
        paths = set()
        for _ in range(1000):
            response = await house.router.route(task())
            paths.add((*response.decision_path, response.payload))
        return paths

    assert run(story()) == {("a", "b", "c", "d", "d")}


def test_a8_failures_of_the_past_change_nothing() -> None:
    house = House(a=fails(code=ErrorCode.AGENT_UNAVAILABLE), b=ok())
    paths = {house.route().decision_path for _ in range(20)}
    assert paths == {("a", "b")}


def test_a8_two_routes_at_once_do_not_disturb_each_other() -> None:
    async def story() -> list[tuple[str, ...]]:
        def by_payload(envelope: IntentEnvelope) -> AgentResponse:
            if envelope.payload == "fail":
                return AgentResponse.failure(error())
            return AgentResponse.success()

        house = House(a=later(by_payload), b=later(by_payload), c=ok())
        payloads = ["fail", "go"] * 10
        responses = await asyncio.gather(
            *(house.router.route(task(payload=payload)) for payload in payloads)
        )
        return [response.decision_path for response in responses]

    assert run(story()) == [("a", "b", "c"), ("a",)] * 10
