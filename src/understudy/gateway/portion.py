"""One worker's part of what all of them may do together."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from understudy.core.policy import POLICIES
from understudy.gateway.config import Config

# A worker that may take nobody would serve nobody, so what is counted is rounded up.
PORTIONS: dict[str, Callable[[float], float]] = {
    "max_connections": math.ceil,
    "max_concurrent": math.ceil,
    "rate": float,
    "token_rate": float,
}
SHARED = ("rate", "token_rate")  # with `share.limits` one bucket is for all workers of all hosts


def portion(config: Config, workers: int) -> Config:
    """Limits of a client key, connections and the retry budget, divided."""
    divided = PORTIONS.keys() - (SHARED if config.share["limits"] else ())
    gateway = {
        name: PORTIONS[name](float(str(value)) / workers)
        if name in divided and value is not None
        else value
        for name, value in config.gateway.items()
    }
    standard = POLICIES[str(gateway["policy"])].budget_rate
    rate = float(str(config.policy.get("budget_rate", standard))) / workers
    return replace(config, gateway=gateway, policy={**config.policy, "budget_rate": rate})
