"""What one client key may ask for: so many requests at once, so many requests and tokens a second.

Never waits. With `share.limits` the rates are those of all hosts together; see `share.limits`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from understudy.core.health import Clock
from understudy.messages.response import Usage
from understudy.share.limits import SharedLimits
from understudy.share.limits_bucket import Bucket

BUSY_SECONDS = 1.0  # when to ask again if all places are taken: nobody knows, so soon


@dataclass(frozen=True, slots=True)
class Allowance:
    """The limits of one key; infinite where there is none."""

    concurrent: float = math.inf
    rate: float = math.inf  # requests a second
    token_rate: float = math.inf  # tokens a second

    @property
    def limited(self) -> bool:
        return min(self.concurrent, self.rate, self.token_rate) < math.inf


UNLIMITED = Allowance()


@dataclass(frozen=True, slots=True)
class Turned:
    """Why a request may not come in now, and in how many seconds it is worth asking again."""

    reason: str
    seconds: float


class Gate:
    """The door of one key: a count of those inside, and a bucket for each rate."""

    __slots__ = ("_requests", "_tokens", "allowance", "inside")

    def __init__(self, allowance: Allowance, clock: Clock) -> None:
        self.allowance = allowance
        self.inside = 0
        rate, tokens = allowance.rate, allowance.token_rate
        self._requests = Bucket(rate, clock) if rate < math.inf else None
        self._tokens = Bucket(tokens, clock) if tokens < math.inf else None

    def join(self, label: str, shared: SharedLimits) -> None:
        """From now on the rates are those of all who share them."""
        if self._requests is not None:
            self._requests = shared.lease("requests", label, self.allowance.rate)
        if self._tokens is not None:
            self._tokens = shared.lease("tokens", label, self.allowance.token_rate)

    def enter(self) -> Turned | None:
        """Come in; whoever is let in must `leave`."""
        allowance = self.allowance
        if self.inside >= allowance.concurrent:
            reason = f"{self.inside} requests of this key are running, which is all it may have"
            return Turned(reason, BUSY_SECONDS)
        if self._tokens is not None and (seconds := self._tokens.short()):
            return Turned(f"this key may use {allowance.token_rate:g} tokens a second", seconds)
        if self._requests is not None:
            if seconds := self._requests.short():
                return Turned(f"this key may ask {allowance.rate:g} times a second", seconds)
            self._requests.spend(1.0)
        self.inside += 1
        return None

    def leave(self, usage: Usage | None = None) -> None:
        """Only now is it known what it took: the next ones wait for that to be paid off."""
        self.inside -= 1
        if self._tokens is not None and usage is not None:
            self._tokens.spend(usage.total)
