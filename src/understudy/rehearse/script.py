"""The mini-language of rehearsals: who does what, in which order. Pure; errors say where.

    p/a: 503 429(7) reset-mid-stream; p/b: 'hello'

A clause is a target, a colon, a blank, and outcomes: a status, `429(7)` for one that says to come
back in 7 s, a quoted text, a fault of the catalogue, `hang`, `pause(3)` before the next outcome,
`cut(2)` after two events of a stream, `drip(0.1)` seconds a byte, and `*3` after any of them for
three times. `...` at the end repeats the clause for ever. Clauses end at `;` or a line's end; a
line may end in a comment that begins with `# `.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from understudy.core.errors import UnderstudyError
from understudy.rehearse.catalogue import CATALOGUE, suggestion
from understudy.rehearse.named import Named


@dataclass(frozen=True, slots=True)
class Status:
    """A bare HTTP status, perhaps with a delay."""

    number: int
    after: float | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """A good answer of these words."""

    text: str


@dataclass(frozen=True, slots=True)
class Timed:
    """`hang`, `pause`, `cut` or `drip`, and how much of it."""

    verb: str
    amount: float = 0.0


Cue = Status | Text | Timed | Named


@dataclass(frozen=True, slots=True)
class Clause:
    """What one target does, outcome by outcome."""

    target: str
    cues: tuple[Cue, ...]
    repeats: bool = False


class ScriptError(UnderstudyError, ValueError):
    """A script that cannot be read; says what is wrong and where."""


TOKEN = re.compile(
    r"""(?P<blank>[ \t]+)
      | (?P<text>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
      | (?P<more>\.\.\.)
      | \*(?P<times>\d+)
      | (?P<word>[A-Za-z0-9][A-Za-z0-9_-]*)(?:\((?P<amount>[^)\n]*)\))?
    """,
    re.X,
)
COMMENT = re.compile(r"#(?=[ ]|$)")
VERBS = {"hang": False, "pause": True, "cut": True, "drip": True}  # does it take a number
ESCAPES = {"n": "\n", "t": "\t"}
MOST = 10_000  # outcomes of one clause


def parse(script: str) -> tuple[Clause, ...]:
    """The clauses of a script, in order; raises ScriptError."""
    found = [_Reader(text, line, column).clause() for text, line, column in _clauses(script)]
    if not found:
        raise ScriptError("the script is empty; write for example \"p/a: 503 'hello'\"")
    seen: set[str] = set()
    for clause in found:
        if clause.target in seen:
            raise ScriptError(f"{clause.target!r} has two clauses; put them into one")
        seen.add(clause.target)
    return tuple(found)


def _clauses(script: str) -> Iterator[tuple[str, int, int]]:
    """Text, line and column of each clause that is not blank."""
    for number, line in enumerate(script.split("\n"), 1):
        for start, end in _parts(line):
            text = line[start:end]
            if text.strip():
                yield text, number, start + 1


def _parts(line: str) -> Iterator[tuple[int, int]]:
    """Cut a line at semicolons and comments that are not within quotes."""
    start, quote, place = 0, "", 0
    while place < len(line):
        mark = line[place]
        if quote:
            place += mark == "\\"
            quote = "" if mark == quote else quote
        elif mark in "'\"":
            quote = mark
        elif mark == ";":
            yield start, place
            start = place + 1
        elif COMMENT.match(line, place) and line[:place][-1:] in ("", " ", "\t"):
            break
        place += 1
    yield start, min(place, len(line))


@dataclass(slots=True)
class _Reader:
    text: str
    line: int
    column: int

    def clause(self) -> Clause:
        head = re.match(r"\s*(\S+?):(?=\s|$)", self.text)
        if head is None:
            raise self.wrong(0, "a clause begins with a target and a colon, like 'p/a: 503'")
        cues: list[Cue] = []
        repeats = False
        place = head.end()
        while place < len(self.text):
            token = TOKEN.match(self.text, place)
            if token is None:
                word = (self.text[place:].split() or [self.text[place:]])[0]
                raise self.wrong(place, f"cannot read {word!r}")
            if repeats and token["blank"] is None:
                raise self.wrong(place, "'...' stands at the end of a clause")
            repeats = repeats or token["more"] is not None
            self._take(token, cues)
            place = token.end()
        if not cues:
            raise self.wrong(head.end() - 1, f"{head[1]!r} has no outcomes")
        return Clause(head[1], tuple(cues), repeats)

    def _take(self, token: re.Match[str], cues: list[Cue]) -> None:
        if token["times"] is not None:
            times = int(token["times"])
            if not cues or not 1 <= times <= MOST:
                raise self.wrong(token.start(), f"'*N' follows an outcome, N from 1 to {MOST}")
            cues.extend(cues[-1:] * (times - 1))
        elif token["text"] is not None:
            cues.append(Text(_unquoted(token["text"])))
        elif token["word"] is not None:
            cues.append(self._cue(token))

    def _cue(self, token: re.Match[str]) -> Cue:
        word, amount = token["word"], token["amount"]
        if word in CATALOGUE and amount is None:
            return CATALOGUE[word]
        if word in VERBS:
            if VERBS[word] != (amount is not None):
                shown = f"{word}(3)" if VERBS[word] else word
                raise self.wrong(token.start(), f"write {shown!r}")
            return Timed(word, 0.0 if amount is None else self._number(token))
        if re.fullmatch(r"[1-5]\d\d", word):
            return Status(int(word), None if amount is None else self._number(token))
        if word.isdigit():
            raise self.wrong(token.start(), f"{word} is no HTTP status")
        if amount is not None:
            raise self.wrong(token.start(), f"{word!r} takes no number in brackets")
        raise self.wrong(token.start(), f"unknown outcome {word!r}{suggestion(word)}")

    def _number(self, token: re.Match[str]) -> float:
        try:
            number = float(token["amount"])
        except ValueError:
            number = -1.0
        if not 0 <= number < 1e9:
            shown = f"{token['word']}({token['amount']})"
            raise self.wrong(token.start(), f"{shown!r} needs a number, 0 or more")
        return number

    def wrong(self, place: int, what: str) -> ScriptError:
        where = f"column {self.column + place}"
        if self.line > 1:
            where = f"line {self.line}, {where}"
        return ScriptError(f"{where}: {what}")


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: ESCAPES.get(m[1], m[1]), text[1:-1])
