"""What the generations of Claude refuse, as rows. Only used for requests of another dialect.

A caller who speaks Anthropic's own dialect knows its model; one who spoke another must not fail
because of a parameter that is harmless elsewhere (a temperature, an effort).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

_NUMBER = re.compile(r"(?:^|[-.])(\d{1,2})(?=$|[-.@:])")  # a date has more digits


@dataclass(frozen=True, slots=True)
class Habits:
    """How one generation wants to be asked."""

    thinking: Literal["none", "budget", "adaptive"]
    sampling: Literal["free", "one", "none"]  # of temperature and top_p; none: not even top_k
    begun: bool = True  # goes on with an answer that was begun for it


# The newest row whose version is not above the model's.
_ROWS = (
    ((0, 0), Habits("none", "free")),
    ((3, 7), Habits("budget", "free")),
    ((4, 1), Habits("budget", "one")),
    ((4, 6), Habits("adaptive", "one", begun=False)),
    ((4, 7), Habits("adaptive", "none", begun=False)),
)

BUDGETS = {  # tokens of thinking for an effort, where the wire speaks in tokens
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16384,
    "xhigh": 32000,
    "max": 32000,
}
EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high"}  # else "max"


@lru_cache(512)
def habits_of(model: str) -> Habits:
    """The habits of a model by the version in its name; a name without one is taken as new."""
    version = _version(model)
    return next(habits for since, habits in reversed(_ROWS) if since <= version)


def _version(model: str) -> tuple[int, int]:
    _, claude, name = model.rpartition("claude-")
    found = [int(number) for number in _NUMBER.findall(name)] if claude else []
    if not found:
        return (99, 0)
    return (found[0], found[1] if len(found) > 1 else 0)
