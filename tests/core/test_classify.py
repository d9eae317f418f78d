"""What the classifier promises beyond its tables: the order of evidence, streams, delays."""

from __future__ import annotations

import json

import pytest

from understudy.core.classify import classify
from understudy.core.errors import ProviderError, Stall
from understudy.core.faults import Fault

CHUNK = 'data: {"choices":[{"delta":{"content":"Sure, here"}}]}\n\n'
ROLE = 'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'


def fault(**evidence: object) -> Fault:
    return classify(**evidence).fault  # type: ignore[arg-type]


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


@pytest.mark.parametrize(
    ("error", "body", "expected"),
    [
        ("read ECONNRESET", CHUNK, Fault.STALL_MID_STREAM),
        ("read ECONNRESET", ROLE, Fault.TRANSIENT),
        ("event read timed out", CHUNK, Fault.STALL_MID_STREAM),
        ("event read timed out", ": ping\n\n" + ROLE, Fault.STALL_PRE_FIRST_BYTE),
        ("no first token in time", "", Fault.STALL_PRE_FIRST_BYTE),
        ("client disconnected", CHUNK, Fault.CLIENT_DISCONNECT),
        ("", CHUNK, Fault.STALL_MID_STREAM),
        ("", ROLE + "data: [DONE]\n\n", Fault.EMPTY_CONTENT),
        ("", "", Fault.EMPTY_CONTENT),
        ("stream ended early", CHUNK + 'data: {"choices":[{"ind', Fault.STALL_MID_STREAM),
        ("", CHUNK + 'data: {"error":{"code":429,"mess', Fault.RATE_LIMIT),
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
        ("", 'data: {"choices":[{"finish_reason":"network_error"}]}\n\n', Fault.TRANSIENT),
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
        '{"header":{"code":0,"message":"Success","status":2},"choices":[]}',
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


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"type": "rate_limit_error", "message": "suspended for a minute"}, Fault.RATE_LIMIT),
        ({"type": "rate_limit_error", "message": "over its spend limit"}, Fault.OUT_OF_CREDITS),
    ],
)
def test_a_word_of_pace_yields_to_a_purse_and_to_nothing_that_sounds_like_one(
    body: dict[str, str], expected: Fault
) -> None:
    assert fault(status=429, body={"error": body}) is expected


@pytest.mark.parametrize(
    ("status", "word", "expected"),
    [
        (403, "server_error", Fault.TRANSIENT),
        (403, "permission_error", Fault.AUTH),
        (401, "server_error", Fault.AUTH),
    ],
)
def test_a_door_is_not_shut_when_the_server_says_it_failed(
    status: int, word: str, expected: Fault
) -> None:
    assert fault(status=status, body={"error": {"type": word, "message": "x"}}) is expected


@pytest.mark.parametrize("status", [None, 200, 400])
def test_a_parameter_a_model_no_longer_takes_is_not_the_model(status: int | None) -> None:
    said = "The model returned the following errors: `temperature` is deprecated for this model."
    body = {"error": {"message": said}}
    assert fault(status=status, body=body) is Fault.PERMANENT


def test_what_a_validator_quotes_from_the_request_says_nothing() -> None:
    said = "Input should be a string [input_value={'a': 'insufficient_quota'}, input_type=dict]"
    assert fault(status=400, body=said) is Fault.PERMANENT
    assert fault(status=400, body={"error": {"message": said}}) is Fault.PERMANENT


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("the model returned an empty message", Fault.EMPTY_CONTENT),
        ("all messages must have non-empty content", Fault.UNKNOWN),
    ],
)
def test_nothing_came_and_nothing_was_asked_are_two_things(said: str, expected: Fault) -> None:
    assert fault(body=said) is expected


def test_a_402_that_ends_soon_is_pace_and_one_that_does_not_is_money() -> None:
    soon = classify(status=402, headers={"retry-after": "30"})
    late = classify(status=402, headers={"retry-after": "24367"})
    assert (soon.fault, soon.retry_after) == (Fault.RATE_LIMIT, 30.0)
    assert (late.fault, late.retry_after) == (Fault.OUT_OF_CREDITS, None)


@pytest.mark.parametrize("status", [400, 401, 404, 413])
def test_what_waiting_does_not_cure_has_no_delay(status: int) -> None:
    assert classify(status=status, headers={"retry-after": "5"}).retry_after is None


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('{"error":{"code":"TERMINAL_BALANCE_TOO_LOW","message":"no"}}', "out_of_credits"),
        ('{"error":{"code":"DeploymentModelNotSupported","message":"no"}}', "model_not_found"),
        ('{"error":{"code":"slow_down","message":"no"}}', "permanent"),  # a word that is known
    ],
)
def test_a_machine_word_nobody_noted_is_read_as_the_words_it_is_made_of(
    body: str, fault: str
) -> None:
    assert classify(status=400, body=body).fault == fault


def test_an_error_below_a_response_is_one() -> None:
    body = '{"response":{"error":{"message":"no cookie","code":401}}}'
    assert classify(status=200, body=body).fault == "auth"


@pytest.mark.parametrize(
    ("status", "said", "fault"),
    [
        (400, "This model's maximum context length is 8192 tokens", "context_length"),
        (400, "Your credit balance is too low", "out_of_credits"),
        (404, "The model `gpt-9` does not exist", "model_not_found"),
        (404, "Client error for url 'https://h/v1/models/gpt:go'", "permanent"),
    ],
)
def test_an_error_with_a_status_and_no_body_is_read_by_its_own_words(
    status: int, said: str, fault: str
) -> None:
    class Refused(Exception):
        status_code = status

    assert classify(Refused(said)).fault == fault
