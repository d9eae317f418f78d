"""Bodies that nobody should send: read, or refused with one of our errors, never anything else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_more import anthropic_requests, anthropic_responses, values
from strategies_others import (
    gemini_requests,
    gemini_responses,
    ollama_requests,
    ollama_responses,
)
from wire_rig import encoded, heard

from understudy.core.errors import InvalidRequest, ProviderError
from understudy.core.faults import Fault
from understudy.dialects.anthropic import Anthropic
from understudy.dialects.base import Dialect, Garbled, Truncated, WireError
from understudy.dialects.calls import spelled
from understudy.dialects.gemini import Gemini
from understudy.dialects.ollama import Ollama
from understudy.messages.parts import Json
from understudy.messages.request import Request
from understudy.messages.response import Event, Response, TextDelta

DIALECTS: dict[str, Dialect] = {"anthropic": Anthropic(), "gemini": Gemini(), "ollama": Ollama()}
every_dialect = pytest.mark.parametrize("name", DIALECTS)
REQUESTS: dict[str, st.SearchStrategy[Request]] = {
    "anthropic": anthropic_requests(),
    "gemini": gemini_requests(),
    "ollama": ollama_requests(),
}
RESPONSES: dict[str, st.SearchStrategy[Response]] = {
    "anthropic": anthropic_responses(),
    "gemini": gemini_responses(),
    "ollama": ollama_responses(),
}


@st.composite
def twisted(draw: st.DrawFn, value: Any) -> Any:
    """The value with something else somewhere inside."""
    if isinstance(value, dict) and value and draw(st.integers(0, 4)):
        key = draw(st.sampled_from(sorted(value)))
        return {**value, key: draw(twisted(value[key]))}
    if isinstance(value, list) and value and draw(st.integers(0, 4)):
        at = draw(st.integers(0, len(value) - 1))
        return [*value[:at], draw(twisted(value[at])), *value[at + 1 :]]
    return draw(st.one_of(st.none(), values))


@every_dialect
@given(data=st.data())
def test_a_twisted_request_is_read_or_refused_by_name(name: str, data: st.DataObject) -> None:
    dialect = DIALECTS[name]
    body = dialect.write_request(data.draw(REQUESTS[name]), "m", stream=True)
    try:
        found = dialect.read_request(encoded(data.draw(twisted(body))), "m")
    except InvalidRequest:
        return
    try:
        json.dumps(dialect.write_request(found.request, "m", stream=False))
    except ProviderError as error:  # what is left of it has no form on this wire
        assert error.fault is Fault.UNSUPPORTED  # noqa: PT017 - or else it is written


@every_dialect
@given(data=st.data())
def test_a_twisted_answer_is_read_or_refused(name: str, data: st.DataObject) -> None:
    dialect = DIALECTS[name]
    body = data.draw(twisted(dialect.write_response(data.draw(RESPONSES[name]), "m")))
    try:
        response = dialect.read_response(encoded(body))
    except (WireError, Garbled):
        pass
    else:
        json.dumps(dialect.write_response(response, "m"))
    assert isinstance(dialect.read_error(encoded(body)), str)


@every_dialect
@given(data=st.data())
def test_a_stream_with_a_hole_is_told_or_refused_alike_in_any_slices(
    name: str, data: st.DataObject
) -> None:
    dialect = DIALECTS[name]
    writer = dialect.writer("m")
    body = writer.write_event(TextDelta("hello")) + writer.write_event(data.draw(RESPONSES[name]))
    at = data.draw(st.integers(0, len(body)))
    hole = (
        body[:at]
        + data.draw(st.binary(max_size=3))
        + body[data.draw(st.integers(at, len(body))) :]
    )

    def told(size: int) -> tuple[list[Event], str]:
        reader, events = dialect.reader(), list[Event]()
        try:
            for start in range(0, len(hole), size):
                events += reader.feed(hole[start : start + size])
            events += reader.end()
        except (Garbled, Truncated) as error:
            return events, type(error).__name__
        return events, str(reader.failure)

    assert told(len(hole) or 1) == told(1) == told(7)


@every_dialect
@given(body=st.binary(max_size=60))
def test_any_bytes_are_no_answer_and_no_surprise(name: str, body: bytes) -> None:
    dialect = DIALECTS[name]
    with pytest.raises((Garbled, Truncated)):
        heard(dialect, b"\x00" + body)
    with pytest.raises(Garbled):
        dialect.read_response(b"\x00" + body)
    assert isinstance(dialect.read_error(b"\x00" + body), str)


@every_dialect
@pytest.mark.parametrize("depth", [90, 150, 900, 9000])
def test_deep_nesting_is_read_or_refused(name: str, depth: int) -> None:
    deep = b'{"properties":{"a":' * depth + b"{}" + b"}}" * depth
    flat = b'{"a":' * depth + b"{}" + b"}" * depth
    bodies = {
        "anthropic": b'{"model":"m","messages":[{"role":"assistant","content":[{"type":"tool_use",'
        b'"id":"x","name":"f","input":%b}]}],"tools":[{"name":"f","input_schema":%b}]}',
        "gemini": b'{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f",'
        b'"args":%b}}]}],'
        b'"tools":[{"functionDeclarations":[{"name":"f","parameters":%b}]}]}',
        "ollama": b'{"model":"m","messages":[{"role":"assistant","tool_calls":'
        b'[{"function":{"name":"f",'
        b'"arguments":%b}}]}],"format":%b}',
    }
    body = bodies[name] % (flat, deep)
    if depth < 200:
        assert DIALECTS[name].read_request(body, "m").request.messages
    else:
        with pytest.raises(InvalidRequest):
            DIALECTS[name].read_request(body, "m")


def test_arguments_nested_too_deeply_to_write_are_refused() -> None:
    deep: Json = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(InvalidRequest, match="deep"):
        spelled(deep)


@every_dialect
def test_a_proxy_s_own_error_under_status_200_is_an_error(name: str) -> None:
    dialect = DIALECTS[name]
    for body in (b'{"message": "Too many requests"}', b'{"detail": [{"msg": "no"}]}'):
        with pytest.raises(WireError):
            dialect.read_response(body)
        events, reader = heard(dialect, body)
        assert events == []
        assert reader.failure is not None
