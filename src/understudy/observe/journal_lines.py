"""The lines of a journal: what each kind holds, to bytes and back. Shared with whoever replays it.

Times are seconds of the process's own clock, counted from the run's start. No line has a place
for a prompt, a body, a provider's sentence or a key: credentials are known by their labels.
"""

from __future__ import annotations

import math
from dataclasses import fields

import msgspec

from understudy.core.errors import FROM_HERE
from understudy.core.faults import Fault
from understudy.core.health import Bench, Change, Cooldown, HealthTracker, State
from understudy.core.policy import Mark, Policy, Retry, Rule, Scope, Then
from understudy.core.target import Attempt

VERSION = 1
STALLS = (Fault.STALL_PRE_FIRST_BYTE, Fault.STALL_MID_STREAM)


class Line(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", gc=False):
    """One line; `kind` says which."""


class Rules(msgspec.Struct, frozen=True, omit_defaults=True):
    """A policy: its name, its table and its numbers."""

    name: str
    rows: dict[str, tuple[str, bool, str, str, str]]
    numbers: dict[str, float | None]


class Settings(msgspec.Struct, frozen=True, omit_defaults=True):
    """What decisions depend on, but for the chains."""

    policy: Rules
    policies: dict[str, Rules]  # by alias, where it differs
    cooldown: dict[str, float]
    timeout: float | None  # seconds, a whole request; None: no limit


class Head(Line, frozen=True, tag="head"):
    """The first line of every file, and of every run within one."""

    version: int
    run: str  # one process from start to end
    part: int  # files of this run, from 1
    at: float
    epoch: float  # wall clock at the run's start, epoch seconds
    era: int  # reloads so far
    settings: Settings


class Reloaded(Line, frozen=True, tag="reload"):
    """Requests that come from here on are treated thus."""

    at: float
    era: int
    settings: Settings


class Held(msgspec.Struct, frozen=True, omit_defaults=True):
    """One marked key, as the tracker shows it."""

    failures: int = 0
    rounds: int = 0
    probing: bool = False
    bench: Benched | None = None


class Marks(Line, frozen=True, tag="marks"):
    """Everything held against anybody at this moment; a replay may begin here."""

    at: float
    held: dict[str, Held] = {}
    budget: float | None = None  # retries left


class Member(msgspec.Struct, frozen=True, omit_defaults=True):
    """One target of a chain."""

    target: str
    credentials: tuple[str, ...] = ("default",)
    window: int | None = None  # tokens; told once an overflow made it matter


class Chain(Line, frozen=True, tag="chain"):
    """Whom a name stands for; requests point to it by number."""

    n: int
    era: int
    model: str  # as clients name it
    members: tuple[Member, ...]


class Tried(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One attempt."""

    target: str
    outcome: str
    began: float
    seconds: float = 0.0
    fault: str = ""
    status: int | None = None
    retry_after: float | None = None
    n: int = 0
    credential: str = ""
    then: str = ""
    benched: float | None = None  # seconds it benched somebody for; -1: until cleared
    first: float | None = None  # seconds to the first content
    late: bool = False  # it was the request's own time that was up
    ours: bool = False  # our own machine failed, out of files or cut off

    @property
    def blameless(self) -> bool:
        """Was it nothing that the target did?"""
        return self.late or self.ours

    @property
    def end(self) -> float:
        return self.began + self.seconds

    @property
    def word(self) -> str:
        return self.fault if self.outcome == "failed" else self.outcome

    @property
    def bench(self) -> float:
        """Seconds it benched somebody for, 0 if nobody."""
        return math.inf if self.benched == -1.0 else self.benched or 0.0


class Going(Line, frozen=True, tag="attempt"):
    """An attempt that failed while its request goes on; told again when that is over."""

    id: str
    at: float
    chain: int
    stream: bool
    attempt: Tried
    strict: bool = False
    within: float | None = None


class Done(Line, frozen=True, tag="request"):
    """One finished request."""

    id: str
    at: float  # when it came
    chain: int  # 0: it was turned away before a chain was found
    stream: bool
    outcome: str
    status: int
    seconds: float
    attempts: tuple[Tried, ...] = ()
    strict: bool = False  # its client asked for the stricter table
    within: float | None = None  # seconds, if its client set itself a limit


class Benched(Line, frozen=True, tag="bench"):
    """The tracker benched a key: for a failure, by an operator's order or another process's."""

    key: str
    at: float  # when we were told
    since: float
    until: float | None  # None: until cleared
    fault: str = ""
    scope: str = "target"
    source: str = "rule"
    remote: bool = False
    rounds: int = 0  # remote: benches that were counted by then

    @property
    def ordered(self) -> bool:
        return self.remote or self.source == "operator"


class Cleared(Line, frozen=True, tag="clear"):
    """The tracker forgot a key."""

    key: str
    at: float
    source: str = "success"  # or operator, remote

    @property
    def ordered(self) -> bool:
        return self.source != "success"


class Lost(Line, frozen=True, tag="lost"):
    """Lines that should stand here and could not be written."""

    at: float
    lines: int


Entry = Head | Reloaded | Marks | Chain | Going | Done | Benched | Cleared | Lost
ENCODER = msgspec.json.Encoder()
DECODER: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Entry)


def rules_of(policy: Policy) -> Rules:
    rows = {
        str(fault): (str(r.retry), r.rotate, str(r.then), str(r.mark), str(r.scope))
        for fault, r in policy.rules.items()
    }
    return Rules(policy.name, rows, {name: _finite(getattr(policy, name)) for name in NUMBERS})


def policy_of(rules: Rules) -> Policy:
    """The policy as it was then, whatever its table holds today."""
    table = {
        Fault(fault): Rule(Retry(retry), rotate, Then(then), Mark(mark), Scope(scope))
        for fault, (retry, rotate, then, mark, scope) in rules.rows.items()
    }
    numbers = {name: _number(name, value) for name, value in rules.numbers.items()}
    return Policy(rules.name, table, **numbers)  # type: ignore[arg-type]


def cooldown_of(numbers: dict[str, float]) -> Cooldown:
    whole = {"threshold": int(numbers["threshold"]), "probe": bool(numbers["probe"])}
    return Cooldown(**{**numbers, **whole})  # type: ignore[arg-type]


def tried(attempt: Attempt, start: float) -> Tried:
    """An attempt without its words: a provider's may quote the prompt."""
    late = attempt.fault in STALLS or (attempt.outcome == "skipped" and attempt.fault is None)
    return Tried(
        attempt.target,
        attempt.outcome,
        attempt.began - start,
        attempt.seconds,
        str(attempt.fault or ""),
        attempt.status,
        attempt.retry_after,
        attempt.n,
        attempt.credential,
        attempt.then,
        -1.0 if attempt.benched == math.inf else attempt.benched or None,
        attempt.first_content,
        late and out_of_time(attempt.reason),
        attempt.fault is Fault.TRANSIENT and FROM_HERE in attempt.reason,
    )


def out_of_time(reason: str) -> bool:
    """Was it the caller's deadline? The walk tells such a stall apart in its reason only."""
    return "no time left" in reason or "time was up" in reason


def benched(bench: Bench, now: float, start: float) -> Benched:
    return Benched(
        bench.key,
        now - start,
        bench.since - start,
        None if bench.until == math.inf else bench.until - start,
        str(bench.fault or ""),
        bench.scope,
        bench.source,
    )


def turned(change: Change, health: HealthTracker, start: float) -> Benched | Cleared:
    """A change of the tracker. An operator's own words stay out."""
    now = health.clock()
    if change.bench is None:
        return Cleared(change.key, now - start, change.source)
    told = benched(change.bench, now, start)
    if change.source != "remote":
        return told
    return msgspec.structs.replace(told, remote=True, rounds=health.rounds(change.key))


def held(state: State, start: float) -> Held:
    bench = None if state.bench is None else benched(state.bench, state.bench.since, start)
    return Held(state.failures, state.rounds, state.probing, bench)


def _finite(value: float | None) -> float | None:
    """JSON knows no infinity."""
    return None if value is None or value == math.inf else float(value)


def _number(name: str, value: float | None) -> object:
    if value is None:
        return math.inf if name != "budget_ratio" else None
    return {"transient_retries": int, "advance_on_permanent": bool}.get(name, float)(value)


NUMBERS = tuple(spec.name for spec in fields(Policy) if spec.name not in ("name", "rules"))
