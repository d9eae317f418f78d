"""Copies that share nothing. JSON-like values take the short way, all else `copy.deepcopy`."""

from __future__ import annotations

from copy import deepcopy

_ATOMS = frozenset({str, int, float, bool, type(None), bytes})


def copied(value: object) -> object:
    """A value that can be edited without anybody else noticing."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is dict:
        assert isinstance(value, dict)
        return {k: v if type(v) in _ATOMS else copied(v) for k, v in value.items()}
    if kind is list:
        assert isinstance(value, list)
        return [v if type(v) in _ATOMS else copied(v) for v in value]
    return deepcopy(value)
