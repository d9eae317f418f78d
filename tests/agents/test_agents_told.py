"""A9 to A12 of the contract: spans, records, copies, and those who only watch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

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
from tests.rig import until
from understudy.agents import (
    AgentResponse,
    ErrorInfo,
    IntentContext,
    IntentEnvelope,
    IntentMetadata,
    Middleware,
    Router,
)
from understudy.agents.agent import Handle

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


def test_a11_lists_where_tuples_belong_are_nobodys_to_edit() -> None:
    seen: list[object] = []

    def vandal(envelope: IntentEnvelope) -> AgentResponse:
        seen.append((envelope.context.tags, envelope.metadata.identity_chain))
        return AgentResponse.failure(error())

    tags, names = ["t"], ["n"]
    context = IntentContext(tags=tags)  # type: ignore[arg-type]
    metadata = IntentMetadata("r", "t", names)  # type: ignore[arg-type]
    house = House(a=vandal, b=vandal)
    house.route(task().having(context=context, metadata=metadata))
    assert seen == [(("t",), ("n",))] * 2


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
