"""How long things take: distributions as tables of equally likely values.

A table is drawn from with twelve random bits, which costs a tenth of what the formulas would at
every draw. The price: beyond one in 8,192 there is no longer tail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

BITS = 12
SIZE = 1 << BITS


@dataclass(frozen=True, slots=True)
class Chance:
    """A distribution by its kind and two numbers; see `KINDS` for what they mean."""

    kind: str
    a: float
    b: float = 0.0

    def at(self, share: float) -> float:
        """The value below which this share of all draws lies."""
        match self.kind:
            case "uniform":
                return self.a + (self.b - self.a) * share
            case "exponential":
                return -self.a * math.log(1.0 - share)
            case "lognormal":
                return self.a * math.exp(self.b * NormalDist().inv_cdf(share))
            case _:
                return self.a

    @property
    def median(self) -> float:
        return self.at(0.5)

    def table(self) -> tuple[float, ...]:
        return _table(self)


@lru_cache(maxsize=64)
def _table(chance: Chance) -> tuple[float, ...]:
    """Kept, because a sweep asks for the same few again and again."""
    if chance.kind == "constant":
        return (chance.a,) * SIZE
    return tuple(chance.at((n + 0.5) / SIZE) for n in range(SIZE))


def constant(value: float) -> Chance:
    return Chance("constant", value)


# The keys that say which distribution is meant, in the order of `a` and `b`.
KINDS = {
    "uniform": ("low", "high"),
    "exponential": ("mean",),
    "lognormal": ("median", "sigma"),
}
