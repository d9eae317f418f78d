"""Cues of a script as outcomes: for a `Fake`, or as steps on the wire."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from understudy.core.errors import ProviderError
from understudy.core.faults import Fault
from understudy.providers.fake import HANG as SILENCE
from understudy.providers.fake import Chunks, Fake, Http, Outcome, Pause
from understudy.rehearse.named import Named
from understudy.rehearse.script import Clause, Cue, ScriptError, Status, Text, Timed
from understudy.rehearse.wire import (
    CLOSE,
    GOOD,
    GOOD_STREAM,
    HANG,
    Drip,
    First,
    Open,
    Reply,
    Rest,
    Steps,
)

DEFAULT = "hello from {model}"


def outcome(cue: Cue) -> Outcome:
    """What a `Fake` is told; raises ScriptError for what only bytes can show."""
    match cue:
        case Status(number=number, after=after):
            return Http(number, headers={} if after is None else {"retry-after": f"{after:g}"})
        case Text(text=text):
            return text
        case Named(outcome=make):
            return _made(cue) if make is None else make()
        case Timed(verb="hang"):
            return SILENCE
        case Timed(verb="pause"):
            return Pause(cue.amount)
        case Timed(verb="cut"):
            broken = ProviderError(Fault.STALL_MID_STREAM, message="broke off")
            return Chunks(*("half",) * int(cue.amount), broken)
    raise ScriptError(f"{_shown(cue)} is a matter of bytes; use `understudy fake`")


def _made(cue: Named) -> Outcome:
    raise ScriptError(f"{cue.name!r} is a matter of bytes; use `understudy fake`")


def _shown(cue: Cue) -> str:
    return repr(f"{cue.verb}({cue.amount:g})" if isinstance(cue, Timed) else str(cue))


def scripted(clauses: Iterable[Clause], fakes: dict[str, Fake]) -> tuple[str, ...]:
    """Hand every clause to the fake of its provider; the targets, in order."""
    targets = []
    for clause in clauses:
        provider, slash, model = clause.target.partition("/")
        if not (provider and slash and model):
            raise ScriptError(f"{clause.target!r} is no target; write provider/model")
        if clause.repeats:
            raise ScriptError(f"{clause.target!r}: '...' is for servers; say how often with '*3'")
        fakes[provider].script(model, *map(outcome, clause.cues))
        targets.append(clause.target)
    return tuple(targets)


def on_wire(clause: Clause) -> Queue:
    """The clause for a server; raises ScriptError for what happens before one is reached."""
    for cue in clause.cues:
        if isinstance(cue, Named) and not cue.seen:
            raise ScriptError(f"{cue.name!r} happens before a server is reached; script a `Fake`")
    return Queue(clause)


def steps(cue: Cue, *, stream: bool) -> Steps:
    """What goes over the wire. A fault that this form of answer cannot show is a good answer."""
    match cue:
        case Status(number=number, after=after):
            headers = () if after is None else (("retry-after", f"{after:g}"),)
            return (Reply(number, b"", headers=headers),)
        case Named():
            return cue.steps(stream=stream) or good(stream=stream)
        case Timed(amount=amount):
            return _timed(int(amount), amount, stream=stream)[cue.verb]
        case Text():
            return good(stream=stream)


def _timed(count: int, seconds: float, *, stream: bool) -> dict[str, Steps]:
    half: Steps = (Open(), First(count), CLOSE) if stream else (Reply(missing=9), CLOSE)
    return {
        "hang": (HANG,),
        "pause": (Rest(seconds),),
        "cut": half,
        "drip": (Drip(seconds, stream),),
    }


def good(*, stream: bool) -> Steps:
    return GOOD_STREAM if stream else GOOD


class Queue:
    """What is left of one clause. Empty: every further request is answered well."""

    def __init__(self, clause: Clause) -> None:
        self.repeats = clause.repeats
        self._all = clause.cues
        self._left = deque(clause.cues)

    def next(self) -> list[Cue]:
        """The pauses before the next outcome, and the outcome if one is left."""
        taken: list[Cue] = []
        while self._left or (self.repeats and not taken):
            if not self._left:
                self._left.extend(self._all)
            taken.append(self._left.popleft())
            if not (isinstance(taken[-1], Timed) and taken[-1].verb == "pause"):
                break
        return taken
