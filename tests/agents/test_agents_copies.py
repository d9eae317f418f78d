"""Who may edit what it was given: everybody, without anybody else noticing (A10, A11, ADR 13)."""

from __future__ import annotations

from threading import Lock

import pytest

from tests.agents.rig import House, fails, gives, ok, raises, run, task
from understudy.agents import (
    AgentResponse,
    ErrorCode,
    ErrorInfo,
    IntentEnvelope,
    Middleware,
    Record,
    Recorder,
    Router,
    replay,
)


def failure() -> AgentResponse:
    error = ErrorInfo(ErrorCode.AGENT_ERROR, "no", details={"deep": {}})
    return AgentResponse.failure(error, metadata={"deep": {}})


def success() -> AgentResponse:
    return AgentResponse.success({"deep": {}}, metadata={"deep": {}})


def scrawl(response: AgentResponse) -> None:
    """Edit all of it that can be edited, at every depth."""
    everything = [response.metadata, response.payload]
    if response.error is not None:
        everything.append(response.error.details)
    for each in everything:
        if isinstance(each, dict):
            each["deep"]["scrawl"] = True
            each["scrawl"] = True


class Vandal(Middleware):
    def after_route(self, envelope: IntentEnvelope, response: AgentResponse) -> None:
        scrawl(response)

    def on_error(self, envelope: IntentEnvelope, error: ErrorInfo) -> None:
        error.details["deep"] = "scrawl"


def spoils(record: Record) -> None:
    assert isinstance(record.envelope.payload, dict)
    record.envelope.payload["scrawl"] = True
    assert record.response is not None
    scrawl(record.response)
    for end in record.ends:
        if end.error is not None:
            end.error.details["scrawl"] = True


@pytest.mark.parametrize("strategy", ["fallback", "broadcast"])
def test_an_answer_given_again_and_again_is_the_same_for_everybody(strategy: str) -> None:
    answer = success()
    before, recorder = repr(answer), Recorder()
    registry = House(a=gives(failure()), b=gives(answer)).registry
    router = Router(registry, recorder=recorder, middleware=[Vandal()])
    envelope = task(strategy)
    first = run(router.route(envelope))
    scrawl(first)
    second = run(router.route(envelope))
    assert "scrawl" not in repr((second, recorder.records))
    assert repr(answer) == before


@pytest.mark.parametrize("answer", [success(), failure()])
def test_what_a_recorder_edits_reaches_neither_hooks_nor_caller_nor_agent(
    answer: AgentResponse,
) -> None:
    seen: list[str] = []

    class Reader(Middleware):
        def after_route(self, envelope: IntentEnvelope, response: AgentResponse) -> None:
            seen.append(repr((envelope, response)))

    registry = House(a=gives(failure()), b=gives(answer)).registry
    router = Router(registry, recorder=spoils, middleware=[Reader()])
    response = run(router.route(task(payload={})))
    assert router.mishaps == ()
    assert "scrawl" not in repr((seen, response, answer))


def test_an_agent_that_edits_its_answer_while_others_are_asked_changes_nothing() -> None:
    answer = success()

    def later_on(envelope: IntentEnvelope) -> AgentResponse:
        scrawl(answer)
        return AgentResponse.failure(ErrorInfo(ErrorCode.AGENT_ERROR, "no"))

    response = House(a=gives(answer), b=later_on).route(task("broadcast"))
    assert response.payload == {"deep": {}}


CIRCLE: dict[str, object] = {}
CIRCLE["self"] = CIRCLE


@pytest.mark.parametrize("payload", [Lock(), CIRCLE])
def test_an_answer_that_cannot_be_copied_wins_and_is_recorded_with_the_reason(
    payload: object,
) -> None:
    house = House(a=fails(), b=ok(payload))
    response = house.route()
    assert (response.payload is payload, response.decision_path) == (True, ("a", "b"))
    assert house.router.mishaps == ()
    (name,) = house.record.response.payload
    assert (name, house.record.events[-1].status) == ("not_copied", "success")
    assert replay(house.record).same


def test_details_that_cannot_be_copied_reach_the_caller_and_leave_a_record() -> None:
    lock = Lock()
    error = ErrorInfo(ErrorCode.AGENT_ERROR, "no", details={"lock": lock})
    house = House(a=gives(AgentResponse.failure(error, metadata={"lock": lock})))
    response = house.route()
    assert response.error == error
    assert house.router.mishaps == ()
    kept = house.record.response
    assert (list(kept.error.details), list(kept.metadata["lock"])) == (["not_copied"],) * 2
    assert kept.metadata["agent"] == "a"


def test_what_is_alive_in_an_answer_is_handed_over_as_it_is() -> None:
    class Session:
        pass

    session = Session()
    response = House(a=ok({"session": session})).route()
    assert isinstance(response.payload, dict)
    assert response.payload["session"] is session


def test_an_envelope_that_was_refused_cannot_be_replayed() -> None:
    house = House(a=raises(AssertionError()))
    house.route(task(payload=Lock()))
    with pytest.raises(ValueError, match="was refused"):
        replay(house.record)
