"""Copies of what agents are asked and what they say, as deep as whoever gets them needs."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

_ATOMS = frozenset({str, int, float, bool, type(None), bytes})

Copy = Callable[[object], object]


def copied(value: object, other: Copy = deepcopy) -> object:
    """A value that can be edited without anybody else noticing.

    JSON-like values take the short way, all else is up to `other`.
    """
    if type(value) is dict:
        for inner in value.values():
            if type(inner) not in _ATOMS:
                return {key: copied(each, other) for key, each in value.items()}
        return value.copy()
    if type(value) in _ATOMS:
        return value
    if type(value) is list:
        return [copied(inner, other) for inner in value]
    return other(value)


def handed(value: object) -> object:
    """What an agent says, for its caller: an answer that is given again and again stays as it is.

    Only JSON-like values are copied. Anything else may be alive, a stream or a session, of which
    a copy would be dead; it is the very thing, and so is what is too deep to copy.
    """
    try:
        return copied(value, _itself)
    except RecursionError:
        return value


def noted(value: object) -> object:
    """A copy for the record, or why there is none: a record without an answer beats no record."""
    try:
        return copied(value)
    except Exception as error:  # noqa: BLE001 - copying runs anybody's code
        return {"not_copied": f"{type(error).__name__}: {error}"}


def _itself(value: object) -> object:
    return value
