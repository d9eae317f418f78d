"""How times and names are told to people, the same everywhere. `ui/words.js` does it too."""

from __future__ import annotations

import math
from collections.abc import Iterable
from difflib import get_close_matches

LONG = 80  # characters; a longer name is none, and to compare it takes long
PLAIN = 600  # seconds; up to here they are told as seconds
# Each unit in seconds, and the one that tells the rest.
UNITS = ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


def in_seconds(seconds: float) -> str:
    """`0.25 s`, `4.2 s`, `300 s`; what is long in two units: `29 min 38 s`, `2 d 23 h`."""
    if seconds < 100:
        return f"{seconds:.3g} s" if seconds >= 0.0001 else "0 s"
    if math.isinf(seconds):
        return "inf s"
    whole = round(seconds)  # first: what was told as 600 s comes back as a little more
    if whole <= PLAIN:
        return f"{whole} s"
    size, unit, small, less = next(row for row in UNITS if whole >= row[0])
    rest = whole % size // small
    return f"{whole // size} {unit} {rest} {less}" if rest else f"{whole // size} {unit}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Which of them was meant, perhaps; "" if none is near. Capitals do not count."""
    if len(name) > LONG:
        return ""
    plain = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), plain, n=1)
    return plain[near[0]] if near else ""


def meant(name: str, known: Iterable[str]) -> str:
    """`did you mean 'retries'?`, or "" if none is near."""
    near = nearest(name, known)
    return f"did you mean {near!r}?" if near else ""


def meant_or_known(name: str, known: Iterable[str]) -> str:
    """The end of a sentence: which of them was meant, or else all there are."""
    names = sorted(known)
    asked = meant(name, names) or (f"known: {', '.join(names)}" if names else "")
    return f"; {asked}" if asked else ""


def plural(count: int, noun: str) -> str:
    """`1 attempt`, `2 attempts`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
