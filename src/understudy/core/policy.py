"""What happens after each fault: a table, one row per fault, plus a handful of numbers.

Where sources disagree on a fault the answer is a cell here, never an `if` elsewhere (ADR 0003).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import NoReturn

from understudy.core.faults import Fault


class Retry(StrEnum):
    """May the same target be asked again in this request?"""

    NEVER = "never"
    YES = "yes"  # up to `transient_retries`, until benched
    UNHINTED = "unhinted"  # only when the provider named no delay


class Then(StrEnum):
    """Where the chain goes when this target is done with."""

    ADVANCE = "advance"
    LARGER = "larger"  # to targets whose known window is larger; none of them: stop
    STOP = "stop"


class Mark(StrEnum):
    """Who is blamed, and how."""

    NONE = "none"
    COUNT = "count"  # one consecutive failure more
    HINT = "hint"  # bench for the provider's own delay; none given: count
    HOLD = "hold"  # bench for the provider's own delay; none given: for the current cooldown
    DEGRADE = "degrade"  # bench the credential for `degrade_seconds`
    SESSION = "session"  # bench the credential for `session_seconds`


class Scope(StrEnum):
    """What is marked."""

    NONE = "none"
    TARGET = "target"  # provider/model
    SHARE = "share"  # this target's use of one credential, if it has several; else the target
    CREDENTIAL = "credential"  # the credential, if there are several; else this target's use of it
    ACCOUNT = "account"  # the credential, whichever target uses it


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: the consequences of one fault."""

    retry: Retry
    rotate: bool  # try the target's next credential first
    then: Then
    mark: Mark
    scope: Scope


N, Y, U = Retry.NEVER, Retry.YES, Retry.UNHINTED
GO, LARGER, STOP = Then.ADVANCE, Then.LARGER, Then.STOP
_TARGET, _SHARE, _NOBODY = Scope.TARGET, Scope.SHARE, Scope.NONE
_CRED, _ACCOUNT = Scope.CREDENTIAL, Scope.ACCOUNT

# fmt: off
_FAIL_FAST = {
    #                                retry rotate then    mark          scope
    Fault.UNKNOWN:              Rule(Y,    False, GO,     Mark.COUNT,   _TARGET),
    Fault.TRANSIENT:            Rule(Y,    False, GO,     Mark.COUNT,   _TARGET),
    Fault.RATE_LIMIT:           Rule(U,    True,  GO,     Mark.HINT,    _SHARE),
    Fault.AUTH:                 Rule(N,    True,  STOP,   Mark.DEGRADE, _CRED),
    Fault.OUT_OF_CREDITS:       Rule(N,    False, GO,     Mark.SESSION, _ACCOUNT),
    Fault.CONTEXT_LENGTH:       Rule(N,    False, LARGER, Mark.NONE,    _NOBODY),
    Fault.MODEL_NOT_FOUND:      Rule(N,    False, GO,     Mark.NONE,    _NOBODY),
    Fault.UNSUPPORTED:          Rule(N,    False, GO,     Mark.NONE,    _NOBODY),
    Fault.PERMANENT:            Rule(N,    False, STOP,   Mark.NONE,    _NOBODY),
    Fault.EMPTY_CONTENT:        Rule(N,    False, GO,     Mark.COUNT,   _TARGET),
    Fault.STALL_PRE_FIRST_BYTE: Rule(N,    False, GO,     Mark.COUNT,   _TARGET),
    Fault.STALL_MID_STREAM:     Rule(N,    False, STOP,   Mark.COUNT,   _TARGET),
    Fault.CLIENT_DISCONNECT:    Rule(N,    False, STOP,   Mark.NONE,    _NOBODY),
}
_AVAILABILITY = _FAIL_FAST | {
    Fault.RATE_LIMIT:           Rule(N,    True,  GO,     Mark.HOLD,    _SHARE),
    Fault.AUTH:                 Rule(N,    True,  GO,     Mark.DEGRADE, _CRED),
}
_ALWAYS_ON =                    Rule(N,    False, GO,     Mark.NONE,    _NOBODY)
# fmt: on

_STOPS_ON_REQUEST = (Fault.AUTH, Fault.PERMANENT, Fault.CONTEXT_LENGTH)


class Rows(dict[Fault, Rule]):
    """A table that stays as it is, so that a policy can be compared, hashed, copied and sent."""

    def _fixed(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a policy's table is fixed; make another one with dataclasses.replace")

    __setitem__ = __delitem__ = __ior__ = _fixed
    clear = pop = popitem = setdefault = update = _fixed

    def __hash__(self) -> int:  # type: ignore[override] # the base's is None
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[object, ...]:
        return Rows, (dict(self),)


@dataclass(frozen=True, slots=True)
class Policy:
    """A table and its numbers. Change one with `dataclasses.replace(policy, max_wait=2.0)`."""

    name: str
    rules: Mapping[Fault, Rule] = field(repr=False)
    transient_retries: int = 1  # immediate retries on the same target; 0 means none
    advance_on_permanent: bool = False  # advance where the rows of three faults say stop
    max_delay: float = 300.0  # seconds; the longest provider's hint that is honoured
    degrade_seconds: float = 300.0
    session_seconds: float = math.inf
    max_wait: float = 0.0  # seconds to wait when all are benched and one returns by then
    budget_ratio: float | None = None  # retries allowed per request; None means no budget
    budget_rate: float = 10.0  # and per second, whatever the traffic

    def __post_init__(self) -> None:
        missing = [fault for fault in Fault if fault not in self.rules]
        if missing:
            raise ValueError(f"policy {self.name!r} has no row for {', '.join(missing)}")
        object.__setattr__(self, "rules", Rows(self.rules))

    def rule(self, fault: Fault) -> Rule:
        rule = self.rules[fault]
        if self.advance_on_permanent and fault in _STOPS_ON_REQUEST:
            return replace(rule, then=Then.ADVANCE)
        return rule

    @property
    def tries(self) -> int:
        """The most attempts one credential of one target can get in one request."""
        return 1 + max(0, self.transient_retries)


FAIL_FAST = Policy("fail_fast", _FAIL_FAST)
AVAILABILITY = Policy(
    "availability",
    _AVAILABILITY,
    session_seconds=1800.0,
    max_wait=2.0,
    budget_ratio=0.2,
)
DETERMINISTIC = Policy("deterministic", dict.fromkeys(Fault, _ALWAYS_ON), transient_retries=0)
POLICIES = MappingProxyType({p.name: p for p in (FAIL_FAST, AVAILABILITY, DETERMINISTIC)})
