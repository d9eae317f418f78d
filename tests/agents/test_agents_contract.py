"""A1 to A4 of the contract, and what the behaviours of the source system add to them."""

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
from understudy.agents import (
    Agent,
    AgentRegistry,
    AgentResponse,
    Capability,
    ErrorCode,
    ErrorInfo,
    Intent,
    IntentContext,
    IntentEnvelope,
    Router,
    Routing,
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


CIRCLE: list[object] = []
CIRCLE.append(CIRCLE)
DEEP: list[object] = []
for _ in range(3000):
    DEEP = [DEEP]


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
        lambda: ErrorInfo(3, "x"),  # type: ignore[arg-type]
        lambda: ErrorInfo(ErrorCode.AGENT_ERROR, None),  # type: ignore[arg-type]
        lambda: ErrorInfo(ErrorCode.AGENT_ERROR, "x", details=None),  # type: ignore[arg-type]
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


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"intent": None}, "intent"),
        ({"intent": "do"}, "intent"),
        ({"intent": Intent(["do"])}, "intent.name"),  # type: ignore[arg-type]
        ({"context": IntentContext(tags="t")}, "context.tags"),  # type: ignore[arg-type]
        ({"context": IntentContext(priority="now")}, "context.priority"),  # type: ignore[arg-type]
        ({"metadata": None}, "metadata"),
        ({"routing": Routing("direct", 3)}, "routing.target_agent"),  # type: ignore[arg-type]
        ({"routing": Odd()}, ""),
        ({"payload": {"lock": Lock()}}, "payload"),
        ({"payload": CIRCLE}, "payload"),
        ({"payload": DEEP}, "payload"),
    ],
)
def test_a4_a_wrong_field_of_an_envelope_is_named_and_nobody_is_asked(
    change: dict[str, object], field: str
) -> None:
    house = House(a=ok())
    response = house.route(task(trace_id="t").having(**change))
    assert response.error is not None
    assert response.error.code is ErrorCode.VALIDATION_ERROR
    assert response.error.details == {"field": field}
    assert response.error.message.startswith(field)
    assert response.metadata["trace_id"] == house.span.trace_id != ""
    assert house.calls == []


def test_a4_a_payload_that_is_refused_leaves_the_rest_of_the_envelope_to_tell_of() -> None:
    house = House(a=ok())
    response = house.route(task(payload=Lock(), trace_id="t"))
    assert (house.span.intent, house.span.trace_id) == (TASK, "t")
    assert (house.record.envelope.payload, response.metadata["trace_id"]) == (None, "t")


def test_texts_of_a_class_of_ones_own_are_texts() -> None:
    class Name(str):
        pass

    envelope = IntentEnvelope.new(Name(TASK), trace_id=Name("t"))
    assert House(a=ok()).route(envelope).ok


class Unbound:
    """As a proxy without a context: nobody may even ask what it is."""

    @property
    def __class__(self):  # type: ignore[no-untyped-def, override]
        raise RuntimeError("working outside of context")


class Liar:
    @property
    def __class__(self):  # type: ignore[no-untyped-def, override]
        return AgentResponse


@pytest.mark.parametrize("kind", [Unbound, Liar])
@pytest.mark.parametrize("colour", [lambda handle: handle, later])
@pytest.mark.parametrize("strategy", ["fallback", "broadcast"])
def test_a4_what_lies_about_its_class_is_a_failure_and_advances(
    kind: type[object], colour: Callable[[Handle], Handle], strategy: str
) -> None:
    house = House(a=colour(gives(kind())), b=ok("b"))
    assert house.route(task(strategy)).payload == "b"
    assert house.record.ends[0].error.code is ErrorCode.INTERNAL_AGENT_ERROR


@pytest.mark.parametrize("colour", [lambda handle: handle, later])
def test_a4_a_code_of_ones_own_comes_back_as_it_was_given(
    colour: Callable[[Handle], Handle],
) -> None:
    def floods(envelope: IntentEnvelope) -> AgentResponse:
        return AgentResponse.failure(ErrorInfo("FLOOD", "wet", True, {"cm": 3}))

    last = House(a=fails(), b=colour(floods)).route().error
    assert last is not None
    assert (last.code, last.message, last.details) == ("FLOOD", "wet", {"cm": 3})
