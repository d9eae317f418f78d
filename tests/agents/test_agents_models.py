"""Language model chains as agents: an exhausted chain is one failed agent."""

from __future__ import annotations

import pytest

from tests.agents.rig import House, agent, ok, run, task
from understudy import Registry
from understudy.agents import (
    AgentRegistry,
    ErrorCode,
    IntentEnvelope,
    ModelAgent,
    Recorder,
    Router,
)
from understudy.messages.response import Response
from understudy.testing import Fake, Http, ManualClock


def models(fake: Fake) -> Registry:
    registry = Registry(env={}, clock=ManualClock())
    registry.register_provider(fake)
    return registry


def test_a_chain_that_answers_is_a_success_that_names_its_model() -> None:
    fake = Fake("p").script("x", 503, 503).script("y", "a summary")
    one = ModelAgent("writer", "task", models(fake).parse("p/x, p/y"))
    response = House(one).route(task(payload={"text": "long"}))
    assert response.payload == {"text": "a summary", "model": "p/y"}
    assert response.decision_path == ("writer",)


def test_a12_exhaustion_is_one_agent_failure_and_the_next_agent_is_asked() -> None:
    fake = Fake("p").script("x", 503, 503).script("y", 503, 503)
    house = House(ModelAgent("first", "task", models(fake).parse("p/x, p/y")), agent("second"))
    response = house.route(task(payload="hi"))
    assert (response.payload, response.decision_path) == ("second", ("first", "second"))
    failed = house.record.ends[0].error
    assert (failed.code, failed.retryable) == (ErrorCode.AGENT_UNAVAILABLE, True)
    assert failed.details["attempts"] == ["p/x=transient"] * 2 + ["p/y=transient"] * 2
    assert failed.details["retry_after"] == 5.0


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (401, "", ErrorCode.UNAUTHORIZED),
        (400, "bad request", ErrorCode.AGENT_ERROR),
        (
            400,
            '{"error": {"code": "context_length_exceeded", "message": "too long"}}',
            ErrorCode.PAYLOAD_TOO_LARGE,
        ),
    ],
)
def test_a_chain_that_stops_says_why_in_a_code(status: int, body: str, code: ErrorCode) -> None:
    fake = Fake("p").script("x", Http(status, body))
    house = House(ModelAgent("a", "task", models(fake).parse("p/x, p/y")))
    response = house.route(task(payload="hi"))
    assert response.error is not None
    assert response.error.code is code
    assert response.error.details["target"] == "p/x"
    assert fake.count("y") == 0


@pytest.mark.parametrize(
    ("payload", "prompt"),
    [
        ("as it is", "as it is"),
        ({"prompt": "this", "text": "not this"}, "this"),
        ({"text": "this"}, "this"),
        ({"n": 1}, '{"n":1}'),
        ([1, 2], "[1,2]"),
        (None, "null"),
    ],
)
def test_the_payload_becomes_a_prompt(payload: object, prompt: str) -> None:
    fake = Fake("p")
    House(ModelAgent("a", "task", models(fake).parse("p/x"))).route(task(payload=payload))
    ((_, request),) = fake.calls
    assert request.messages[0].text == prompt


def test_prompt_and_payload_can_be_made_otherwise() -> None:
    def ask(envelope: IntentEnvelope) -> str:
        return f"Summarise: {envelope.payload}"

    def answer(response: Response) -> object:
        return response.text.upper()

    fake = Fake("p").script("x", "short")
    one = ModelAgent("a", "task@*", models(fake).parse("p/x"), ask=ask, answer=answer)
    assert House(one).route(task(payload="it")).payload == "SHORT"
    assert fake.calls[0][1].messages[0].text == "Summarise: it"


def test_a_payload_that_makes_no_prompt_is_a_failure_like_any_other() -> None:
    house = House(ModelAgent("a", "task", models(Fake("p")).parse("p/x")), b=ok("b"))
    assert house.route(task(payload=object())).payload == "b"


def test_model_agents_answer_blocking_callers() -> None:
    recorder = Recorder()
    fake = Fake("p").script("x", "fine")
    registry = AgentRegistry([ModelAgent("a", "task", models(fake).parse("p/x"))])
    router = Router(registry, recorder=recorder)
    assert router.route_sync(task(payload="hi")).ok
    router.close()
    assert run(router.route(task(payload="hi"))).ok
