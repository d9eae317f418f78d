"""JSON in and out: what is written is read back, and what is wrong is named."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.agents.rig import House, fails, ok, task
from understudy.agents import (
    AgentResponse,
    ErrorCode,
    ErrorInfo,
    Intent,
    IntentContext,
    IntentEnvelope,
    IntentMetadata,
    Priority,
    Routing,
    Unreadable,
    read_envelope,
    read_record,
    read_response,
    replay,
    write,
)

TEXT = st.text(max_size=8)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
TIMES = st.floats(0, 1e10)
NAMES = st.lists(TEXT, max_size=3).map(tuple)
ENVELOPES = st.builds(
    IntentEnvelope,
    intent=st.builds(Intent, TEXT, TEXT),
    payload=JSON,
    context=st.builds(IntentContext, TEXT, TIMES, st.sampled_from(Priority), NAMES),
    metadata=st.builds(IntentMetadata, TEXT, TEXT, NAMES),
    routing=st.builds(Routing, st.none() | TEXT, st.none() | TEXT),
)
DETAILS = st.dictionaries(TEXT, JSON, max_size=3)
ERRORS = st.builds(ErrorInfo, st.sampled_from(ErrorCode), TEXT, st.booleans(), DETAILS)
SUCCESSES = st.builds(AgentResponse, payload=JSON, metadata=DETAILS, decision_path=NAMES)
FAILURES = st.builds(
    AgentResponse, status=st.just("error"), error=ERRORS, metadata=DETAILS, decision_path=NAMES
)


@given(ENVELOPES)
def test_an_envelope_survives_the_wire(envelope: IntentEnvelope) -> None:
    assert read_envelope(write(envelope)) == envelope


@given(SUCCESSES | FAILURES)
def test_a_response_survives_the_wire(response: AgentResponse) -> None:
    assert read_response(write(response)) == response


@pytest.mark.parametrize("strategy", ["fallback", "direct", "broadcast", "parallel", "fancy"])
def test_a_record_survives_the_wire(strategy: str) -> None:
    house = House(a=fails(), b=ok({"n": [1, None]}))
    house.route(task(strategy, payload={"deep": [{}]}))
    again = read_record(write(house.record))
    assert again == house.record
    assert again.events == house.record.events


def test_the_envelope_on_the_wire_has_these_fields() -> None:
    envelope = IntentEnvelope.new(
        "sum",
        {"n": 1},
        version="2.0",
        strategy="fallback",
        target_agent="a",
        trace_id="t",
        context=IntentContext("cli", 12.5, Priority.HIGH, ("x",)),
    )
    wire = json.loads(write(envelope))
    request_id = wire["metadata"].pop("request_id")
    assert request_id
    assert wire == {
        "version": "1.0",
        "intent": {"name": "sum", "version": "2.0"},
        "payload": {"n": 1},
        "context": {"source": "cli", "timestamp": 12.5, "priority": "high", "tags": ["x"]},
        "metadata": {"trace_id": "t", "identity_chain": []},
        "routing": {"strategy": "fallback", "target_agent": "a"},
    }


def test_an_intent_alone_is_an_envelope_and_is_routed_directly() -> None:
    envelope = read_envelope(b'{"intent": {"name": "task"}}')
    assert envelope.intent == Intent("task", "1.0")
    house = House(a=fails(), b=ok())
    assert house.route(envelope).decision_path == ("a",)


@pytest.mark.parametrize(
    ("body", "field", "problem"),
    [
        (b"", "", "not JSON"),
        (b"nonsense", "", "not JSON"),
        (b'{"intent": {"name": "x"}} tail', "", "not JSON"),
        (b'{"intent": {"name": "\xff"}}', "", "not JSON"),
        (
            b'{"intent": {"name": "x"}, "payload": ' + b"[" * 100_000,
            "",
            "nested too deeply",
        ),
        (b"[]", "", "expected `object`, got `array`"),
        (b"{}", "intent", "missing required field"),
        (b'{"intent": "x"}', "intent", "expected `object`, got `str`"),
        (b'{"intent": {}}', "intent.name", "missing required field"),
        (b'{"intent": {"name": 3}}', "intent.name", "expected `str`, got `int`"),
        (
            b'{"intent": {"name": "x"}, "routing": {"fallbackAgents": []}}',
            "routing.fallbackAgents",
            "unknown field",
        ),
        (
            b'{"intent": {"name": "x"}, "routing": {"strategy": 3}}',
            "routing.strategy",
            "got `int`",
        ),
        (
            b'{"intent": {"name": "x"}, "context": {"priority": "urgent"}}',
            "context.priority",
            "'urgent'",
        ),
        (b'{"intent": {"name": "x"}, "context": {"tags": ["a", 1]}}', "context.tags[1]", "int"),
        (b'{"intent": {"name": "x"}, "retries": 3}', "retries", "unknown field"),
        (b'{"intent": {"name": "x"}, "version": "2.0"}', "version", "'2.0' is not spoken here"),
    ],
)
def test_a_wrong_envelope_names_the_wrong_field(body: bytes, field: str, problem: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read_envelope(body)
    assert caught.value.field == field
    assert problem in caught.value.problem


@given(st.binary(max_size=40) | JSON.map(lambda value: json.dumps(value).encode()))
def test_no_bytes_make_the_reader_raise_anything_else(body: bytes) -> None:
    for read in (read_envelope, read_response, read_record):
        try:
            read(body)
        except Unreadable:
            continue


def test_a_code_from_the_wire_that_nobody_knows_becomes_an_internal_error_with_a_note() -> None:
    body = b'{"status": "error", "error": {"code": "FLOOD", "message": "wet", "retryable": true}}'
    error = read_response(body).error
    assert error == ErrorInfo(
        ErrorCode.INTERNAL_AGENT_ERROR, "wet", True, {"unknown_code": "FLOOD"}
    )


class Weather(StrEnum):
    FLOOD = "FLOOD"


def test_a_code_is_its_text_however_it_is_written() -> None:
    assert ErrorInfo("RATE_LIMIT", "x").code is ErrorCode.RATE_LIMIT
    assert type(ErrorInfo(Weather.FLOOD, "x").code) is str
    assert ErrorInfo(Weather.FLOOD, "x") == ErrorInfo("FLOOD", "x")


def test_a_record_keeps_a_code_that_nobody_knows_and_replays() -> None:
    house = House(a=fails(code=Weather.FLOOD), b=fails(code=Weather.FLOOD))  # type: ignore[arg-type]
    house.route()
    record = read_record(write(house.record))
    assert record == house.record
    assert replay(record).same


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_has_not_is_said_and_not_sent_as_null(number: float) -> None:
    error = ErrorInfo(ErrorCode.AGENT_ERROR, "x", details={"n": number})
    for value in (
        task(payload=[{"n": number}]),
        AgentResponse.success({"n": (number,)}),
        AgentResponse.success(metadata={"n": number}),
        AgentResponse.failure(error),
    ):
        with pytest.raises(ValueError, match="neither NaN nor infinities"):
            write(value)


def test_a_record_is_not_lost_over_a_number() -> None:
    house = House(a=ok(float("nan")))
    house.route(task(payload=[float("inf")]))
    again = read_record(write(house.record))
    assert (again.envelope.payload, again.events) == ([None], house.record.events)


def test_a_record_is_not_lost_over_a_value_that_json_has_not() -> None:
    house = House(a=fails(), b=ok({"session": Session()}))
    response = house.route(task(payload={"file": PurePosixPath("/a")}))
    again = read_record(write(house.record))
    assert (again.path, again.events) == (("a", "b"), house.record.events)
    assert again.envelope.payload == {"file": {"not_written": "PurePosixPath"}}
    assert again.response is not None
    assert again.response.payload == {"session": {"not_written": "Session"}}
    with pytest.raises(TypeError, match="Session"):
        write(response)


class Session:
    """Something alive."""


@pytest.mark.parametrize(
    "body",
    [
        b'{"status": "success", "error": {"code": "AGENT_ERROR"}}',
        b'{"status": "error"}',
        b'{"status": "splendid"}',
        b'{"status": "error", "payload": 1, "error": {"code": "AGENT_ERROR"}}',
    ],
)
def test_a_response_from_the_wire_that_contradicts_itself_is_unreadable(body: bytes) -> None:
    with pytest.raises(Unreadable, match="status"):
        read_response(body)


def test_a_response_may_have_fields_of_a_later_day() -> None:
    assert read_response(b'{"status": "success", "payload": 1, "mood": "good"}').payload == 1
