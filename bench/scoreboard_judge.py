"""The cases of the scoreboard, what a client saw of one, and whether that is right.

What ought to come of a fault is read from the catalogue and nowhere else; every product is judged
by the same rows. Knows no product, asks nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from understudy.rehearse.catalogue import ROWS
from understudy.rehearse.cues import DEFAULT
from understudy.rehearse.named import FINE, Named
from understudy.rehearse.phrases import voice
from understudy.rehearse.wire import Reply

TAIL = "every word of this is the tail's"
DIALECTS = ("openai", "anthropic")
# No server can show these: an address does. Nobody counts the calls there.
BY_ADDRESS = ("refused", "unknown-host", "bad-certificate")
# A hundred megabytes each. One dialect is enough: what matters is how much, not what.
LARGE = ("too-large", "gzip-bomb", "endless-line")
FILTERED = ("content_filter", "refusal")
CONTROL = Named("healthy", "nothing is wrong with the head", None, FINE)


class Ought(StrEnum):
    """What must come of a fault, by the contract."""

    TAIL = "the tail's whole answer"
    BROKEN = "the head's text so far, an error event, no end mark"
    TOLD = "the head's refusal, no call of the tail"
    OWN = "the head's own answer, no call of the tail"


@dataclass(frozen=True, slots=True)
class Case:
    """One fault in one form of answer and one dialect. Its name is the model at both targets."""

    fault: Named
    dialect: str
    stream: bool
    name: str

    @property
    def ought(self) -> Ought:
        if self.fault.fault is None:
            return Ought.OWN
        if self.fault.late:
            return Ought.BROKEN
        return Ought.TOLD if self.fault.then[1] == "stop" else Ought.TAIL

    @property
    def once(self) -> bool:
        """No policy of the contract asks the head again within the request."""
        return "retry" not in self.fault.then

    @property
    def counted(self) -> bool:
        return self.fault.name not in BY_ADDRESS

    @property
    def status(self) -> int:
        """Of the head's refusal; 200 where it has none."""
        steps = self.fault.steps(stream=self.stream) or ()
        return next((step.status for step in steps if isinstance(step, Reply)), 200)

    @property
    def own(self) -> str:
        """What the head says if it gets to the end."""
        text = DEFAULT.format(model=self.name)
        said = {
            "filtered": "",
            "duplicate-event": voice(self.dialect, self.name, text).halves[0] + text,
        }
        return said.get(self.fault.name, text)

    @property
    def expected(self) -> str:
        ought = self.ought
        if ought is Ought.TOLD:
            return f"status {self.status} from the head, no call of the tail"
        return f"{ought}; head asked once" if ought is Ought.TAIL and self.once else str(ought)


def cases(dialects: Sequence[str] = DIALECTS) -> list[Case]:
    """Every fault of the catalogue in every form that can show it."""
    found = [
        (fault, dialect, stream)
        for dialect in dialects
        for stream in (False, True)
        for fault in ROWS
        if dialect in fault.dialects and _shows(fault, stream=stream)
        if fault.name not in LARGE or dialect == dialects[0]
    ]
    return [Case(*what, f"case-{number:03}") for number, what in enumerate(found)]


def controls(dialects: Sequence[str] = DIALECTS) -> list[Case]:
    """A healthy head: who does not answer these is not set up rightly."""
    ways = [(dialect, stream) for dialect in dialects for stream in (False, True)]
    return [Case(CONTROL, *way, f"healthy-{number}") for number, way in enumerate(ways)]


def _shows(fault: Named, *, stream: bool) -> bool:
    return fault.name in BY_ADDRESS or fault.steps(stream=stream) is not None


@dataclass(frozen=True, slots=True)
class Seen:
    """What the client of one request saw, and what the upstreams counted."""

    status: int  # 0: no answer at all
    text: str = ""
    finish: str = ""  # the reason given for the end
    whole: bool = False  # a stream's end mark came; a plain answer is one
    error: str = ""  # what an error in the body said
    garbled: bool = False  # something in the body is not what a client can read
    ended: bool = True  # before the client gave up
    cut: bool = False  # the connection broke in the middle
    seconds: float = 0.0
    head: int | None = 1  # calls; None: nobody can count them
    tail: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Right or wrong, and in a few words what was seen."""

    right: bool
    seen_right: bool  # the same, however often the head was asked
    words: str


Check = Callable[[Case, Seen], bool]


def _answered(case: Case, seen: Seen, text: str) -> bool:
    fine = seen.status == 200 and seen.whole and bool(seen.finish) and not seen.error
    sound = seen.ended and not seen.cut and not seen.garbled
    return fine and sound and seen.text == text


def _tail(case: Case, seen: Seen) -> bool:
    return _answered(case, seen, TAIL) and seen.tail == 1


def _own(case: Case, seen: Seen) -> bool:
    filtered = case.fault.name != "filtered" or seen.finish in FILTERED
    return _answered(case, seen, case.own) and filtered and seen.tail == 0


def _broken(case: Case, seen: Seen) -> bool:
    """Or the tail's whole answer, if nothing of the head's was passed on by then."""
    if _tail(case, seen):
        return True
    part = seen.text and case.own.startswith(seen.text) and seen.text != case.own
    ends = seen.whole or seen.finish
    told = seen.status == 200 and seen.ended and bool(seen.error)
    return bool(part) and told and not ends and not seen.garbled and seen.tail == 0


def _told(case: Case, seen: Seen) -> bool:
    said = seen.status == case.status and bool(seen.error)
    return said and not seen.text and seen.ended and seen.tail == 0


CHECKS: dict[Ought, Check] = {
    Ought.TAIL: _tail,
    Ought.OWN: _own,
    Ought.BROKEN: _broken,
    Ought.TOLD: _told,
}


def judged(case: Case, seen: Seen) -> Verdict:
    """The one judge of all products."""
    seen_right = CHECKS[case.ought](case, seen)
    often = seen.head if case.counted and case.once and seen.head != 1 else None
    unasked = case.counted and seen.head == 0
    right = seen_right and often is None and not unasked
    return Verdict(right, seen_right, ", ".join(_words(case, seen, often)))


def _words(case: Case, seen: Seen, often: int | None) -> Iterator[str]:
    if not seen.ended:
        yield "not ended"
    if seen.status != 200:
        yield f"status {seen.status}" if seen.status else "no answer"
    if seen.text or seen.status == 200:
        yield _source(case, seen.text)
    if seen.status == 200 and (ending := _ending(case, seen)):
        yield ending
    if seen.garbled:
        yield "unreadable bytes"
    if often is not None:
        yield f"head asked {often} times"


def _source(case: Case, text: str) -> str:
    """Whose words these are."""
    own = case.own
    if text == TAIL:
        return "tail"
    if text == own:
        return "head" if text else "no text"
    if not text.strip():
        return "blank" if text else "no text"
    same = next((n for n, (a, b) in enumerate(zip(own, text, strict=False)) if a != b), len(own))
    rest = text[min(same, len(text)) :]
    if not rest:
        return "part of the head"
    if TAIL.startswith(rest) or TAIL in rest:
        return "head and tail mixed" if same else "part of the tail"
    return "other text"


def _ending(case: Case, seen: Seen) -> str:
    """How it ended, where that does not go without saying."""
    if seen.error:
        return ("error, end mark" if seen.whole else "error event") if case.stream else "error"
    if seen.cut:
        return "connection cut"
    if seen.whole:
        return "" if seen.text in (TAIL, case.own) else "ended as complete"
    return "no end mark, no error" if case.stream and seen.ended else ""
