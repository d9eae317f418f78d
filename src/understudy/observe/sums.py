"""The counts of several processes as one: texts for Prometheus in, their sum out. Pure.

Counters and histograms add up, and so do gauges, but for those of the table below. What a process
counted before it ended still counts: a sum that sinks would be taken for a restart of them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

LASTING = ("counter", "histogram")
# Everybody knows of the same benches and of the same neighbours.
GAUGES: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "understudy_benched": max,
    "understudy_share_connected": min,
    "understudy_limits_shared": min,
}


@dataclass(slots=True)
class Family:
    """One metric: its comments, and its samples by name and labels as they are written."""

    name: str
    kind: str = "untyped"
    comments: list[str] = field(default_factory=list)
    samples: dict[str, Decimal] = field(default_factory=dict)

    def add(self, other: Family) -> None:
        join = GAUGES.get(self.name, Decimal.__add__)
        for sample, value in other.samples.items():
            known = self.samples.get(sample)
            self.samples[sample] = value if known is None else join(known, value)

    def lines(self) -> Iterator[str]:
        yield from self.comments
        for sample, value in self.samples.items():
            yield f"{sample} {value:f}"


def added(texts: Iterable[str]) -> str:
    """One text for all; metrics stand in the order of those who name them first."""
    found: dict[str, Family] = {}
    for text in texts:
        for family in families(text):
            known = found.get(family.name)
            if known is None:
                found[family.name] = family
            else:
                known.add(family)
    return _written(found.values())


def lasting(text: str) -> str:
    """What still counts when its process is gone."""
    return _written(family for family in families(text) if family.kind in LASTING)


def families(text: str) -> Iterator[Family]:
    """Samples belong to the family whose TYPE stands above them."""
    family = Family("")
    for line in text.splitlines():
        if line.startswith("#"):
            _, word, name, *rest = [*line.split(" ", 3), "", ""]
            if word not in ("HELP", "TYPE"):
                continue
            if name != family.name:
                if family.name:
                    yield family
                family = Family(name)
            family.comments.append(line)
            family.kind = rest[0] if word == "TYPE" else family.kind
        elif line:
            sample, _, value = line.rpartition(" ")
            try:
                family.samples[sample] = Decimal(value)
            except InvalidOperation:
                continue  # not a number; a broken text must not cost us the others
    if family.name:
        yield family


def _written(found: Iterable[Family]) -> str:
    return "".join(f"{line}\n" for family in found for line in family.lines())
