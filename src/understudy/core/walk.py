"""The one loop. A generator without I/O: it yields what to do next and is told how it went.

    Try(target, …)   the driver calls the target and sends the answer, or throws the error
    RELAY            sent COMMITTED (first content is in hand): carry on to the end; no other
                     target from here on, whatever happens
    Wait(seconds)    everybody is benched, one returns soon

The walk returns the answer, or raises: `ProviderError` when a fault says stop, `ChainExhausted`
when everybody failed or was skipped. Closing the generator means the caller left: nobody is
marked. Plain requests, streams, agents, the simulator and replay all drive this generator; what
is rehearsed is what runs. Being suspended *is* the state of a request, so a stream's health is
told once, at its end, without further bookkeeping.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from understudy.core.blame import Call, blame
from understudy.core.errors import ChainExhausted, OutOfTime, ProviderError, text_of
from understudy.core.faults import Fault, Verdict
from understudy.core.policy import Mark, Retry, Rule, Scope, Then
from understudy.core.stage import Account, Candidate, Obstacle, Stage, benched, obstacle, usable
from understudy.core.target import Attempt, Observer, Target

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Try:
    """Call this target now."""

    target: Target
    n: int  # try number on this target, from 1
    credential: str  # label
    limit: float | None = None  # seconds it may take to its first content; None: no deadline
    deadline: float = math.inf  # clock seconds at which the whole request is over


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing for so long."""

    seconds: float


class _Relay:
    def __repr__(self) -> str:
        return "RELAY"


RELAY: Final = _Relay()  # yielded: the stream is under way, bring it to its end
COMMITTED: Final = object()  # sent: the first content is in hand

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
        yield Wait(pause)
    for place in range(len(chain)):
        visit = trip.visit(place)
        answered = yield from visit
        if answered:
            return trip.answer
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


@dataclass(slots=True)
class _Trip:
    """One request on its way down the chain."""

    chain: Sequence[Candidate]
    stage: Stage
    deadline: float
    observe: Observer | None
    story: list[Attempt] = field(default_factory=list)
    errors: dict[str, ProviderError] = field(default_factory=dict)
    floor: int | None = None  # after an overflow: only larger windows will do
    waited: float = 0.0
    answer: object = None

    def pause(self) -> float:
        """Seconds to wait because all are benched and one returns soon; 0 means go on."""
        patience = self.stage.policy.max_wait - self.waited
        health = self.stage.health
        if patience <= 0 or health is None or health.quiet:
            return 0.0
        soonest = math.inf
        for candidate in self.chain:
            hurdle = obstacle(candidate, self.stage)
            if hurdle is None:
                return 0.0
            soonest = min(soonest, hurdle.seconds)
        in_time = self.stage.clock() + soonest < self.deadline
        return soonest if soonest <= patience and in_time else 0.0

    def visit(self, place: int) -> Generator[Step, object, bool]:
        """Every attempt at one candidate; True when it answered."""
        candidate = self.chain[place]
        accounts = self._admitted(candidate)
        retries = self.stage.policy.transient_retries
        n = spent = 0
        while accounts:
            n += 1
            account = accounts[0]
            started = self.stage.clock()
            if started >= self.deadline:
                self._skip(candidate, Obstacle("not tried, the request's own time was up"))
                return False
            attempt = _Attempt(self, Call(candidate, account, started), n)
            if (yield from attempt.make(place)):
                return True
            allowed = _Allowed(retries - spent, len(accounts) > 1)
            then = attempt.consequence(place, allowed)
            if then == "retry":
                spent += 1
            elif then == "rotate":
                accounts = accounts[1:]
            else:
                break
        return False

    def _admitted(self, candidate: Candidate) -> tuple[Account, ...]:
        """The credentials to try this candidate with; none if something stands in the way."""
        if (hurdle := self._hurdle(candidate)) is not None:
            self._skip(candidate, hurdle)
            return ()
        accounts = usable(candidate, self.stage)
        if not accounts:  # somebody benched the last credential this very moment
            self._skip(candidate, Obstacle("its credentials are benched"))
        return accounts

    def _hurdle(self, candidate: Candidate) -> Obstacle | None:
        health = self.stage.health
        if self.floor is None and (health is None or health.quiet):
            return None
        hurdle = obstacle(candidate, self.stage, self.floor)
        if hurdle is None and health is not None and not health.admit(candidate.key):
            bench = health.standing(candidate.key)  # somebody was faster
            return Obstacle("benched") if bench is None else benched(bench, self.stage.clock())
        return hurdle

    def _skip(self, candidate: Candidate, hurdle: Obstacle) -> None:
        reason = f"skipped, {hurdle.reason}"
        self.errors.setdefault(
            candidate.key,
            ProviderError(hurdle.fault or Fault.UNKNOWN, candidate.key, message=reason),
        )
        self.record(Attempt(candidate.key, "skipped", hurdle.fault, reason=reason))

    def share(self, place: int, now: float) -> float | None:
        """Seconds this candidate may take: an equal part of what is left while others remain."""
        if self.deadline == math.inf:
            return None
        later = self.chain[place + 1 :]
        others = sum(obstacle(c, self.stage, self.floor) is None for c in later)
        return (self.deadline - now) / (1 + others)

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
        errors = [self.errors[c.key] for c in self.chain]
        waits = [self._wait(c, self.errors[c.key]) for c in self.chain]
        soonest = min(waits)
        return ChainExhausted(errors, self.story, soonest if 0 < soonest < math.inf else None)

    def _wait(self, candidate: Candidate, error: ProviderError) -> float:
        """Seconds until it is worth asking this one again; infinite if time does not help."""
        hurdle = obstacle(candidate, self.stage)
        if hurdle is not None:
            return hurdle.seconds
        return math.inf if self.stage.policy.rule(error.fault).mark is Mark.NONE else 0.0


@dataclass(frozen=True, slots=True)
class _Allowed:
    """What is left to this target within the request."""

    retries: int
    other_credentials: bool


@dataclass(slots=True)
class _Attempt:
    """One call of one target with one credential."""

    trip: _Trip
    call: Call
    n: int
    error: Exception | None = None
    committed: float | None = None  # clock seconds of the first content

    def make(self, place: int) -> Generator[Step, object, bool]:
        """Yield the call; True when it was answered, else `error` says why not."""
        trip = self.trip
        limit = trip.share(place, self.call.started)
        settled = False
        try:
            answer = yield Try(
                self.call.candidate.target, self.n, self.call.account.label, limit, trip.deadline
            )
            if answer is COMMITTED:
                self.committed = trip.stage.clock()
                answer = yield RELAY
            settled = True
        except Exception as error:  # noqa: BLE001 - this is where failures are judged
            self.error = error
            settled = True
            return False
        finally:
            if not settled:
                self._abandoned()
        self._succeeded()
        trip.answer = answer
        return True

    def consequence(self, place: int, allowed: _Allowed) -> str:
        """Judge the error, mark who is to blame, and say what follows; raises to stop."""
        trip = self.trip
        verdict, rule = self._judged()
        seconds = blame(trip.stage, self.call, verdict, rule)
        failure = self._failure(verdict)
        then = self._then(rule, verdict, allowed, seconds)
        if then == "larger":
            then = "advance" if trip.larger(place) else "stop"
        trip.errors[self.call.candidate.key] = failure
        trip.record(self._line("failed", verdict, then, seconds))
        if then not in {"retry", "rotate"}:
            self._release()
        if then == "stop":
            raise failure from failure.__cause__
        return then

    def _judged(self) -> tuple[Verdict, Rule]:
        policy = self.trip.stage.policy
        assert self.error is not None
        if isinstance(self.error, OutOfTime):
            late = self.committed is not None
            fault = Fault.STALL_MID_STREAM if late else Fault.STALL_PRE_FIRST_BYTE
            then = Then.STOP if late else Then.ADVANCE
            return Verdict(fault), Rule(Retry.NEVER, False, then, Mark.NONE, Scope.NONE)
        verdict = self.trip.stage.judge(self.error)
        return verdict, policy.rule(verdict.fault)

    def _then(self, rule: Rule, verdict: Verdict, allowed: _Allowed, seconds: float) -> str:
        if self.committed is not None:
            return "stop"
        if rule.rotate and allowed.other_credentials:
            return "rotate"
        hinted = verdict.retry_after is not None
        wanted = rule.retry is Retry.YES or (rule.retry is Retry.UNHINTED and not hinted)
        if wanted and allowed.retries > 0 and not seconds and self._again():
            return "retry"
        return str(rule.then)

    def _again(self) -> bool:
        """Does the budget pay for a retry, and is nobody else probing this target by now?"""
        stage = self.trip.stage
        if stage.health is not None and not stage.health.admit(self.call.candidate.key):
            return False
        return stage.budget is None or stage.budget.withdraw()

    def _release(self) -> None:
        health = self.trip.stage.health
        if health is not None:
            health.release(self.call.candidate.key, self.call.started)

    def _failure(self, verdict: Verdict) -> ProviderError:
        """The error told of this target, wrapped once; the original is its cause."""
        error, key = self.error, self.call.candidate.key
        if isinstance(error, ProviderError) and error.fault is verdict.fault:
            return error.at(key)
        status = error.status_code if isinstance(error, ProviderError) else None
        failure = ProviderError(verdict.fault, key, status, verdict.retry_after)
        failure.__cause__ = error
        return failure

    def _succeeded(self) -> None:
        trip = self.trip
        health = trip.stage.health
        if health is not None and not health.quiet:
            for key in (self.call.candidate.key, self.call.account.key, self.call.account.share):
                health.report_success(key, self.call.started)
        trip.record(self._line("ok"))

    def _abandoned(self) -> None:
        """The caller left: marks nobody, frees a probe's place."""
        self._release()
        self.trip.record(self._line("cancelled", Verdict(Fault.CLIENT_DISCONNECT), "stop"))

    def _line(
        self, outcome: str, verdict: Verdict | None = None, then: str = "", seconds: float = 0.0
    ) -> Attempt:
        committed, error = self.committed, self.error
        status = error.status_code if isinstance(error, ProviderError) else None
        return Attempt(
            self.call.candidate.key,
            outcome,
            verdict.fault if verdict else None,
            status if error else None,
            self.trip.stage.clock() - self.call.started,
            _reason(error),
            self.n,
            self.call.account.label,
            verdict.retry_after if verdict else None,
            then,
            seconds,
            None if committed is None else committed - self.call.started,
        )


def _reason(error: Exception | None) -> str:
    """The target's own words; fault and status are fields of their own."""
    if isinstance(error, ProviderError):
        return error.message or text_of(error.__cause__)
    return text_of(error)
