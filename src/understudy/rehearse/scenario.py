"""A scenario: who is asked by how many, what each target is like, and what befalls it. Values."""

from __future__ import annotations

import math
from dataclasses import dataclass

from understudy.core.faults import Fault
from understudy.core.health import Cooldown
from understudy.core.policy import AVAILABILITY, Policy
from understudy.providers.base import Patience
from understudy.rehearse.chance import Chance, constant


@dataclass(frozen=True, slots=True)
class Outage:
    """A time in which a target fails, or is only slow."""

    start: float  # seconds from the beginning
    end: float
    fault: Fault | None = Fault.TRANSIENT  # None: it answers, `slow` times as slowly
    slow: float = 1.0


@dataclass(frozen=True, slots=True)
class Limit:
    """A provider's rate limit: a bucket for each credential."""

    rate: float  # requests a second
    burst: float = 1.0
    hint: bool = True  # does its 429 say when to come back


@dataclass(frozen=True, slots=True)
class Nature:
    """How long a target takes when it is well, and how long to fail."""

    first_content: Chance = constant(0.5)  # noqa: RUF009 - frozen
    tokens_per_second: Chance = constant(80.0)  # noqa: RUF009 - frozen
    latency: Chance | None = None  # of a plain answer; None: first content plus the tokens
    fails_in: Chance = constant(0.05)  # noqa: RUF009 - frozen


@dataclass(frozen=True, slots=True)
class Role:
    """One target of the chain."""

    key: str  # provider/model
    nature: Nature = Nature()
    outages: tuple[Outage, ...] = ()
    errors: tuple[tuple[Fault, float], ...] = ()  # share of attempts
    limit: Limit | None = None
    patience: Patience = Patience()  # noqa: RUF009 - frozen
    credentials: int = 1
    window: int | None = None  # tokens
    input_price: float = 0.0  # dollars for a million tokens
    output_price: float = 0.0


@dataclass(frozen=True, slots=True)
class Traffic:
    """Who asks, how often, for what."""

    rate: float = 10.0  # requests a second
    pattern: str = "poisson"  # or "constant", "bursts"
    burst: int = 10  # requests at once, with "bursts"
    streams: float = 0.0  # share
    concurrency: int = 1_000_000  # requests at once; who comes later waits for a place
    input_tokens: int = 1000
    output_tokens: Chance = constant(200.0)  # noqa: RUF009 - frozen
    bad: float = 0.0  # share of requests that no target accepts
    leaves: float = 0.0  # share of callers that do not wait for the end
    leaves_after: Chance = constant(2.0)  # noqa: RUF009 - frozen


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything a run depends on, but for the seed."""

    name: str
    chain: tuple[Role, ...]
    traffic: Traffic = Traffic()
    seconds: float = 60.0
    timeout: float = math.inf  # of a whole request
    policy: Policy = AVAILABILITY
    cooldown: Cooldown = Cooldown(probe=True)  # noqa: RUF009 - frozen
    seed: int = 1
