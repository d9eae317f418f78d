"""What an agent says when it cannot answer: a code, a sentence, and details for machines."""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec.structs import force_setattr, replace

from understudy.agents.payload import Copy, copied


class ErrorCode(StrEnum):
    """Why. The router itself uses five of these, the rest are for agents."""

    VALIDATION_ERROR = "VALIDATION_ERROR"
    AGENT_ERROR = "AGENT_ERROR"
    ROUTING_ERROR = "ROUTING_ERROR"
    CAPABILITY_NOT_FOUND = "CAPABILITY_NOT_FOUND"
    AGENT_TIMEOUT = "AGENT_TIMEOUT"
    AGENT_UNAVAILABLE = "AGENT_UNAVAILABLE"
    PROTOCOL_ERROR = "PROTOCOL_ERROR"
    TRANSPORT_ERROR = "TRANSPORT_ERROR"
    UNAUTHORIZED = "UNAUTHORIZED"
    RATE_LIMIT = "RATE_LIMIT"
    INTERNAL_AGENT_ERROR = "INTERNAL_AGENT_ERROR"
    PAYLOAD_TOO_LARGE = "PAYLOAD_TOO_LARGE"
    WORKFLOW_ABORTED = "WORKFLOW_ABORTED"
    EMCL_FAILURE = "EMCL_FAILURE"


class ErrorInfo(msgspec.Struct, frozen=True):
    """One failure. `retryable` is advice for the caller; it never changes a route.

    An agent may have codes of its own. They are passed on as they are, except over the wire: see
    `codec`.
    """

    code: str  # an `ErrorCode`, however it was written, if there is one of that name
    message: str
    retryable: bool = False
    details: dict[str, object] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.message, str):
            raise TypeError(f"an error's message is a text, not {self.message!r}")
        if not isinstance(self.details, dict):
            raise TypeError(f"an error's details are a dict, not {self.details!r}")
        if type(self.code) is not ErrorCode:
            self._translate(self.code)

    def _translate(self, code: str) -> None:
        if not isinstance(code, str):
            raise TypeError(f"an error's code is a text, not {code!r}")
        # A text of a class of its own would not be written as JSON.
        force_setattr(self, "code", _CODES.get(code) or str.__str__(code))

    def copy(self, by: Copy = copied) -> ErrorInfo:
        """The same failure for somebody who might edit its details."""
        return replace(self, details=by(self.details))


_CODES = {str(code): code for code in ErrorCode}


def crash(error: BaseException) -> ErrorInfo:
    """An exception as a failure: its own words, or its type when it has none."""
    kind = type(error).__name__
    try:
        message = str(error) or kind
    except Exception:  # noqa: BLE001 - an exception that cannot print itself is one too
        message = kind
    return ErrorInfo(ErrorCode.INTERNAL_AGENT_ERROR, message, False, {"type": kind})


def garbage(value: object) -> ErrorInfo:
    """Something that is no response, as a failure of whoever returned it."""
    kind = type(value).__name__
    message = f"the agent returned {kind}, not an AgentResponse"
    return ErrorInfo(ErrorCode.INTERNAL_AGENT_ERROR, message, False, {"type": kind})
