"""A journal played again: the real walk, tracker, budget and policies, on the loop of rehearsals.

Targets do what the journal says they did. With the same settings every `Try` is answered by what
was journalled for it, at that time, and every decision is the same. With other settings a request
may ask somebody it did not ask then; `replay_facts` says what would have come of that.
"""

from __future__ import annotations

import errno
import math
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import takewhile

from understudy.core.errors import FROM_HERE, OutOfTime, ProviderError
from understudy.core.faults import Fault
from understudy.core.health import Change
from understudy.core.stage import obstacle
from understudy.core.target import Attempt
from understudy.core.walk import COMMITTED, Try, Wait, walk
from understudy.observe.journal_lines import Benched, Cleared, Tried
from understudy.rehearse.fate import ANSWER
from understudy.rehearse.flight import Flying
from understudy.rehearse.loop import LEAVE, Loop
from understudy.rehearse.replay_era import Era, entry_of, restore
from understudy.rehearse.replay_facts import Evidence, Facts
from understudy.rehearse.replay_order import Barred, moments
from understudy.rehearse.replay_read import Asked, Run
from understudy.rehearse.replay_settings import Changes

LATE = 0.05  # seconds a timer may be late
Progress = Callable[[int, int], None]  # requests done, of how many
OFTEN = 1000  # requests between two words of progress


class Rerun(Flying):
    """One request of the journal, asked again."""

    outcome = ""
    ended = 0.0  # clock seconds
    deaf = False  # the replay is over
    woken = False  # it has waited

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.story: list[Attempt] = []
        self.tries: Counter[tuple[str, str]] = Counter()  # by target and credential
        self.follows = True  # so far everything is as the journal has it

    @property
    def ahead(self) -> Tried | None:
        """What the journal says comes next."""
        place = len(self.story)
        return self.asked.attempts[place] if place < len(self.asked.attempts) else None

    @property
    def differs(self) -> bool:
        """Was anything decided otherwise?"""
        told = self.asked.attempts
        short = len(self.story) != len(told) and bool(self.asked.outcome)
        pairs = zip(self.story, told, strict=False)
        return short or not all(same(attempt, tried) for attempt, tried in pairs)


def same(attempt: Attempt, tried: Tried) -> bool:
    """The same decision, whatever the microseconds."""
    if attempt.outcome == "skipped":  # whichever of several benches is named for it
        return (attempt.target, attempt.outcome) == (tried.target, tried.outcome)
    # How much is left of a bench when it is told depends on how busy the process was.
    return bool(attempt.benched) == bool(tried.bench) and (
        attempt.target,
        attempt.outcome,
        str(attempt.fault or ""),
        attempt.n,
        attempt.credential,
        attempt.then,
    ) == (tried.target, tried.outcome, tried.fault, tried.n, tried.credential, tried.then)


class Replay(Loop[Rerun]):
    """One run, once more."""

    def __init__(
        self, run: Run, facts: Facts, changes: Changes, progress: Progress | None = None
    ) -> None:
        super().__init__()
        self.run = run
        self.changes = changes
        self.reruns: list[Rerun] = []
        self.early = 0  # requests that had begun before the journal does
        self.benches = 0
        self.sure: Counter[str] = Counter()  # known, inferred, assumed
        self._facts = facts
        self._progress = progress
        self._moments = moments(run)
        self._barred = Barred(run)
        # With the same settings, however long the gateway stood still between two steps.
        self._late = LATE if changes else math.inf
        self._eras: dict[int, Era] = {}
        self._last = min(run.eras)

    def play_all(self) -> list[Rerun]:
        """Every request that began within the journal, in the order they came."""
        self._now[0] = self.run.begins
        self._enter(self._last)
        if self.run.marks is not None:
            restore(self.run.marks, self._eras[self._last], self._set)
            self._now[0] = self.run.begins
        self.benches = 0  # those that were held already are not ours
        acts = sorted(self._acts(), key=lambda act: act[0])
        todo = iter(acts)
        self.play((at for at, _ in acts), lambda at: self._arrive(at, next(todo)[1]))
        for rerun in self.reruns:
            rerun.deaf = True
            if rerun.steps is not None:
                rerun.steps.close()
        return self.reruns

    def _acts(self) -> Iterator[tuple[float, Callable[[], None]]]:
        """Everything that comes from outside, and when."""
        begins = self.run.begins
        for era, at in self.run.reloads.items():
            if at >= begins:
                yield at, partial(self._enter, era)
        for turn in self.run.turns:
            if turn.ordered and turn.at >= begins:
                yield turn.at, partial(self._obey, turn)
        for asked in self.run.requests:
            if asked.at >= begins:
                yield asked.at, partial(self._begin, Rerun(asked))
                continue
            self.early += 1
            for tried in asked.attempts:
                if tried.began >= begins and tried.n:
                    yield tried.began, partial(self._admit, tried)
                if tried.end >= begins:
                    moment = self._moments.get(id(tried), tried.end)
                    yield moment, partial(self._echo, asked, tried)

    def _arrive(self, at: float, act: Callable[[], None]) -> None:
        self._set(at)
        act()

    def _set(self, at: float) -> None:
        self._now[0] = at

    # -- from outside -------------------------------------------------------------------------

    def _enter(self, number: int) -> None:
        """Settings as they are from here on; what was learned before still holds."""
        settings = self.run.eras[number]
        before = self._eras.get(self._last)
        era = Era(settings, self.changes, self.clock, before)
        self._eras[number] = era
        self._last = number
        era.health.listen(partial(self._changed, era))

    def _changed(self, era: Era, change: Change) -> None:
        bench, current = change.bench, self._eras[self._last]
        if bench is None:
            return
        if era is not current:  # learned by a request that began before a reload
            current.health.hold(bench)
        elif change.source != "remote" and bench.source != "operator":
            self.benches += 1

    def _obey(self, order: Benched | Cleared) -> None:
        health = self._eras[self._last].health
        if isinstance(order, Cleared):
            health.unbench(order.key, order.source)
        elif order.remote:
            health.learn(entry_of(order), order.rounds)
        else:
            health.bench(order.key, entry_of(order).until - self._now[0])

    def _admit(self, tried: Tried) -> None:
        """A probe, perhaps, of a request that had begun before: others are kept out meanwhile."""
        self._eras[self._last].health.admit(tried.target)

    def _echo(self, asked: Asked, tried: Tried) -> None:
        """An attempt of a request that had begun before: only what it left behind counts."""
        self._era(asked).echo(asked.chain, tried)

    def _era(self, asked: Asked) -> Era:
        return self._eras.get(asked.chain.era) or self._eras[self._last]

    def _begin(self, rerun: Rerun) -> None:
        asked = rerun.asked
        self.reruns.append(rerun)
        if self._progress is not None and len(self.reruns) % OFTEN == 0:
            self._progress(len(self.reruns), len(self.run.requests))
        if (leaves := asked.left_at) is not None:
            self._push(max(leaves, asked.at), rerun, LEAVE)
        era = self._era(asked)
        stage = era.stage(asked.chain, asked.strict)
        deadline = asked.at + min(era.timeout, asked.within or math.inf)
        chain = era.chain(asked.chain)
        late = asked.attempts[0].began - asked.at if asked.attempts else 0.0
        passed = bool(asked.attempts) and asked.attempts[0].outcome == "skipped"
        asks = not passed or asked.attempts[0].late
        if 0.0 < late < self._late and asks and any(obstacle(one, stage) is None for one in chain):
            self._now[0] += late  # it had nothing to wait for: the gateway was busy
        observe = partial(self._observed, rerun)
        self._launch(rerun, walk(chain, stage, deadline=deadline, observe=observe))

    # -- attempts -----------------------------------------------------------------------------

    def _observed(self, rerun: Rerun, attempt: Attempt) -> None:
        """Move the clock to what comes next in the journal, if this was as the journal has it."""
        if rerun.deaf:
            return
        ahead = rerun.ahead
        rerun.story.append(attempt)
        rerun.follows = rerun.follows and ahead is not None and same(attempt, ahead)
        coming = rerun.ahead if rerun.follows else None
        if coming is None or (coming.outcome == "skipped" and not coming.late):
            return  # a skip is told a moment after it was decided
        if 0.0 < coming.began - self._now[0] < self._late:
            self._now[0] = coming.began

    def _woken(self, flight: Rerun, step: Wait) -> float:
        """When a wait ends. The journal does not tell of waits, but of what came after them.

        Asking has no effect on anybody, so with the same settings all the waits of a request may
        be one: to its first attempt. If the request had given up by then, or had no time to wait,
        it is told to go on until its patience is at an end.
        """
        now, ahead = self._now[0], flight.ahead if flight.follows else None
        due = now + step.seconds
        if ahead is None and not self.changes:
            return flight.asked.left_at or due  # its caller left before the wait was over
        if ahead is None or (self.changes and abs(ahead.began - due) > LATE):
            return due
        return max(now, self._in_turn(flight))

    def _in_turn(self, flight: Rerun) -> float:
        """When a wait was over; of those that woke at one moment, who was passed over is later."""
        asked, first = flight.asked, flight.asked.attempts[0]
        at = first.began
        if first.outcome == "skipped" and not first.late and not flight.woken:
            at = self._barred.decided(first, asked)
            flight.woken = True
        for _ in takewhile(lambda tried: tried.outcome == "skipped", asked.attempts):
            at = math.nextafter(at, math.inf)
        return at

    def _try(self, flight: Rerun, step: Try, now: float) -> None:
        ahead = flight.ahead if flight.follows else None
        if ahead is not None and self._again(step, ahead, now):
            flight.tries[ahead.target, ahead.credential] += 1
            self.sure["known"] += 1
            end = self._moments.get(id(ahead), ahead.end)
            return self._repeat(flight, ahead, ahead.began, end)
        if ahead is None and flight.follows and not flight.asked.outcome:
            return None  # the journal ends here
        evidence = self._evidence(flight, step, now)
        self.sure[evidence.sure] += 1
        tried = evidence.tried
        limit = math.inf if step.limit is None else step.limit
        streams = tried.first is not None and flight.asked.stream
        ready = tried.first if streams and tried.first is not None else tried.seconds
        if ready > limit:
            return self._push(now + limit, flight, OutOfTime("no time left"))
        self._repeat(flight, tried, now, now + tried.seconds)
        if now + tried.seconds > step.deadline:
            self._push(step.deadline, flight, OutOfTime("time was up"))
        return None

    def _again(self, step: Try, tried: Tried, now: float) -> bool:
        """Is this the attempt that the journal has, at its time?"""
        named = (step.target.key, step.n, step.credential)
        meant = named == (tried.target, tried.n, tried.credential)
        # With another deadline it may be cut short now.
        in_time = abs(tried.began - now) <= self._late
        return meant and in_time and "gateway" not in self.changes.tables

    def _repeat(self, flight: Rerun, tried: Tried, began: float, end: float) -> None:
        """What happened, once more, at this time."""
        now = self._now[0]
        if tried.first is not None and flight.asked.stream:
            self._push(max(now, began + tried.first), flight, COMMITTED)
        if tried.outcome == "failed":
            self._push(max(now, end), flight, _error(tried))
        elif tried.outcome == "ok":
            self._push(max(now, end), flight, ANSWER)

    def _evidence(self, flight: Rerun, step: Try, now: float) -> Evidence:
        """What this request met at this target itself, or else what others did."""
        key = step.target.key
        place = flight.tries[key, step.credential]
        flight.tries[key, step.credential] += 1
        own = [
            t for t in flight.asked.attempts if (t.target, t.credential) == (key, step.credential)
        ]
        if place < len(own) and own[place].outcome in ("ok", "failed") and not own[place].late:
            return Evidence(own[place], "known")
        return self._facts.at(key, now + self.run.epoch, flight.asked.stream)

    # -- ending -------------------------------------------------------------------------------

    def _answered(self, flight: Rerun, now: float) -> None:
        self._end(flight, "ok", None)

    def _end(self, flight: Rerun, outcome: str, error: Exception | None) -> None:
        flight.over = True
        flight.outcome = outcome
        flight.ended = self._now[0]

    def _left(self, flight: Rerun) -> None:
        if flight.steps is not None:
            flight.steps.close()
        self._end(flight, "left", None)


def _error(tried: Tried) -> Exception:
    if tried.late:
        return OutOfTime("no time left")
    error = ProviderError(Fault(tried.fault), tried.target, tried.status, tried.retry_after)
    if tried.ours:
        error.__cause__ = OSError(errno.EMFILE, FROM_HERE)
    return error
