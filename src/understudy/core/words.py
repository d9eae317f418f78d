"""How numbers are told to people, the same everywhere."""

from __future__ import annotations


def in_seconds(seconds: float) -> str:
    """`0.25 s`, `4.2 s`, `1800 s`: three figures, never an exponent."""
    if seconds >= 100:
        return f"{seconds:.0f} s"
    return f"{seconds:.3g} s" if seconds >= 0.0001 else "0 s"
