"""What the classifier promises beyond its tables: order of evidence, wrappings, no surprises."""

from __future__ import annotations

import json
import math
import socket
import ssl
from asyncio import CancelledError, IncompleteReadError
from http.client import RemoteDisconnected

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.core.classify import classify
from understudy.core.errors import ChainExhausted, ProviderError, Stall
from understudy.core.faults import Fault
from understudy.core.rules import Rule
from understudy.core.rules_codes import STRONG
from understudy.core.rules_says import SPOKEN
from understudy.core.rules_special import PAIRS
from understudy.core.rules_weak import WORDS

CHUNK = 'data: {"choices":[{"delta":{"content":"Sure, here"}}]}\n\n'
ROLE = 'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'


def fault(**evidence: object) -> Fault:
    return classify(**evidence).fault  # type: ignore[arg-type]


# --- the order of evidence (F1) ---


def test_nothing_is_unknown_and_no_exception() -> None:
    assert fault() is Fault.UNKNOWN


@pytest.mark.parametrize(
    "error", [None, Stall("mid_stream", "p", 60.0), ProviderError(Fault.AUTH)]
)
def test_a_caller_that_left_is_a_disconnect_whatever_else_is_said(error: Exception | None) -> None:
    verdict = classify(error, status=503, body="overloaded", cancelled=True)
    assert verdict.fault is Fault.CLIENT_DISCONNECT


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        ("mid_stream", Fault.STALL_MID_STREAM),
        ("pre_first_byte", Fault.STALL_PRE_FIRST_BYTE),
        ("some other phase", Fault.STALL_PRE_FIRST_BYTE),
    ],
)
def test_our_watchdog_names_the_stall_by_its_phase(phase: str, expected: Fault) -> None:
    assert fault(error=Stall(phase, "p", 15.0), status=503) is expected


def test_the_innermost_code_speaks_for_the_failure() -> None:
    inner = json.dumps({"error": {"code": "insufficient_quota"}})
    body = {"error": {"code": "rate_limit_exceeded", "metadata": {"raw": inner}}}
    assert fault(status=429, body=body) is Fault.OUT_OF_CREDITS


def test_a_code_beats_a_header_type_and_that_beats_a_sentence() -> None:
    header = {"x-amzn-errortype": "ThrottlingException:http://internal.amazon.com/"}
    coded = {"code": "context_length_exceeded", "message": "insufficient balance"}
    assert fault(status=400, headers=header, body=coded) is Fault.CONTEXT_LENGTH
    assert fault(status=400, headers=header, body={"message": "no api key"}) is Fault.RATE_LIMIT
    assert fault(status=400, body={"message": "no api key"}) is Fault.AUTH


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        *[(n, Fault.TRANSIENT) for n in (408, 409, 424, 425, 499, 500, 502, 503, 504, 520, 529)],
        *[(n, Fault.PERMANENT) for n in (400, 404, 405, 415, 416, 422, 431)],
        *[(n, Fault.UNKNOWN) for n in (301, 304, 407, 418)],
        *[(n, Fault.AUTH) for n in (401, 403, 451)],
        (402, Fault.OUT_OF_CREDITS),
        (413, Fault.CONTEXT_LENGTH),
        (429, Fault.RATE_LIMIT),
    ],
)
def test_a_status_alone(status: int, expected: Fault) -> None:
    assert fault(status=status) is expected


def test_every_5xx_alone_is_transient() -> None:
    assert {fault(status=n) for n in range(500, 600)} == {Fault.TRANSIENT}


# --- hints in the body (F4) ---

CONTEXT_WORDS = [
    "context_length_exceeded",
    "maximum context length",
    "context length",
    "too many tokens",
    "prompt is too long",
]
MONEY_WORDS = [
    "insufficient credit",
    "insufficient_balance",
    "out of credit",
    "billing_hard_limit_reached",
    "quota exceeded",
    "insufficient_quota",
]


@pytest.mark.parametrize("word", CONTEXT_WORDS)
def test_a_400_that_speaks_of_the_window(word: str) -> None:
    shout = f"Sorry: {word.upper()} here"
    assert fault(status=400, body=shout) is Fault.CONTEXT_LENGTH
    assert fault(status=400, body={"error": {"message": shout}}) is Fault.CONTEXT_LENGTH


@pytest.mark.parametrize("word", MONEY_WORDS)
def test_a_400_that_speaks_of_money(word: str) -> None:
    shout = f"Sorry: {word.upper()} here"
    assert fault(status=400, body=shout) is Fault.OUT_OF_CREDITS
    assert fault(status=400, body={"error": {"message": shout}}) is Fault.OUT_OF_CREDITS


@pytest.mark.parametrize("context", CONTEXT_WORDS)
@pytest.mark.parametrize("money", MONEY_WORDS)
def test_window_and_money_together_are_the_window(context: str, money: str) -> None:
    assert fault(status=400, body=f"{money}; {context}") is Fault.CONTEXT_LENGTH
    body = {"error": {"code": money.replace(" ", "_"), "message": context}}
    assert fault(status=400, body=body) is Fault.CONTEXT_LENGTH


@pytest.mark.parametrize("status", [400, 403, 429, 500, 503, None])
def test_money_is_money_on_any_status(status: int | None) -> None:
    body = {"error": {"type": "api_error", "message": "insufficient balance (1008)"}}
    assert fault(status=status, body=body) is Fault.OUT_OF_CREDITS


# --- exceptions (F2, F6, F7) ---


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(111, "refused"),
        ConnectionResetError(104, "reset"),
        BrokenPipeError(32, "Broken pipe"),
        TimeoutError(),
        TimeoutError("timed out"),
        socket.gaierror(-2, "Name or service not known"),
        ssl.SSLCertVerificationError("certificate verify failed"),
        EOFError(),
        IncompleteReadError(b"", 5),
        RemoteDisconnected("Remote end closed connection without response"),
        OSError(101, "Network is unreachable"),
        RuntimeError("Unexpected EOF while reading"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_broken_wire_is_transient(error: Exception, stream: bool) -> None:
    assert fault(error=error, stream=stream) is Fault.TRANSIENT


def test_our_own_cancellation_is_transient_while_the_caller_lives() -> None:
    assert fault(error=CancelledError()) is Fault.TRANSIENT


def wrapped(inner: BaseException) -> list[BaseException]:
    """The ways an error hides in another."""
    cause, context, twice = ValueError("a"), ValueError("b"), RuntimeError("c")
    cause.__cause__ = inner
    context.__context__ = inner
    twice.__cause__ = cause
    group = BaseExceptionGroup("several", [ValueError("d"), BaseExceptionGroup("e", [inner])])
    return [inner, cause, context, twice, group]


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        (Stall("mid_stream", "p", 60.0), Fault.STALL_MID_STREAM),
        (ConnectionResetError(), Fault.TRANSIENT),
        (ProviderError(Fault.OUT_OF_CREDITS), Fault.OUT_OF_CREDITS),
    ],
    ids=repr,
)
def test_a_wrapped_error_is_found(inner: BaseException, expected: Fault) -> None:
    assert [fault(error=error) for error in wrapped(inner)] == [expected] * 5


def test_what_was_judged_before_keeps_its_verdict_and_its_delay() -> None:
    error = ProviderError(Fault.RATE_LIMIT, "p/m", 429, 12.5)
    error.retry_source = "body"
    verdict = classify(ChainExhausted([error]))
    assert (verdict.fault, verdict.retry_after, verdict.source) == (Fault.RATE_LIMIT, 12.5, "body")


def test_a_circle_of_causes_ends() -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert fault(error=one) is Fault.UNKNOWN


class Response:
    def __init__(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.status_code, self._content, self.headers = status, content, headers


class SdkError(Exception):
    """Like the errors of the vendors' SDKs: everything they know is in attributes."""

    def __init__(self, **fields: object) -> None:
        super().__init__("the SDK's own words")
        vars(self).update(fields)


class Fixed(Exception):
    """Like the errors of google.api_core: the status belongs to the class."""

    code = 429


QUOTA = {"code": "insufficient_quota", "message": "check your plan"}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (SdkError(status_code=503), Fault.TRANSIENT),
        (SdkError(status=401, message="Unauthorized", headers={}), Fault.AUTH),
        (SdkError(code=404, details={"error": {"message": "models/x is not found"}}),
         Fault.MODEL_NOT_FOUND),
        (SdkError(status_code=429, body=QUOTA), Fault.OUT_OF_CREDITS),
        (SdkError(body=b'{"error":{"type":"overloaded_error"}}', status=None), Fault.TRANSIENT),
        (SdkError(response=Response(413, b"too large", {})), Fault.CONTEXT_LENGTH),
        (SdkError(response={"Error": {"Code": "ThrottlingException", "Message": "slower"},
                            "ResponseMetadata": {"HTTPStatusCode": 400}}), Fault.RATE_LIMIT),
        (SdkError(status_code=404, error="model 'x' not found"), Fault.MODEL_NOT_FOUND),
        (Fixed("quota"), Fault.RATE_LIMIT),
        (SdkError(status_code="nonsense", body=7, headers=object()), Fault.UNKNOWN),
        (SdkError(), Fault.UNKNOWN),
    ],
)  # fmt: skip
def test_errors_of_client_libraries_are_read_by_their_attributes(
    error: Exception, expected: Fault
) -> None:
    assert fault(error=error) is expected


def test_a_delay_is_found_on_an_sdk_error() -> None:
    verdict = classify(SdkError(response=Response(429, b"{}", {"Retry-After": "7"})))
    assert (verdict.retry_after, verdict.source) == (7.0, "header")


def test_a_response_without_a_dict_of_attributes_is_no_obstacle() -> None:
    class Slotted:
        __slots__ = ("status_code",)

    assert fault(error=SdkError(response=Slotted(), status=503)) is Fault.TRANSIENT


def test_what_the_caller_knows_beats_what_the_exception_says() -> None:
    assert fault(error=SdkError(status_code=401), status=503) is Fault.TRANSIENT


def test_an_exception_that_cannot_be_printed_is_still_classified() -> None:
    class Shy(ConnectionError):
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert fault(error=Shy()) is Fault.TRANSIENT


# --- statuses that hide another (errors.md 2.5, 6) ---


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (503, {"error": {"message": "upstream", "code": 429}}, Fault.RATE_LIMIT),
        (500, {"detail": "500: Error code: 401 - {'error': {'message': 'x'}}"}, Fault.AUTH),
        (200, {"error": {"code": 502, "message": "Upstream"}}, Fault.TRANSIENT),
        (401, {"error": {"message": "bad key", "code": 429}}, Fault.AUTH),
        (400, {"error": {"message": "malformed", "code": 429}}, Fault.PERMANENT),
        (None, "Request failed with status code 429", Fault.RATE_LIMIT),
        (None, "unexpected status 502 Bad Gateway: Unknown error", Fault.TRANSIENT),
        (None, "exceeded retry limit, last status: 401 Unauthorized", Fault.AUTH),
        (None, "It took 429 tries", Fault.UNKNOWN),
    ],
)
def test_a_number_inside_counts_where_the_status_says_little(
    status: int | None, body: object, expected: Fault
) -> None:
    assert fault(status=status, body=body) is expected


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


# --- streams (errors.md 5) ---


@pytest.mark.parametrize(
    ("error", "body", "expected"),
    [
        ("read ECONNRESET", CHUNK, Fault.STALL_MID_STREAM),
        ("read ECONNRESET", ROLE, Fault.TRANSIENT),
        ("SSE read timed out", CHUNK, Fault.STALL_MID_STREAM),
        ("SSE read timed out", ": ping\n\n" + ROLE, Fault.STALL_PRE_FIRST_BYTE),
        ("no first token within deadline", "", Fault.STALL_PRE_FIRST_BYTE),
        ("client disconnected", CHUNK, Fault.CLIENT_DISCONNECT),
        ("", CHUNK, Fault.STALL_MID_STREAM),
        ("", ROLE + "data: [DONE]\n\n", Fault.EMPTY_CONTENT),
        ("", "", Fault.EMPTY_CONTENT),
        ("read ECONNRESET", CHUNK + 'data: {"error":{"code":429}}\n\n', Fault.RATE_LIMIT),
        ("", 'event: error\ndata: {"error":{"type":"overloaded_error"}}\n\n', Fault.TRANSIENT),
        (
            "",
            'event: response.failed\ndata: {"response":{"error":{"code":"server_error"}}}\n\n',
            Fault.TRANSIENT,
        ),
        ("something odd", CHUNK, Fault.STALL_MID_STREAM),
        ("something odd", "", Fault.UNKNOWN),
        ("Too Many Requests", "", Fault.RATE_LIMIT),
        ("", "data: bad request: no such field\n\n", Fault.PERMANENT),
        ("", CHUNK + 'data: {"choices":[{"finish_reason":"error"}]}\n\n', Fault.TRANSIENT),
        ("", '{"message":{"content":"Hi"}}\n{"error":"out of memory"}\n', Fault.TRANSIENT),
    ],
)
def test_how_a_stream_ended(error: str, body: str, expected: Fault) -> None:
    assert fault(error=error, status=200, body=body, stream=True) is expected


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{}",
        '{"choices":[]}',
        '{"choices":null,"error":{}}',
        '{"choices":[{"message":{"content":null,"tool_calls":[]}}]}',
        '{"choices":[{"message":{"content":" \\n "},"finish_reason":"stop"}]}',
        '{"choices":[{"message":{"content":"","reasoning_content":"hm"}}]}',
        '{"type":"message","content":[],"stop_reason":"refusal"}',
        '{"candidates":[{"finishReason":"OTHER"}]}',
        '{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]}}]}',
        '{"promptFeedback":{"blockReason":"SAFETY"}}',
        '{"object":"response","status":"incomplete","output":[]}',
        '{"message":{"role":"assistant","content":""},"done":true}',
        '{"output":{"message":{"content":[]}},"stopReason":"content_filtered"}',
    ],
)
def test_a_200_without_content_is_empty(body: str) -> None:
    assert fault(status=200, body=body) is Fault.EMPTY_CONTENT


@pytest.mark.parametrize(
    "body",
    [
        '{"choices":[{"message":{"content":"Hi"}}]}',
        '{"choices":[{"message":{"content":null,"tool_calls":[{"id":"1"}]}}]}',
        '{"type":"message","content":[{"type":"tool_use","name":"f","input":{}}]}',
        '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]}',
        '{"object":"response","output":[{"type":"function_call","name":"f"}]}',
        '{"message":{"content":"quota exceeded"},"done":true}',
        '{"data":[{"embedding":[0.1]}]}',
    ],
)
def test_an_answer_is_no_known_failure(body: str) -> None:
    assert fault(status=200, body=body) is Fault.UNKNOWN


# --- delays belong to what time heals ---


def test_a_402_that_ends_soon_is_pace_and_one_that_does_not_is_money() -> None:
    soon = classify(status=402, headers={"retry-after": "30"})
    late = classify(status=402, headers={"retry-after": "24367"})
    assert (soon.fault, soon.retry_after) == (Fault.RATE_LIMIT, 30.0)
    assert (late.fault, late.retry_after) == (Fault.OUT_OF_CREDITS, None)


@pytest.mark.parametrize("status", [400, 401, 404, 413])
def test_what_waiting_does_not_cure_has_no_delay(status: int) -> None:
    assert classify(status=status, headers={"retry-after": "5"}).retry_after is None


# --- no input does harm (F6) ---

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
