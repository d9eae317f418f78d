"""What exceptions tell the classifier: wrapped, grouped, or from a library it has never seen."""

from __future__ import annotations

import socket
import ssl
from asyncio import CancelledError, IncompleteReadError
from http.client import RemoteDisconnected

import pytest

from understudy.core.classify import classify
from understudy.core.errors import ChainExhausted, ProviderError, Stall
from understudy.core.faults import Fault


def fault(**evidence: object) -> Fault:
    return classify(**evidence).fault  # type: ignore[arg-type]


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
