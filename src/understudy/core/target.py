"""A target, and one line of a request's story. Values only; nothing here decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from understudy.core.faults import Fault
from understudy.core.values import quick


@dataclass(frozen=True, slots=True)
class Target:
    """One model at one provider. Prints as `provider/model`, which is also its health key."""

    provider: str
    model: str
    key: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", f"{self.provider}/{self.model}")

    def __str__(self) -> str:
        return self.key


@quick
@dataclass(frozen=True)
class Attempt:
    """What happened at one target once. Logs, headers, metrics and errors are made from it."""

    target: str  # the key, `provider/model`
    outcome: str  # "ok", "failed", "skipped" or "cancelled"
    fault: Fault | None = None  # None when it succeeded
    status: int | None = None  # HTTP, when there was an answer
    seconds: float = 0.0  # from start to outcome
    reason: str = ""  # one sentence for people; no secrets
    n: int = 0  # try number on this target, from 1; 0 when skipped
    credential: str = ""  # label, never the key itself
    retry_after: float | None = None
    then: str = ""  # what followed: "retry", "rotate", "advance", "stop" or "" at the end
    benched: float = 0.0  # seconds this failure benched somebody for, 0 if it did not
    first_content: float | None = None  # seconds to the first content, streams only
    next: str = ""  # the target that comes next, "" if none does
    began: float = field(default=0.0, repr=False, compare=False)  # clock seconds

    @property
    def word(self) -> str:
        """The short form used in headers and logs: `ok`, the fault, or `skipped`."""
        if self.outcome == "failed" and self.fault is not None:
            return str(self.fault)
        return self.outcome


Observer = Callable[[Attempt], None]
