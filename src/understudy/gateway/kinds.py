"""What a value in a file must be: a test, and the words for it. Knows no keys."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """A test, and the words for it."""

    words: str
    fits: Callable[[object], bool]
    names: tuple[str, ...] = ()  # all there are, if they are words


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def number(least: float, words: str, most: float = math.inf) -> Kind:
    return Kind(words, lambda v: is_number(v) and least <= float(str(v)) <= most)


def whole(least: int, words: str) -> Kind:
    return Kind(words, lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= least)


def one_of(*names: str) -> Kind:
    return Kind(f"one of {', '.join(names)}", lambda v: v in names, names)


TEXT = Kind("a text", lambda v: isinstance(v, str) and v != "")
FLAG = Kind("true or false", lambda v: isinstance(v, bool))
WAIT = number(0, "seconds, 0 or more")
COUNT = whole(1, "a whole number, 1 or more")
RETRIES = whole(0, "a whole number, 0 or more")
