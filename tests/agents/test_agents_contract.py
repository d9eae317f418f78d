"""A1 to A12 of the contract, and what the behaviours of the source system add to them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from threading import Lock

import pytest

from tests.agents.rig import (
    TASK,
    House,
    agent,
    error,
    fails,
    gives,
    later,
    ok,
    raises,
    run,
    task,
)
from tests.rig import until
from understudy.agents import (
    Agent,
    AgentRegistry,
    AgentResponse,
    Capability,
    ErrorCode,
    ErrorInfo,
    IntentEnvelope,
    Middleware,
    Router,
    RoutingStrategy,
)
from understudy.agents.agent import Handle

# -- A1: candidates -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capability", "name", "version", "matches"),
    [
        ("sum", "sum", "1.0", True),
        ("sum", "sum", "2.0", False),
        ("sum@2.0", "sum", "2.0", True),
        ("sum", "summ", "1.0", False),
        ("sum*", "summ", "1.0", False),
        ("*@1.0", "anything", "1.0", True),
        ("*@1.0", "anything", "2.0", False),
        ("sum@*", "sum", "9", True),
        ("*", "anything", "9", True),
        ("sum", "*", "1.0", False),
        ("sum", "sum", "*", False),
        ("a@b@1.0", "a@b", "1.0", True),
    ],
)
def test_a1_a_capability_is_an_equal_name_and_version_or_a_star_on_its_side(
    capability: str, name: str, version: str, matches: bool
) -> None:
    registry = AgentRegistry([Agent("a", ok(), [capability])])
    response = run(Router(registry).route(IntentEnvelope.new(name, version=version)))
    assert response.ok is matches


def test_a1_an_agent_that_matches_twice_is_asked_once() -> None:
    house = House(Agent("a", fails(), [TASK, "*", Capability(TASK, "*")]))
    house.route()
    assert house.calls == ["a"]


def test_a1_a_wildcard_agent_is_no_worse_than_an_exact_one() -> None:
    house = House(Agent("any", fails(), ["*"]), agent("exact"))
    assert house.route().decision_path == ("any", "exact")


# -- A2: order ------------------------------------------------------------------------------------


def test_a2_local_before_remote_then_priority_then_name_by_code_point() -> None:
    expected = ["low", "Z", "a", "late", "far-first", "far"]
    agents = [
        agent("far", fails(), node_id="n", node_priority=100),
        agent("far-first", fails(), node_id="n", node_priority=0),
        agent("late", fails(), node_priority=1000),
        agent("a", fails()),
        agent("Z", fails(), node_id=""),
        agent("low", fails(), node_priority=1),
    ]
    house = House(*agents)
    assert house.route().decision_path == tuple(expected)


def test_a2_the_order_is_the_same_for_every_order_of_registration() -> None:
    where = {"a": {"node_priority": 7}, "b": {}, "c": {"node_id": "n"}, "d": {"node_id": "m"}}
    paths = set()
    for names in itertools.permutations(where):
        house = House(*(agent(name, fails(), **where[name]) for name in names))  # type: ignore[arg-type]
        paths.add(house.route().decision_path)
    assert paths == {("a", "b", "c", "d")}


def test_a2_the_order_is_fixed_for_the_call() -> None:
    house = House(b=ok("b"))

    def meddles(envelope: IntentEnvelope) -> AgentResponse:
        house.registry.register(agent("ab"))
        house.registry.unregister("b")
        return AgentResponse.failure(error())

    house.registry.register(agent("a", meddles))
    assert house.route().decision_path == ("a", "b")
    assert [each.name for each in house.registry.candidates(task().intent)] == ["a", "ab"]


@pytest.mark.parametrize("priority", [None, "1", 1.5])
def test_a2_a_priority_that_cannot_be_ordered_is_refused_at_once(priority: object) -> None:
    with pytest.raises(TypeError, match="node_priority is an int"):
        agent("a", node_priority=priority)


# -- A3: fallback ---------------------------------------------------------------------------------


def test_a3_the_first_success_is_returned_and_nobody_after_it_is_asked() -> None:
    house = House(a=fails(), b=ok("b"), c=ok("c"))
    response = house.route()
    assert (response.payload, house.calls) == ("b", ["a", "b"])


@pytest.mark.parametrize("code", ErrorCode)
@pytest.mark.parametrize("retryable", [True, False])
def test_a3_any_failure_advances_whatever_its_code_and_nobody_is_asked_twice(
    code: ErrorCode, retryable: bool
) -> None:
    failing = gives(AgentResponse.failure(ErrorInfo(code, "x", retryable)))
    house = House(a=failing, b=ok())
    assert house.route().ok
    assert house.calls == ["a", "b"]


def test_a3_the_second_is_asked_only_after_the_first_has_answered() -> None:
    story: list[str] = []

    def telling(name: str) -> Handle:
        async def handle(envelope: IntentEnvelope) -> AgentResponse:
            story.append(f"{name} begins")
            turn = asyncio.Event()
            asyncio.get_running_loop().call_soon(turn.set)
            await turn.wait()
            story.append(f"{name} ends")
            return AgentResponse.failure(error())

        return handle

    House(a=telling("a"), b=telling("b")).route()
    assert story == ["a begins", "a ends", "b begins", "b ends"]


def test_a3_nothing_of_earlier_errors_is_in_a_later_success() -> None:
    response = House(a=fails("secret of a"), b=raises(ValueError("secret of b")), c=ok()).route()
    assert response.ok
    assert "secret" not in repr(response)


def test_a3_the_target_agent_does_not_change_a_fallback() -> None:
    house = House(a=ok("a"), b=ok("b"))
    assert house.route(task(target_agent="b")).payload == "a"


def test_a3_every_candidate_sees_the_same_envelope() -> None:
    seen: list[IntentEnvelope] = []

    def notes(envelope: IntentEnvelope) -> AgentResponse:
        seen.append(envelope)
        return AgentResponse.failure(error())

    envelope = task(payload={"n": [1]})
    House(a=notes, b=later(notes), c=notes).route(envelope)
    assert seen == [envelope] * 3
    assert len({id(each) for each in seen}) == 3


@pytest.mark.parametrize("handle", [ok({"n": 1}), fails("x"), raises(ValueError("x")), gives(3)])
def test_a3_one_candidate_under_fallback_is_as_good_as_direct(handle: Handle) -> None:
    alone, straight = House(a=handle), House(a=handle)
    first = alone.route(task(trace_id="t"))
    second = straight.route(task("direct", trace_id="t"))
    for response in (first, second):
        response.metadata.pop("timestamp")
    assert first == second


# -- A4: failure ----------------------------------------------------------------------------------


def test_a4_when_all_fail_the_last_error_comes_back_unmodified() -> None:
    last = ErrorInfo(ErrorCode.RATE_LIMIT, "the last", True, {"wait": 3})
    house = House(a=raises(ValueError("x")), b=fails(), c=gives(AgentResponse.failure(last)))
    response = house.route()
    assert response.error is last
    assert (response.status, response.payload, response.version) == ("error", None, "1.0")
    assert response.decision_path == ("a", "b", "c")


@pytest.mark.parametrize(
    ("problem", "message"),
    [(ValueError("bad"), "bad"), (TimeoutError(), "TimeoutError"), (KeyError("k"), "'k'")],
)
@pytest.mark.parametrize("colour", [lambda handle: handle, later])
def test_a4_an_exception_becomes_an_internal_error_with_its_text(
    problem: Exception, message: str, colour: Callable[[Handle], Handle]
) -> None:
    response = House(a=colour(raises(problem))).route()
    kind = type(problem).__name__
    assert response.error == ErrorInfo(
        ErrorCode.INTERNAL_AGENT_ERROR, message, False, {"type": kind}
    )


def test_a4_an_exception_that_cannot_be_printed_is_known_by_its_type() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    response = House(a=raises(Mute())).route()
    assert response.error is not None
    assert response.error.message == "Mute"


class Odd:
    pass


@pytest.mark.parametrize(
    "garbage",
    [None, "text", 7, {"status": "success", "payload": 1}, {"status": "error"}, Odd(), [], ok],
)
@pytest.mark.parametrize("colour", [lambda handle: handle, later])
def test_a4_what_is_no_response_is_a_failure_and_advances(
    garbage: object, colour: Callable[[Handle], Handle]
) -> None:
    house = House(a=colour(gives(garbage)), b=ok("b"))
    assert house.route().payload == "b"
    (first, _) = house.record.ends
    assert first.error.code is ErrorCode.INTERNAL_AGENT_ERROR
    assert type(garbage).__name__ in first.error.message


@pytest.mark.parametrize(
    "make",
    [
        lambda: AgentResponse(status="error"),
        lambda: AgentResponse(status="success", error=error()),
        lambda: AgentResponse(status="fine"),
        lambda: AgentResponse(status="error", error="text"),  # type: ignore[arg-type]
        lambda: AgentResponse(status="error", error=error(), payload="both"),
        lambda: AgentResponse(metadata=None),  # type: ignore[arg-type]
        lambda: ErrorInfo("NO_SUCH_CODE", "x"),  # type: ignore[arg-type]
        lambda: AgentResponse.failure("x"),  # type: ignore[arg-type]
    ],
)
def test_a4_a_response_that_contradicts_itself_cannot_be_made_and_fails_its_agent(
    make: Callable[[], AgentResponse],
) -> None:
    with pytest.raises((ValueError, TypeError)):
        make()
    house = House(a=lambda envelope: make(), b=ok("b"))
    assert house.route().payload == "b"


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), SystemExit(3), asyncio.CancelledError()])
@pytest.mark.parametrize("colour", [lambda handle: handle, later])
@pytest.mark.parametrize("strategy", ["fallback", "direct", "broadcast", "parallel"])
@pytest.mark.parametrize("blocking", [True, False])
def test_a4_interrupts_exits_and_cancellation_pass_through(
    problem: BaseException, colour: Callable[[Handle], Handle], strategy: str, blocking: bool
) -> None:
    house = House(a=colour(raises(problem)), b=ok(), require_determinism=False)
    route = house.router.route_sync if blocking else house.route
    with pytest.raises(type(problem)):
        route(task(strategy))
    house.router.close()
    assert house.span.error == "cancelled"


@pytest.mark.parametrize("wrong", [None, {}, "task", Odd()])
def test_a4_an_envelope_that_is_none_is_refused_in_a_response(wrong: object) -> None:
    house = House(a=ok())
    response = run(house.router.route(wrong))  # type: ignore[arg-type]
    assert response.error is not None
    assert response.error.code is ErrorCode.VALIDATION_ERROR
    assert (house.calls, house.span.agent) == ([], "router")


def test_a4_a_payload_that_cannot_be_copied_is_a_routing_error_and_nobody_is_asked() -> None:
    house = House(a=ok())
    response = house.route(task(payload={"lock": Lock()}))
    assert response.error is not None
    assert response.error.code is ErrorCode.ROUTING_ERROR
    assert house.calls == []


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
    house = House(a=ok("a"), b=ok("b"), require_determinism=False)
    assert house.route(task("parallel")).payload == "a"


def test_a6_a_race_that_all_lose_gives_the_failure_that_came_last() -> None:
    house = House(a=later(later(fails("a"))), b=fails("b"), require_determinism=False)
    response = house.route(task("parallel"))
    assert response.error is not None
    assert response.error.message == "a"


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


# -- A9: the span ---------------------------------------------------------------------------------


def test_a9_one_span_tells_of_a_success() -> None:
    house = House(a=fails(), b=ok())
    house.route(task(trace_id="t-1"))
    span = house.span
    assert (span.agent, span.intent, span.status, span.error) == ("b", TASK, "ok", None)
    assert (span.trace_id, span.strategy, span.attempts) == ("t-1", "fallback", 2)
    assert span.latency_ms >= 0


def test_a9_one_span_tells_of_exhaustion_with_the_agent_that_had_the_last_word() -> None:
    house = House(a=fails("a"), b=fails("b"))
    response = house.route()
    span = house.span
    assert (span.agent, span.status, span.error, span.attempts) == ("b", "error", "b", 2)
    assert (response.metadata["agent"], response.decision_path) == ("b", ("a", "b"))


def test_a9_the_response_names_agent_trace_and_time_unless_the_agent_did() -> None:
    house = House(a=gives(AgentResponse.success(metadata={"agent": "me", "cost": 3})))
    metadata = house.route(task(trace_id="t-2")).metadata
    assert (metadata["agent"], metadata["cost"], metadata["trace_id"]) == ("me", 3, "t-2")
    assert isinstance(metadata["timestamp"], float)


def test_a9_a_missing_trace_id_is_made_up_and_the_callers_envelope_stays_as_it_is() -> None:
    seen: list[str] = []

    def notes(envelope: IntentEnvelope) -> AgentResponse:
        seen.append(envelope.metadata.trace_id)
        return AgentResponse.failure(error())

    house = House(a=notes, b=notes)
    bare = IntentEnvelope(intent=task().intent, routing=task().routing)
    response = house.route(bare)
    (made,) = set(seen)
    assert made
    assert response.metadata["trace_id"] == house.span.trace_id == made
    assert bare.metadata.trace_id == ""


# -- A10: the record (replay is in test_agents_replay) --------------------------------------------


def test_a10_every_attempt_is_in_the_record() -> None:
    house = House(a=fails("no luck"), b=ok())
    house.route()
    assert str(house.record).splitlines() == [
        "1 RECEIVED fallback",
        "2 START a",
        "3 END a error AGENT_ERROR: no luck",
        "4 TRIGGERED a -> b",
        "5 START b",
        "6 END b success",
        "7 DECISION b fallback success at index 1",
        "8 FINAL b success",
    ]


# -- A11: copies ----------------------------------------------------------------------------------


def test_a11_a_failing_agents_edits_never_reach_the_next_or_the_caller() -> None:
    seen: list[object] = []

    def vandal(envelope: IntentEnvelope) -> AgentResponse:
        seen.append(repr(envelope.payload))
        assert isinstance(envelope.payload, dict)
        envelope.payload["list"].append("edited")
        envelope.payload["list"][1]["deep"].append("edited")
        envelope.payload["set"].add(9)
        envelope.payload["extra"] = True
        return AgentResponse.failure(error())

    payload = {"list": [1, {"deep": [2]}], "set": {3}}
    original = repr(payload)
    House(a=vandal, b=later(vandal), c=vandal).route(task(payload=payload))
    assert seen == [original] * 3
    assert repr(payload) == original


def test_a11_the_caller_editing_during_a_route_changes_nothing() -> None:
    payload = {"n": 1}
    seen: list[object] = []

    def notes(envelope: IntentEnvelope) -> AgentResponse:
        seen.append(envelope.payload)
        payload["n"] += 1
        return AgentResponse.failure(error())

    House(a=notes, b=notes).route(task(payload=payload))
    assert seen == [{"n": 1}, {"n": 1}]


def test_a11_an_envelope_cannot_be_changed() -> None:
    envelope = task()
    with pytest.raises(AttributeError):
        envelope.payload = 3  # type: ignore[misc]
    with pytest.raises(AttributeError):
        envelope.routing.strategy = "direct"  # type: ignore[misc]


# -- A12: colours and watchers (language models are in test_agents_models) ------------------------


@pytest.mark.parametrize("colour", [lambda handle: handle, later])
def test_a12_sync_and_async_agents_both_work(colour: Callable[[Handle], Handle]) -> None:
    house = House(a=colour(fails()), b=colour(ok("b")))
    assert house.route().payload == "b"
    assert house.router.route_sync(task()).payload == "b"
    house.router.close()


def test_a12_an_object_with_an_async_call_works() -> None:
    class Caller:
        async def __call__(self, envelope: IntentEnvelope) -> AgentResponse:
            return AgentResponse.success("called")

    assert House(a=Caller()).route().payload == "called"


class Broken(Middleware):
    def before_route(self, envelope: IntentEnvelope) -> IntentEnvelope | None:
        raise RuntimeError("before")

    def after_route(self, envelope: IntentEnvelope, response: AgentResponse) -> None:
        raise RuntimeError("after")

    def on_error(self, envelope: IntentEnvelope, error: ErrorInfo) -> None:
        raise RuntimeError("error")


def broken(_: object) -> None:
    raise RuntimeError("broken")


@pytest.mark.parametrize("last", [ok("c"), fails("c")])
def test_a12_failures_of_watchers_change_nothing_and_can_be_looked_at(last: Handle) -> None:
    house = House(a=fails(), b=raises(ValueError()), c=last)
    watched = Router(
        house.registry, sinks=[broken, house.sink], recorder=broken, middleware=[Broken()]
    )
    plain = run(Router(house.registry).route(task()))
    told = run(watched.route(task()))
    assert (plain.status, plain.payload, plain.error, plain.decision_path) == (
        told.status,
        told.payload,
        told.error,
        told.decision_path,
    )
    assert house.span.agent == "c"
    where = [mishap.where for mishap in watched.mishaps]
    errors = [] if told.ok else ["on_error"]
    assert where == ["before_route", "sink", "recorder", "after_route", *errors]


def test_a_route_that_is_cancelled_has_a_span_and_a_record_of_how_far_it_came() -> None:
    async def story() -> House:
        hanging = asyncio.Event()

        async def hangs(envelope: IntentEnvelope) -> AgentResponse:
            hanging.set()
            await asyncio.Event().wait()
            raise AssertionError

        house = House(a=fails(), b=hangs, c=ok())
        route = asyncio.create_task(house.router.route(task()))
        await until(hanging.is_set)
        route.cancel()
        with pytest.raises(asyncio.CancelledError):
            await route
        return house

    house = run(story())
    assert house.calls == ["a", "b"]
    assert (house.span.agent, house.span.status, house.span.error) == ("b", "error", "cancelled")
    assert [str(event) for event in house.record.events][-2:] == [
        "6 END b cancelled",
        "7 FINAL b cancelled",
    ]
    assert house.record.response is None
