"""The names of what can go wrong, and a verdict about one failure. The rules are elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from understudy.core.values import quick


class Fault(StrEnum):
    """The nature of one failed attempt. The first eleven are the given taxonomy."""

    UNKNOWN = "unknown"
    TRANSIENT = "transient"
    RATE_LIMIT = "rate_limit"
    AUTH = "auth"
    OUT_OF_CREDITS = "out_of_credits"
    CONTEXT_LENGTH = "context_length"
    PERMANENT = "permanent"
    EMPTY_CONTENT = "empty_content"
    STALL_PRE_FIRST_BYTE = "stall_pre_first_byte"
    STALL_MID_STREAM = "stall_mid_stream"
    CLIENT_DISCONNECT = "client_disconnect"
    # Split from `permanent`: chains advance past these two without penalty.
    MODEL_NOT_FOUND = "model_not_found"
    UNSUPPORTED = "unsupported"


@quick
@dataclass(frozen=True, slots=True)
class Verdict:
    """What a failure is, when the provider says to come back, and what in the evidence decided."""

    fault: Fault
    retry_after: float | None = None  # seconds, as the provider wrote it, not yet capped
    source: str = ""  # where retry_after was written: "header", "body" or ""
    evidence: str = ""  # the rule that matched, for people: "code insufficient_quota"

    def __post_init__(self) -> None:
        # Zero, less and NaN are ways of not answering, whoever judged.
        if self.retry_after is not None and not self.retry_after > 0:
            object.__setattr__(self, "retry_after", None)
