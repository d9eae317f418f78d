"""JSON in and out: the one way envelopes, responses and records are read and written.

Reading checks everything and says which field is wrong. Writing knows every value we define; in
what travels, a payload that is no JSON is a `TypeError`.
"""

from __future__ import annotations

import json
import re
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from understudy.agents.envelope import VERSION, IntentEnvelope
from understudy.agents.failure import ErrorCode, ErrorInfo
from understudy.agents.record import Record
from understudy.agents.response import AgentResponse
from understudy.core.errors import UnderstudyError

T = TypeVar("T")


class Unreadable(UnderstudyError, ValueError):
    """Bytes that are not what they should be; `field` is the path of the first wrong one."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"{field}: {problem}" if field else problem)

    @property
    def info(self) -> ErrorInfo:
        """What whoever sent it is told."""
        details: dict[str, object] = {"field": self.field}
        return ErrorInfo(ErrorCode.VALIDATION_ERROR, str(self), False, details)


def write(value: msgspec.Struct) -> bytes:
    """An envelope, a response, a record or a span as JSON.

    What travels and holds NaN or an infinity is a `ValueError`: they would arrive as null. In
    what is only kept they become null, and what is no JSON is told by its type, for a record must
    not get lost over a value.
    """
    if not isinstance(value, (IntentEnvelope, AgentResponse)):
        return msgspec.json.encode(value, enc_hook=_not_written)
    _check_numbers(value)
    return msgspec.json.encode(value)


def _not_written(value: object) -> object:
    return {"not_written": type(value).__name__}


def checked(given: IntentEnvelope) -> IntentEnvelope:
    """An envelope built in code, where nobody looked at its fields, as if it had been read.

    Without its payload, which may be anything. All the rest is new and cannot be edited.
    """
    if not issubclass(type(given), IntentEnvelope):
        raise Unreadable("", f"an envelope is wanted, not {type(given).__name__}")
    try:
        plain = msgspec.to_builtins(replace(given, payload=None), enc_hook=_plain)
        return msgspec.convert(plain, type(given))
    except msgspec.ValidationError as error:
        raise _wrong(str(error)) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise Unreadable("", f"the envelope cannot be read: {error}") from None


def read_envelope(data: bytes) -> IntentEnvelope:
    envelope = _read(data, IntentEnvelope)
    _check_version(envelope.version)
    return envelope


def read_response(data: bytes) -> AgentResponse:
    wire = _read(data, _Response)
    _check_version(wire.version)
    try:
        return AgentResponse(
            status=wire.status,
            payload=wire.payload,
            error=None if wire.error is None else wire.error.info(),
            metadata=wire.metadata,
            decision_path=wire.decision_path,
        )
    except ValueError as error:
        raise Unreadable("status", str(error)) from None


def read_record(data: bytes) -> Record:
    return _read(data, Record)


def _plain(value: object) -> object:
    for kind in (str, float):  # of a class that derives from it
        if isinstance(value, kind):
            return kind(value)
    raise TypeError(f"it holds a value of type {type(value).__name__!r}")


class _Error(msgspec.Struct):
    """As `ErrorInfo`, but a code that we do not know becomes INTERNAL_AGENT_ERROR, with a note."""

    code: str
    message: str = ""
    retryable: bool = False
    details: dict[str, object] = msgspec.field(default_factory=dict)

    def info(self) -> ErrorInfo:
        told = ErrorInfo(self.code, self.message, self.retryable, self.details)
        if isinstance(told.code, ErrorCode):
            return told
        details = {**self.details, "unknown_code": self.code}
        return replace(told, code=ErrorCode.INTERNAL_AGENT_ERROR, details=details)


class _Response(msgspec.Struct):
    """As `AgentResponse`, before anybody checked that it makes sense."""

    status: str
    version: str = VERSION
    payload: object = None
    error: _Error | None = None
    metadata: dict[str, object] = msgspec.field(default_factory=dict)
    decision_path: tuple[str, ...] = ()


_AT = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<path>.*)`)?", re.DOTALL)
_NAMED = re.compile(r"Object (?:missing required|contains unknown) field `(?P<name>.*)`")


def _read(data: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise _wrong(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreadable("", f"not JSON: {error}") from None
    except RecursionError:
        raise Unreadable("", "nested too deeply") from None


def _wrong(said: str) -> Unreadable:
    """msgspec's sentence taken apart: which field, and what about it."""
    found = _AT.fullmatch(said)
    what, path = (found["what"], found["path"] or "") if found else (said, "")
    steps = [path.lstrip(".")] if path else []
    if named := _NAMED.fullmatch(what):
        steps.append(named["name"])
    return Unreadable(".".join(steps), what[:1].lower() + what[1:])


def _check_numbers(value: msgspec.Struct) -> None:
    try:
        json.dumps(msgspec.to_builtins(value, str_keys=True), allow_nan=False)
    except ValueError as error:
        raise ValueError(f"JSON has neither NaN nor infinities: {error}") from None


def _check_version(version: str) -> None:
    if version != VERSION:
        raise Unreadable("version", f"{version!r} is not spoken here, only {VERSION!r}")
