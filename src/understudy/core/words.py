"""How numbers are told to people, the same everywhere."""

from __future__ import annotations


def in_seconds(seconds: float) -> str:
    """`0.25 s`, `4.2 s`, `1800 s`: three figures, never an exponent."""
    return f"{seconds:.0f} s" if seconds >= 100 else f"{seconds:.3g} s"
