"""Errors inside errors, in every shape; bodies that echo, and bodies that mean harm."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.core.classify import classify
from understudy.core.faults import Fault
from understudy.core.rules import Rule
from understudy.core.rules_codes import STRONG
from understudy.core.rules_says import SPOKEN
from understudy.core.rules_special import PAIRS
from understudy.core.rules_weak import WORDS


def fault(**evidence: object) -> Fault:
    return classify(**evidence).fault  # type: ignore[arg-type]


def test_a_router_has_judged_what_its_upstream_said() -> None:
    raw = '{"error":{"type":"invalid_request_error","code":400}}'
    chunk = {
        "error": {"code": 502, "message": "Provider returned error", "metadata": {"raw": raw}}
    }
    body = f"data: {json.dumps(chunk)}\n\n"
    assert fault(status=200, body=body, stream=True) is Fault.TRANSIENT


def test_a_router_that_sends_5xx_is_believed_over_what_it_quotes() -> None:
    quoted = {"raw": 'HTTP 400: {"error":{"code":400,"message":"bad"}}', "provider_name": "X"}
    body = {"error": {"code": 502, "message": "Provider returned error", "metadata": quoted}}
    assert fault(status=502, body=body) is Fault.TRANSIENT


@pytest.mark.parametrize(
    "message",
    [
        'litellm.BadRequestError: AnthropicException - {"error":{"message":"prompt is too long"}}',
        "Error code: 400 - {'error': {'message': 'x', 'code': 'context_length_exceeded'}}",
        '{"error":{"message":"{\\"error\\":{\\"code\\":\\"context_length_exceeded\\"}}"}}',
        '[{"error":{"code":400,"message":"input token count exceeds the maximum"}}]',
        'Error from provider: {"object":"error","message":"x","code":3051}',
    ],
)
def test_errors_inside_messages_are_unwrapped(message: str) -> None:
    assert fault(status=400, body={"error": {"message": message}}) is Fault.CONTEXT_LENGTH
    assert fault(status=400, body=message) is Fault.CONTEXT_LENGTH


FRAME = b'\0\0:exception-type\x07\0\x13throttlingException\r{"message":"slower"}'


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (None, "<html><head><title>502 Bad Gateway</title></head></html>", Fault.TRANSIENT),
        (None, "<urlopen error [Errno -2] Name or service not known>", Fault.TRANSIENT),
        (200, "<html><body>Sign in</body></html>", Fault.UNKNOWN),
        (200, FRAME, Fault.RATE_LIMIT),
        (200, {"throttlingException": {"message": "slower"}}, Fault.RATE_LIMIT),
        (400, {"name": "ThrottlingException", "$fault": "client"}, Fault.RATE_LIMIT),
        (400, {"metadata": {"raw": {"data": '{"code":"invalid_api_key"}'}}}, Fault.AUTH),
        (400, {"code": "Client specified an invalid argument", "error": "x"}, Fault.PERMANENT),
        (403, {"code": "Out of credits, sorry", "error": "x"}, Fault.OUT_OF_CREDITS),
        (400, {"code": {"error": {"code": "invalid_api_key"}}, "type": True}, Fault.AUTH),
        (429, {"error": {"details": [{"metadata": {"quota_limit_value": "0"}}]}},
         Fault.OUT_OF_CREDITS),
        (400, {"error": {"message": "[1113][Insufficient funds]"}}, Fault.OUT_OF_CREDITS),
        (400, '"Api key is invalid"', Fault.AUTH),
        (200, {"Response": {"Error": {"Code": "AuthFailure.NoSuchId", "Message": "no"}}},
         Fault.AUTH),
        (200, {"header": {"code": 7, "message": "too many requests", "status": 2}},
         Fault.RATE_LIMIT),
        (200, 'data: {"status":"error","message":"prompt is too long"}\n\n', Fault.CONTEXT_LENGTH),
        (200, 'data: {"choices":[],"x_groq":{"error":"no capacity"}}\n\n', Fault.TRANSIENT),
        (400, {"code": "Throttling.SomeNewQuota", "message": "no"}, Fault.RATE_LIMIT),
        (None, "bad code: {'status_code': 400, ':exception-type': 'serviceUnavailableException'}",
         Fault.TRANSIENT),
        (None, 'InvalidArgument("no parts")', Fault.PERMANENT),
        (None, "HttpResponseError: (x) sorry\nCode: Unauthorized\nMessage: sorry", Fault.AUTH),
        (None, "错误 (429): 稍等", Fault.RATE_LIMIT),
        (None, "<403> sorry", Fault.AUTH),
    ],
)  # fmt: skip
def test_shapes_in_which_an_error_arrives(
    status: int | None, body: object, expected: Fault
) -> None:
    assert fault(status=status, body=body) is expected


def test_an_error_buried_too_deep_is_not_dug_up() -> None:
    body: dict[str, object] = {"code": "invalid_api_key"}
    for _ in range(50):
        body = {"error": body}
    assert fault(status=400, body=body) is Fault.PERMANENT


BODIES = st.one_of(
    st.binary(max_size=300),
    st.text(max_size=300),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "error",
                        "code",
                        "message",
                        "status",
                        "details",
                        "choices",
                        "data",
                        "detail",
                        "raw",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ),
)
HEADERS = st.one_of(
    st.none(),
    st.integers(),
    st.text(max_size=9),
    st.dictionaries(st.text(max_size=9) | st.binary(max_size=9), st.text(max_size=9), max_size=3),
    st.lists(st.tuples(st.binary(max_size=9), st.binary(max_size=9)), max_size=3),
    st.lists(st.integers(), max_size=3),
)


@given(BODIES, HEADERS, st.none() | st.integers(-5, 2000), st.text(max_size=40), st.booleans())
def test_any_evidence_gives_a_fault(
    body: object, headers: object, status: int | None, error: str, stream: bool
) -> None:
    arguments = {"status": status, "headers": headers, "body": body, "stream": stream}
    for form in (body, json.dumps(body) if not isinstance(body, bytes) else body):
        assert isinstance(fault(**{**arguments, "error": error, "body": form}), Fault)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 200_000,
        b'{"error":' * 20_000,
        b"[" * 60_000,
        b"9" * 200_000,
        b'{"error":{"code":' + b"9" * 9_000 + b"}}",
        b'{"error":{"code":' + b"9" * 4_000 + b',"retry_after":' + b"9" * 4_000 + b"}}",
        {"error": {"code": 10**5_000, "retry_after": 10**5_000, 10**5_000: "x"}},
        {"error": {"code": "9" * 5_000, "retry_after": math.inf, "status": math.nan}},
        b'"' * 200_000,
        b"\xff\x00" * 50_000,
        b"data:\n" * 50_000,
        b"[[],[],[]]," * 5_000,
        "x{" * 30_000,
        b"\x00" * 100,
        {"error": {"message": "x" * 1_000_000}},
    ],
    ids=lambda body: str(body)[:12] if isinstance(body, str | bytes) else type(body).__name__,
)
@pytest.mark.parametrize("status", [None, 200, 400, 500])
def test_hostile_bodies_are_read_to_the_end(body: object, status: int | None) -> None:
    assert isinstance(fault(status=status, body=body), Fault)


def test_a_long_error_is_still_recognised() -> None:
    body = json.dumps({"error": {"code": "insufficient_quota", "message": "x" * 100_000}})
    assert fault(status=429, body=body) is Fault.OUT_OF_CREDITS
    assert fault(status=429, body=body.encode()) is Fault.OUT_OF_CREDITS


ECHOES = st.sampled_from(
    ["prompt", "input", "failed_generation", "user", "request", "param", "flagged_input", "query"]
)
SPOKEN_SENT = [r for g in (*STRONG, SPOKEN, PAIRS, WORDS) for r in g]
LURES = st.sampled_from([rule for rule in SPOKEN_SENT if rule.sample.body[:1] == "{"])


@given(LURES, LURES, ECHOES)
def test_text_echoed_in_other_fields_changes_nothing(rule: Rule, lure: Rule, field: str) -> None:
    """Bodies quote what the user wrote; only the places of an error are believed."""
    body = json.loads(rule.sample.body)
    echoed = dict(body) | {field: lure.sample.body}
    if isinstance(body.get("error"), dict):
        echoed["error"] = body["error"] | {field: [lure.sample.body]}
    sample = rule.sample
    evidence = {"status": sample.status, "headers": sample.headers, "provider": sample.provider}
    assert fault(**evidence, body=echoed) is rule.fault
