"""What goes on at the gateway, live: a snapshot, then what changes, as server-sent events.

While nobody listens a request costs nothing here. Everything is formatted for the listener that
asked for it, a bounded amount a tick: under load requests are counted but not all shown. Who
does not read is cut off; the page comes back by itself and starts from a new snapshot.

    hello      once: status, lanes, marks, ledger
    past       some: remembered requests, newest slice first
    requests   finished since, oldest first
    health     lanes and marks, when any of them changed; and new lines of the ledger
    rates      about once a second: counts since the last, in all and by target
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from statistics import median

import msgspec

from understudy.core.health import Change, State
from understudy.gateway.admin import News, barred, shut_out
from understudy.gateway.app import Gateway, Route
from understudy.gateway.http import JSON, Reply, Request
from understudy.gateway.lanes import Lane, Standing, lanes
from understudy.gateway.past import MOST, Past, gently
from understudy.gateway.shapes import Told, When, bench_told, entry_told, record_told, state_told
from understudy.gateway.siblings import Glimpse
from understudy.gateway.whole import Entry, ledger_of, records_of, same, states_of
from understudy.observe.record import Record

TICK = 0.25  # seconds between looks
BEATS = 4  # ticks between rates
SLICE = 200  # of them formatted at once
SHOWN = 100  # requests told in one tick at most, the newest
ENTRIES = 200  # lines of the ledger
NAMED = 8  # specs beside the aliases that are drawn as lanes
NAME_MOST = 300  # characters of such a spec
LISTENERS = 16
PATIENCE = 10.0  # seconds a listener may take nothing
HEAD = (
    b"content-type: text/event-stream\r\ncache-control: no-store\r\n"
    b"x-accel-buffering: no\r\nx-content-type-options: nosniff\r\n"
)


class Feed:
    """Tells of the past and of health, for whoever watches."""

    def __init__(
        self, gateway: Gateway, past: Past, *, tick: float = TICK, patience: float = PATIENCE
    ) -> None:
        self.gateway = gateway
        self.since = gateway.wall()  # before this, nothing can have happened here
        self.tick = tick
        self._patience = patience
        self.listeners = 0
        self.changes_so_far = 0
        self._past = past
        self._theirs = Past()  # what our siblings told of
        self._ledger: deque[Entry] = deque(maxlen=ENTRIES)
        self._news = News()
        self.gather: Callable[[], Awaitable[None]] | None = None  # asks our siblings
        self.others: Sequence[Glimpse] = ()  # what they said last

    def change(self, change: Change) -> None:
        """A listener of the health tracker."""
        if self._news.has(change):
            self._enter((self.gateway.wall(), change))

    def take(self, others: Sequence[Glimpse]) -> None:
        """What siblings saw since they were last asked is told as if it had been seen here."""
        self.others = others
        for record in records_of([other.records for other in others]):
            self._theirs.finished(record)
        for entry in ledger_of([other.ledger for other in others]):
            if not any(same(entry, line) for line in self._ledger):
                self._enter(entry)

    def _enter(self, entry: Entry) -> None:
        self._ledger.append(entry)
        self.changes_so_far += 1

    @property
    def in_flight(self) -> int:
        return self.gateway.in_flight + sum(other.in_flight for other in self.others)

    def states(self) -> dict[str, State]:
        health = self.gateway.house.registry.health
        return states_of([health.snapshot(), *(o.states for o in self.others)], health.clock())

    def routes(self) -> dict[tuple[str, str], Route]:
        return {("GET", "/understudy/api/events"): self._events}

    @property
    def seen(self) -> tuple[int, int]:
        """Requests so far, ours and our siblings'."""
        return self._past.so_far, self._theirs.so_far

    async def records(self, since: tuple[int, int]) -> list[Record]:
        """What finished after those, oldest first, as far as it is remembered."""
        ours, theirs = self._past.last(since=since[0]), self._theirs.last(since=since[1])
        return (await gently(records_of([ours, theirs])))[-MOST:]

    def ledger(self, since: int = 0) -> list[Entry]:
        fresh = list(islice(reversed(self._ledger), self.changes_so_far - since))
        fresh.reverse()
        return fresh

    async def _events(self, request: Request, reply: Reply) -> None:
        if why := barred(request, self.gateway.house):
            return shut_out(reply, why)
        if self.listeners >= LISTENERS:
            said = {"error": {"message": f"{LISTENERS} are listening already; try again later"}}
            return reply.send(503, JSON, msgspec.json.encode(said))
        self.listeners += 1
        try:
            await self._told_to(reply)
        except TimeoutError:
            reply.abort()
        finally:
            self.listeners -= 1

    async def _told_to(self, reply: Reply) -> None:
        await self._look_around()
        view = View(self)
        await self._greet(reply, view)
        while not self.gateway.draining:
            await asyncio.sleep(self.tick)
            await self._look_around()
            async with asyncio.timeout(self._patience):
                await reply.flowing()
            reply.write(view.news(await view.unread()))
        reply.finish()

    async def _greet(self, reply: Reply, view: View) -> None:
        """By itself, so that nobody holds on to the past: a listener may stay for days."""
        remembered = await view.unread()
        reply.start(200, HEAD, view.hello(remembered))
        for piece in view.past(remembered):
            async with asyncio.timeout(self._patience):
                await reply.flowing()
            reply.write(piece)
            await asyncio.sleep(0)  # requests come first

    async def _look_around(self) -> None:
        if self.gather is not None:
            await self.gather()


@dataclass(slots=True)
class Count:
    """What happened at one target, or in all, since the last rates."""

    ok: int = 0
    failed: int = 0
    skipped: int = 0
    over: int = 0  # went on to another: attempts followed by one, requests answered by one
    first: list[float] = field(default_factory=list)  # seconds to the first content

    def told(self) -> Told:
        first = median(self.first) if self.first else None
        return {
            "ok": self.ok,
            "failed": self.failed,
            "skipped": self.skipped,
            "over": self.over,
            "first": first,
        }


class View:
    """What one listener has been told."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._gateway = feed.gateway
        self._seen = (0, 0)
        self._changes = 0
        self._named: dict[str, None] = {}  # specs clients used, the latest last
        self._lanes: tuple[Lane, ...] = ()
        self._marks: dict[str, object] = {}  # what of the health was told
        self._beat = 0
        self._all = Count()
        self._targets: dict[str, Count] = {}

    async def unread(self) -> list[Record]:
        """What finished since this was last asked."""
        seen, self._seen = self._seen, self._feed.seen
        return await self._feed.records(seen)

    def hello(self, remembered: Sequence[Record]) -> bytes:
        for record in remembered[-SLICE:]:
            self._name(record)
        self._look()
        house = self._gateway.house
        return _event(
            "hello",
            {
                **self._health(),
                "timeout": house.rules.timeout,
                "policy": house.registry.policy.name,
                "remembered": len(remembered),
                "since": round(self._feed.since, 3),
            },
        )

    def past(self, remembered: Sequence[Record]) -> Iterator[bytes]:
        """What was remembered, the newest slice first; each is formatted when it is sent."""
        for end in range(len(remembered), 0, -SLICE):
            told = [record_told(record) for record in remembered[max(0, end - SLICE) : end]]
            yield _event("past", {"requests": told})

    def news(self, fresh: Sequence[Record]) -> bytes:
        """Everything since the last time."""
        for record in fresh:
            self._count(record)
        told = []
        if fresh:
            shown = [record_told(record) for record in fresh[-SHOWN:]]
            told.append(_event("requests", {"requests": shown, "finished": len(fresh)}))
        if self._look() or self._changes != self._feed.changes_so_far:
            told.append(_event("health", self._health()))
        self._beat += 1
        if self._beat % BEATS == 0:
            told.append(self._rates())
        return b"".join(told)

    def _look(self) -> bool:
        """Is the health another than was told last?"""
        house = self._gateway.house
        states = self._feed.states()
        seen = lanes(house, self._named, states)
        # Sentences count the seconds, so what is compared is what they are made of.
        marks: dict[str, object] = {
            key: (s.failures, s.bench, s.probing) for key, s in states.items()
        }
        changed = (seen, marks) != (self._lanes, self._marks)
        self._lanes, self._marks = seen, marks
        return changed

    def _health(self) -> Told:
        health = self._gateway.house.registry.health
        when = When(health.clock(), self._gateway.wall())
        fresh = self._feed.ledger(self._changes)
        self._changes = self._feed.changes_so_far
        return {
            **self._now(),
            "lanes": [_lane(lane, when) for lane in self._lanes],
            "keys": {key: state_told(state, when) for key, state in self._feed.states().items()},
            "ledger": [entry_told(at, change, when) for at, change in fresh],
        }

    def _now(self) -> Told:
        return {
            "at": round(self._gateway.wall(), 3),
            "status": "draining" if self._gateway.draining else "ready",
            "in_flight": self._feed.in_flight,
        }

    def _rates(self) -> bytes:
        targets = {target: count.told() for target, count in self._targets.items()}
        told = {**self._now(), "all": self._all.told(), "targets": targets}
        self._all, self._targets = Count(), {}
        return _event("rates", told)

    def _count(self, record: Record) -> None:
        self._name(record)
        every = self._all
        every.ok += record.outcome == "ok"
        every.failed += record.outcome in ("failed", "broken")
        every.skipped += record.outcome in ("refused", "left")
        every.over += bool(record.target and record.attempts[0].target != record.target)
        for attempt in record.attempts:
            count = self._targets.setdefault(attempt.target, Count())
            count.ok += attempt.outcome == "ok"
            count.failed += attempt.outcome == "failed"
            count.skipped += attempt.outcome == "skipped"
            count.over += attempt.then == "advance"
            if attempt.first_content is not None:
                count.first.append(attempt.first_content)
                every.first.append(attempt.first_content)

    def _name(self, record: Record) -> None:
        """Remember a spec that is no alias; clients may invent them without end."""
        model = record.opening.model
        if not record.attempts or len(model) > NAME_MOST:
            return
        if model in self._named or model in self._gateway.house.registry.aliases:
            return
        if len(self._named) >= NAMED:
            del self._named[next(iter(self._named))]
        self._named[model] = None


def _lane(lane: Lane, when: When) -> Told:
    return {
        "name": lane.name,
        "alias": lane.is_alias,
        "policy": lane.policy,
        "head": lane.head,
        "targets": [_standing(standing, when) for standing in lane.standings],
    }


def _standing(standing: Standing, when: When) -> Told:
    bench = standing.bench
    return {
        "target": standing.target,
        "state": standing.state,
        "tried": standing.tried,
        "failures": standing.failures,
        "credentials": standing.credentials,
        "credentials_out": standing.credentials_out,
        "bench": None if bench is None else bench_told(bench, when),
    }


def _event(name: str, told: Told) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(told))
