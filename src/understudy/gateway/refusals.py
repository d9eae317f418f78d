"""What a client is told when there is no answer, in its own dialect, with every reason."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import msgspec

from understudy.core.errors import ChainExhausted, InvalidRequest, ProviderError, SpecError
from understudy.core.faults import Fault
from understudy.core.target import Attempt
from understudy.dialects.base import Dialect
from understudy.dialects.json_access import encode
from understudy.gateway.http import JSON, Reply


class _Told(msgspec.Struct):
    error: dict[str, msgspec.Raw] | str


ERROR = msgspec.json.Decoder(_Told | list[_Told])  # Google writes some in a list


@dataclass(frozen=True, slots=True)
class Refusal:
    """Status, sentence, machine word, and headers beyond the usual."""

    status: int
    message: str
    kind: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""  # the upstream's own, when the client speaks its dialect

    def written(self, dialect: Dialect) -> bytes:
        return self.body or encode(dialect.write_error(self.status, self.message, self.kind))


# A stop keeps the upstream's status, except that the caller's own key is not the wrong one.
OWN_STATUS = {
    Fault.AUTH: 502,
    Fault.PERMANENT: 400,
    Fault.CONTEXT_LENGTH: 400,
    Fault.RATE_LIMIT: 429,
    Fault.STALL_PRE_FIRST_BYTE: 504,
    Fault.STALL_MID_STREAM: 504,
}


def of_error(error: Exception, dialect: str) -> Refusal:
    """The refusal an error amounts to, for a client that speaks `dialect`."""
    if isinstance(error, ChainExhausted):
        return _exhausted(error)
    if isinstance(error, ProviderError) and isinstance(error.__cause__, InvalidRequest):
        return of_error(error.__cause__, dialect)
    if isinstance(error, ProviderError):
        return _stopped(error, dialect)
    if isinstance(error, SpecError):
        return Refusal(400, f"$.model: {error}", "invalid_model")
    if isinstance(error, InvalidRequest):
        return Refusal(400, str(error), "invalid_request")
    raise error


def _exhausted(error: ChainExhausted) -> Refusal:
    faults = {e.fault for e in error.exceptions if isinstance(e, ProviderError)}
    limited = faults == {Fault.RATE_LIMIT}
    kind = "rate_limit" if limited else "exhausted"
    return Refusal(429 if limited else 503, str(error), kind, _headers(error.retry_after))


def _stopped(error: ProviderError, dialect: str) -> Refusal:
    known = error.status_code if error.status_code and error.status_code >= 400 else None
    status = OWN_STATUS.get(error.fault, 502)
    if error.fault is not Fault.AUTH and known is not None:
        status = known
    same = error.dialect == dialect and error.fault is not Fault.AUTH and _is_told(error.body)
    body, headers = error.body if same else b"", _headers(error.retry_after)
    return Refusal(status, str(error), str(error.fault), headers, body)


def _headers(retry_after: float | None) -> dict[str, str]:
    # Layers above must not multiply what was already tried (contract C17).
    headers = {"x-should-retry": "false"}
    if retry_after is not None:
        headers["retry-after"] = whole_seconds(retry_after)
    return headers


def whole_seconds(seconds: float) -> str:
    """As `Retry-After` has them: no fractions, and never 0."""
    return str(max(1, math.ceil(seconds)))


def _is_told(body: bytes) -> bool:
    """Is this an error as all dialects write one? Servers in front of a target send pages."""
    try:
        value = ERROR.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return bool(value)


def apologise(reply: Reply, dialect: Dialect) -> None:
    """A bug of ours: say so if nothing was said; what was begun is broken off."""
    if reply.started:
        return reply.abort()
    reply.send(500, JSON, encode(dialect.write_error(500, "a fault of ours", "internal")))


def story(attempts: list[Attempt]) -> str:
    """`primary/gpt-x=transient, backup/claude-y=ok`."""
    return ", ".join([f"{a.target}={a.word}" for a in attempts])[:4096]
