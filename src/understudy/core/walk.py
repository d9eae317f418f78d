"""The one loop. A generator without I/O: it yields what to do next and is told how it went.

    Try(target, …)   the driver calls the target and sends the answer, or throws the error
    RELAY            sent COMMITTED (first content is in hand): carry on to the end; no other
                     target from here on, whatever happens
    Wait(seconds)    everybody is benched, one returns soon

The walk returns the answer, or raises: `ProviderError` when a fault says stop, `ChainExhausted`
when everybody failed or was skipped. Closing the generator means the caller left: nobody is
marked. Plain requests, streams, agents, the simulator and replay all drive this generator. Being
suspended *is* the state of a request, so a stream's health is told once, at its end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeVar

from understudy.core.blame import Call, blame
from understudy.core.errors import (
    ChainExhausted,
    OutOfTime,
    ProviderError,
    is_ours,
    text_of,
    untied,
)
from understudy.core.faults import Fault, Verdict
from understudy.core.policy import Mark, Retry, Rule, Scope, Then
from understudy.core.stage import (
    LOCKED_OUT,
    PROBED,
    TOO_LATE,
    Account,
    Candidate,
    Obstacle,
    Stage,
    is_out,
    obstacle,
    usable,
)
from understudy.core.target import Attempt, Observer, Target
from understudy.core.testimony import status_of

T = TypeVar("T")


class Try(NamedTuple):
    """Call this target now."""

    target: Target
    n: int  # try number on this target, from 1
    credential: str  # label
    limit: float | None = None  # seconds it may take to its first content; None: no deadline
    deadline: float = math.inf  # clock seconds at which the whole request is over


class Wait(NamedTuple):
    """Do nothing for so long."""

    seconds: float


class _Relay:
    def __repr__(self) -> str:
        return "RELAY"


RELAY: Final = _Relay()  # yielded: the stream is under way, bring it to its end
COMMITTED: Final = object()  # sent: the first content is in hand
ENOUGH: Final = object()  # sent: this was waited for long enough, go on as things are
BLAMELESS: Final = Rule(Retry.NEVER, False, Then.ADVANCE, Mark.NONE, Scope.NONE)

Step = Try | Wait | _Relay
Steps = Generator[Step, object, object]


def walk(
    chain: Sequence[Candidate],
    stage: Stage,
    *,
    deadline: float = math.inf,
    observe: Observer | None = None,
) -> Steps:
    """Answer one request by the first candidate that can."""
    trip = _Trip(chain, stage, deadline, observe)
    if stage.budget is not None:
        stage.budget.deposit()
    while pause := trip.pause():
        trip.waited += pause
        if (yield Wait(pause)) is ENOUGH:
            break
    for place, candidate in enumerate(chain):
        accounts = trip.admitted(candidate)
        retries, n = stage.policy.transient_retries, 0
        while accounts:
            n += 1
            started = stage.clock()
            if started >= deadline:
                trip.too_late(candidate, started)
                break
            attempt = _Attempt(candidate, accounts[0], started, trip, place, n)
            if (yield from attempt.make()):
                return attempt.answer
            others = trip.free(accounts[1:])
            then = attempt.consequence(retries, bool(others))
            if then == "retry":
                retries -= 1
            elif then == "rotate":
                accounts = others
            else:
                break
    raise trip.exhausted()


def run(steps: Generator[Step, object, T], act: Callable[[Step], object]) -> T:
    """The blocking driver: `act` calls a target, or waits."""
    try:
        step = next(steps)
        while True:
            try:
                answer = act(step)
            except Exception as error:  # noqa: BLE001 - the walk decides what to do with it
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()


@dataclass
class _Trip:
    """One request on its way down the chain."""

    chain: Sequence[Candidate]
    stage: Stage
    deadline: float
    observe: Observer | None
    story: list[Attempt] = field(default_factory=list)
    failures: dict[str, ProviderError | Attempt] = field(default_factory=dict)  # or skips
    floor: int | None = field(default=None, init=False)  # overflow: only larger windows will do
    waited: float = field(default=0.0, init=False)

    def pause(self) -> float:
        """Seconds to wait because all are benched and one returns soon; 0 means go on."""
        health, patience = self.stage.health, self.stage.policy.max_wait - self.waited
        # The last one first: it is seldom benched, and one who is not is enough.
        if health is None or patience <= 0 or health.unmarked(self.chain[-1].keys):
            return 0.0
        soonest, now = math.inf, self.stage.clock()
        for candidate in reversed(self.chain):
            hurdle = obstacle(candidate, self.stage)
            if hurdle is None:
                return 0.0
            soonest = min(soonest, hurdle.wait(now))
        in_time = now + soonest < self.deadline
        return soonest if soonest <= patience and in_time else 0.0

    def admitted(self, candidate: Candidate) -> tuple[Account, ...]:
        """The credentials to try this candidate with; none if something stands in the way."""
        health = self.stage.health
        if self.floor is None and (health is None or health.unmarked(candidate.keys)):
            return candidate.accounts
        hurdle = obstacle(candidate, self.stage, self.floor)
        if hurdle is None:
            if health is None or health.admit(candidate.key):
                if accounts := usable(candidate, self.stage):
                    return accounts
                hurdle = LOCKED_OUT
            else:
                hurdle = health.standing(candidate.key) or PROBED  # somebody was faster
        self.skip(candidate, hurdle)
        return ()

    def free(self, accounts: tuple[Account, ...]) -> tuple[Account, ...]:
        """Those that nobody benched while others were tried."""
        health = self.stage.health
        if health is None or not accounts:
            return accounts
        return tuple(a for a in accounts if not is_out(a, health))

    def skip(self, candidate: Candidate, hurdle: Obstacle) -> None:
        now = self.stage.clock()
        reason = f"skipped, {hurdle.told(now)}"
        fault = hurdle.fault or Fault.UNKNOWN  # no fault at all would mean that it succeeded
        attempt = Attempt(candidate.key, "skipped", fault, reason=reason, began=now)
        self.failures.setdefault(candidate.key, attempt)
        self.record(attempt)

    def too_late(self, candidate: Candidate, now: float) -> None:
        """Admitted, but the request's own time is up: somebody else may probe it."""
        self.release(candidate, now)
        self.skip(candidate, TOO_LATE)

    def release(self, candidate: Candidate, started: float) -> None:
        if self.stage.health is not None:
            self.stage.health.release(candidate.key, started)

    def share(self, place: int, now: float) -> float:
        """Seconds this candidate may take: an equal part of what is left while others remain."""
        others = sum(map(self._open, self.chain[place + 1 :]))
        return (self.deadline - now) / (1 + others)

    def _open(self, candidate: Candidate) -> bool:
        """May this one be tried, as things are now?"""
        health, floor = self.stage.health, self.floor
        clean = floor is None and (health is None or health.unmarked(candidate.keys))
        return clean or obstacle(candidate, self.stage, floor) is None

    def larger(self, place: int) -> bool:
        """After an overflow: is anybody later known to take more? Then only those from here on."""
        window = self.chain[place].window
        if window is None:
            return False
        self.floor = max(window, self.floor or 0)
        return any(c.window and c.window > self.floor for c in self.chain[place + 1 :])

    def record(self, attempt: Attempt) -> None:
        self.story.append(attempt)
        if self.observe is not None:
            self.observe(attempt)

    def exhausted(self) -> ChainExhausted:
        errors = [_told(self.failures[c.key]) for c in self.chain]
        now, hurdles = self.stage.clock(), [obstacle(c, self.stage) for c in self.chain]
        soonest = min((hurdle.wait(now) for hurdle in hurdles if hurdle), default=math.inf)
        return ChainExhausted(errors, self.story, soonest if soonest < math.inf else None)


@dataclass
class _Attempt(Call):
    """A call as a request on its way makes it."""

    trip: _Trip
    place: int
    n: int
    answer: object = field(default=None, init=False)
    error: Exception | None = field(default=None, init=False)
    committed: float | None = field(default=None, init=False)  # clock seconds of the first content

    def make(self) -> Generator[Step, object, bool]:
        """Yield the call; True when there is an `answer`, else `error` says why not."""
        trip = self.trip
        limit = None if trip.deadline == math.inf else trip.share(self.place, self.started)
        target, label = self.candidate.target, self.account.label
        try:
            answer = yield Try(target, self.n, label, limit, trip.deadline)
            if answer is COMMITTED:
                self.committed = trip.stage.clock()
                answer = yield RELAY
        except Exception as error:  # noqa: BLE001 - this is where failures are judged
            self.error = untied(error)
            return False
        except GeneratorExit:
            self._abandoned()
            raise
        self.answer = answer
        self._succeeded()
        return True

    def consequence(self, retries: int, other_credentials: bool) -> str:
        """Judge the error, mark who is to blame, and say what follows; raises to stop.

        `retries` and `other_credentials` are what is left to this target within the request.
        """
        trip = self.trip
        verdict, rule = self._judged()
        seconds = blame(trip.stage, self, verdict, rule)
        then = self._then(rule, verdict, 0 if seconds else retries, other_credentials)
        trip.failures[self.candidate.key] = self._failure(verdict)
        trip.record(self._line("failed", verdict, then, seconds))
        if then not in {"retry", "rotate"}:
            trip.release(self.candidate, self.started)
        if then == "stop":
            raise self._last_word()
        return then

    def _last_word(self) -> ProviderError:
        """The error that stops the chain. Nobody here keeps it: its traceback leads back to us."""
        self.error = None
        failure = _told(self.trip.failures.pop(self.candidate.key))
        failure.__suppress_context__ = True
        return failure

    def _judged(self) -> tuple[Verdict, Rule]:
        policy = self.trip.stage.policy
        assert self.error is not None
        if isinstance(self.error, OutOfTime):
            late = self.committed is not None
            fault = Fault.STALL_MID_STREAM if late else Fault.STALL_PRE_FIRST_BYTE
            return Verdict(fault), BLAMELESS  # what follows content is told by `_then`
        verdict = self.trip.stage.judge(self.error)
        if verdict.fault is Fault.CLIENT_DISCONNECT and not isinstance(self.error, ProviderError):
            verdict = replace(verdict, fault=Fault.TRANSIENT)  # our caller is still here (F7)
        rule = policy.rule(verdict.fault)
        return verdict, replace(BLAMELESS, then=rule.then) if is_ours(self.error) else rule

    def _then(self, rule: Rule, verdict: Verdict, retries: int, other_credentials: bool) -> str:
        if self.committed is not None:
            return "stop"
        if rule.rotate and other_credentials and self._still_welcome():
            return "rotate"
        hinted = verdict.retry_after is not None
        wanted = rule.retry is Retry.YES or (rule.retry is Retry.UNHINTED and not hinted)
        if wanted and retries > 0 and self._again():
            return "retry"
        if rule.then is Then.LARGER:
            return "advance" if self.trip.larger(self.place) else "stop"
        return str(rule.then)

    def _still_welcome(self) -> bool:
        """Has nobody benched or begun to probe this target while its credential was refused?"""
        self.trip.release(self.candidate, self.started)
        health = self.trip.stage.health
        return health is None or health.admit(self.candidate.key)

    def _again(self) -> bool:
        """Does the budget pay for a retry, and is nobody else probing this target by now?"""
        stage, candidate, account = self.trip.stage, self.candidate, self.account
        if stage.health is not None:
            if account.label not in {a.label for a in usable(candidate, stage)}:
                return False  # another request has benched this credential
            if not stage.health.admit(candidate.key):
                return False
        return stage.budget is None or stage.budget.withdraw()

    def _failure(self, verdict: Verdict) -> ProviderError:
        """The error told of this target, wrapped once; the original is its cause."""
        error, key = self.error, self.candidate.key
        if isinstance(error, ProviderError) and error.fault is verdict.fault:
            return error.at(key)
        failure = ProviderError(verdict.fault, key, status_of(error), verdict.retry_after)
        failure.__cause__ = error
        return failure

    def _succeeded(self) -> None:
        candidate, account, health = self.candidate, self.account, self.trip.stage.health
        if health is not None and not health.unmarked(candidate.keys):
            for key in (candidate.key, account.key, account.share):
                health.report_success(key, self.started)
        self.trip.record(self._line("ok"))

    def _abandoned(self) -> None:
        """The caller left: marks nobody, frees a probe's place."""
        self.trip.release(self.candidate, self.started)
        self.trip.record(self._line("cancelled", Verdict(Fault.CLIENT_DISCONNECT), "stop"))

    def _line(
        self, outcome: str, verdict: Verdict | None = None, then: str = "", seconds: float = 0.0
    ) -> Attempt:
        started, committed, error = self.started, self.committed, self.error
        return Attempt(
            self.candidate.key,
            outcome,
            None if verdict is None else verdict.fault,
            status_of(error),
            self.trip.stage.clock() - started,
            "" if error is None else _reason(error),
            self.n,
            self.account.label,
            None if verdict is None else verdict.retry_after,
            then,
            seconds,
            None if committed is None else committed - started,
            self._next(then) if then else "",
            started,
        )

    def _next(self, then: str) -> str:
        """Who comes next: the same target, or the one behind it, which may yet be skipped."""
        if then in {"retry", "rotate"}:
            return self.candidate.key
        later = self.trip.chain[self.place + 1 : self.place + 2] if then == "advance" else ()
        return later[0].key if later else ""


def _told(failure: ProviderError | Attempt) -> ProviderError:
    """A skip becomes an error when somebody has to be told of it, which is seldom."""
    if isinstance(failure, ProviderError):
        return failure
    fault = failure.fault or Fault.UNKNOWN
    return ProviderError(fault, failure.target, message=failure.reason, billing="not_sent")


def _reason(error: Exception | None) -> str:
    """The target's own words; fault and status are fields of their own."""
    if isinstance(error, ProviderError):
        return error.message or text_of(error.__cause__)
    return text_of(error)
