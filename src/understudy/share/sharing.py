"""Joins a health tracker to its like in other processes. Decides nothing that a tracker decides.

What is learned here is told by every link; what comes by one link is not passed on by another.
Everything happens in the thread of one event loop. The reasons are in docs/adr/0015-sharing.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from secrets import token_hex
from zlib import crc32

from understudy.core.health import Bench, Change, HealthTracker
from understudy.share.base import Link
from understudy.share.clocks import Lateness, Stamps
from understudy.share.message import Message, decode, encode
from understudy.share.notes import Fact, Notes
from understudy.share.telling import fact_of, message_of


class Sharing:
    """One process's part. `who` is what others show as the place where something was learned."""

    def __init__(
        self, health: HealthTracker, links: Iterable[Link], who: str, life: str = ""
    ) -> None:
        self.origin = f"{who}/{life or token_hex(6)}"  # a process that comes back is another one
        self.sent = self.taken = self.ignored = 0  # messages
        self._who = who
        self._links = tuple(links)
        self._notes = Notes()
        self._stamps = Stamps()
        self._lateness = Lateness()
        # From a half to one: if who learned it does not try, the others follow one by one.
        self._turn = 0.5 + crc32(self.origin.encode()) / 2**33
        self.move(health)

    async def start(self) -> None:
        """Open the links and ask what is known."""
        for link in self._links:
            await link.start(partial(self._receive, link))
        hello = encode(Message(kind="hello", origin=self.origin, stamp=0))
        for link in self._links:
            link.send(hello)

    async def close(self) -> None:
        for link in self._links:
            await link.close()

    def move(self, health: HealthTracker) -> None:
        """Serve this tracker from now on; it has been told what the one before knew."""
        self._health = health
        health.listen(partial(self._changed, health))

    def counts(self) -> dict[str, int]:
        """Messages so far."""
        return {"sent": self.sent, "taken": self.taken, "ignored": self.ignored}

    # -- what is learned here -----------------------------------------------------------------

    def _changed(self, health: HealthTracker, change: Change) -> None:
        if health is not self._health or change.source == "remote":
            return
        source = change.source if change.bench is None else change.bench.source
        standing = self._notes.standing(change.key)
        if source == "success" and standing is None:
            return  # a blip that never became a bench is nobody else's business
        now = health.clock()
        since, until = now, standing.until if standing else now
        if change.bench is not None:
            since, until = change.bench.since, change.bench.until
        rank, rounds = (self._stamps.next(now), self.origin), health.rounds(change.key)
        order = source == "operator"
        fact = Fact(change.key, rank, self._who, since, until, change.bench, rounds, order)
        self._notes.take(fact, now)
        self._tell(fact, now, self._links)

    def _tell(self, fact: Fact, now: float, links: Iterable[Link]) -> None:
        data = encode(message_of(fact, self.origin, now))
        for link in links:
            link.send(data)
            self.sent += 1

    # -- what others say ----------------------------------------------------------------------

    def _receive(self, link: Link, data: bytes) -> None:
        message, now = decode(data), self._health.clock()
        if message is None:
            self.ignored += 1
        elif message.kind == "hello":
            for fact in self._notes.living(now):
                self._tell(fact, now, (link,))
        elif message.origin != self.origin:
            self._learn(message, now)

    def _learn(self, message: Message, now: float) -> None:
        self._stamps.heard(message.stamp, now)
        late = 0.0
        if message.sent is not None:
            late = self._lateness.of(message.sender, message.sent, now)
        fact = fact_of(message, now, late=late, turn=self._turn)
        if self._notes.take(fact, now):
            self.taken += 1
            self._apply(fact.key, now)
        else:
            self.ignored += 1

    def _apply(self, key: str, now: float) -> None:
        """Make the tracker hold what the notes say."""
        fact, held = self._notes.standing(key), self._health.standing(key)
        if fact is None:
            self._health.unbench(key, "remote")
        elif fact.until > now:
            bench = self._shown(fact)
            if held != bench:
                self._health.learn(bench, fact.rounds)
        elif held is not None and held.until > now:
            self._health.unbench(key, "remote")

    def _shown(self, fact: Fact) -> Bench:
        """A fact's bench as the ledger of this process has it."""
        assert fact.bench is not None
        if fact.rank[1] == self.origin:
            return fact.bench
        why = f": {fact.bench.why}" if fact.bench.why else ""
        verb = "ordered at" if fact.order else "learned by"
        return replace(fact.bench, source="remote", why=f"{verb} {fact.host}{why}")
