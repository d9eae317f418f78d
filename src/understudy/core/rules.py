"""What a rule of the classifier is, and how a row matches. The rows are in `rules_*.py`.

A row says what it looks for, which fault that means, and shows a recorded sample that proves it.
Phrases are lower case; `…` stands for a short gap, `*` for one word, `^` and `$` for the ends of
a message.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from understudy.core.evidence import squash
from understudy.core.faults import Fault

SERVER = range(500, 600)
SILENT = (0,)  # no status that decides: none at all, or a 200


class Sample(NamedTuple):
    """One recorded failure, as short as it can be and still be itself."""

    status: int | None = None
    body: str = ""
    provider: str = ""
    error: str = ""
    headers: Mapping[str, str] = {}
    stream: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: it matches when one of its codes or phrases does and all its conditions hold."""

    name: str
    fault: Fault
    sample: Sample
    codes: str = ""  # machine words in any spelling, with blanks between them
    says: str = ""  # phrases of the message, one a line or with bars between them
    status: Collection[int] = ()  # condition: any of these, if there are any; 0 is no status
    unless: Collection[int] = ()  # condition: none of these
    provider: tuple[str, ...] = ()  # condition: a part of the provider's name

    def words(self) -> list[str]:
        return self.codes.split()

    def phrases(self) -> list[str]:
        lines = (piece.strip() for piece in re.split(r"[|\n]", self.says))
        return [phrase for phrase in lines if phrase]


_PLACED = re.compile(r":(?:\d+|error)$")  # `error:1113`: a number, and the object it stands in


class Saying(NamedTuple):
    """One phrase of one rule, with the piece of it that is looked for first."""

    needle: str
    phrase: str
    rule: Rule


def by_code(groups: Iterable[Iterable[Rule]]) -> dict[str, tuple[int, Rule]]:
    """Codes to rules, each with its weight: the place of its group."""
    index: dict[str, tuple[int, Rule]] = {}
    for weight, group in enumerate(groups):
        for rule in group:
            for code in rule.words():
                index.setdefault(code if _PLACED.search(code) else squash(code), (weight, rule))
    return index


@dataclass(frozen=True, slots=True)
class Phrasebook:
    """Many phrases, found through the beginnings of their first words."""

    sayings: tuple[Saying, ...]
    starts: dict[str, tuple[int, ...]]  # first letters of a first word to places in `sayings`
    always: tuple[int, ...]  # phrases in scripts without blanks

    @classmethod
    def of(cls, rules: Iterable[Rule]) -> Phrasebook:
        table = sayings(rules)
        starts: dict[str, tuple[int, ...]] = {}
        for place, saying in enumerate(table):
            if saying.needle.isascii():
                start = _WORD.findall(saying.phrase)[0][:START]
                starts[start] = (*starts.get(start, ()), place)
        foreign = tuple(i for i, s in enumerate(table) if not s.needle.isascii())
        return cls(table, starts, foreign)

    def said(self, text: str) -> Iterator[Saying]:
        """The phrases that stand in a text, in order."""
        places = set() if text.isascii() else set(self.always)
        for start in {word[:START] for word in _WORD.findall(text)}:
            places.update(self.starts.get(start, ()))
        return said(text, (self.sayings[place] for place in sorted(places)))


START = 5
_WORD = re.compile(r"[a-z0-9]+")


def sayings(rules: Iterable[Rule]) -> tuple[Saying, ...]:
    """The phrases of these rules in order."""
    return tuple(
        Saying(max(re.split(r" … |[*^$]", phrase), key=len), phrase, rule)
        for rule in rules
        for phrase in rule.phrases()
    )


def said(text: str, table: Iterable[Saying]) -> Iterator[Saying]:
    """The phrases of a table that stand in a text, in the table's order."""
    for saying in table:
        needle, phrase, _ = saying
        if needle in text and (needle == phrase or _pattern(phrase).search(text)):
            yield saying


def holds(rule: Rule, status: int | None, provider: str) -> bool:
    """Do the conditions of a rule hold here?"""
    number = status or 0
    return (
        (not rule.status or number in rule.status)
        and number not in rule.unless
        and (not rule.provider or any(part in provider for part in rule.provider))
    )


_SIGNS = ((r"\ …\ ", r"[^\n]{0,80}?"), (r"\*", r"\S{1,120}"), (r"\^", "\n"), (r"\$", r"[.!]?\n"))


@cache
def _pattern(phrase: str) -> re.Pattern[str]:
    escaped = re.escape(phrase)
    for sign, meaning in _SIGNS:
        escaped = escaped.replace(sign, meaning)
    return re.compile(escaped)
