"""Rates of client keys that hold for all hosts together, through Redis or Valkey.

No request waits for it: leases answer from memory, and one task reports for them, ten times a
second while there is traffic and never without. If the server is away or slow, every process goes
by its own limit. One line says so, one that the limits are shared again.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from hashlib import sha1
from typing import TYPE_CHECKING

from understudy.core.health import Clock
from understudy.share.limits_lease import TICK, Claim, Lease
from understudy.share.limits_script import TAKE, arguments, bucket_of
from understudy.share.redis import client_of
from understudy.share.tie import PATIENCE, Note, Place, Tie

if TYPE_CHECKING:
    from understudy.share.redis import Client

LATE = 0.5  # seconds for an answer; a server that needs more is away
GAP = 0.005  # seconds at least between two reports
AT_ONCE = 500  # buckets of one report
PROBE = Claim(rate=1.0, back=0.0, over=0.0, wanted=0)


class SharedLimits:
    """The steward of one process's leases."""

    lost_and_back = ("limits_open", "limits_shared")

    def __init__(self, place: Place, note: Note, clock: Clock) -> None:
        self._tie = Tie(place, note, self)
        self._place = place
        self._clock = clock
        self._sha = sha1(TAKE.encode(), usedforsecurity=False).hexdigest()
        self._leases: dict[tuple[str, str], Lease] = {}
        self._stirred: dict[Lease, None] = {}  # in the order they spoke up
        self._filled = asyncio.Event()
        self._soon = asyncio.Event()

    @property
    def shared(self) -> bool:
        return self._tie.here

    def lease(self, kind: str, label: str, rate: float) -> Lease:
        """The part of this process in one bucket; the same one however often it is asked for."""
        found = self._leases.get((kind, label))
        if found is None:
            key = bucket_of(self._place.name, kind, label)
            found = self._leases[kind, label] = Lease(key, rate, self._clock, self)
        found.rate = rate
        return found

    def alone(self) -> dict[str, int]:
        """How often a limit of each kind was asked while it was this process's own."""
        counts: dict[str, int] = {}
        for (kind, _), lease in self._leases.items():
            counts[kind] = counts.get(kind, 0) + lease.alone
        return counts

    async def start(self) -> None:
        await self._tie.start()

    async def close(self) -> None:
        await self._tie.close()

    def stir(self, lease: Lease, *, soon: bool) -> None:
        self._stirred[lease] = None
        self._filled.set()
        if soon:
            self._soon.set()

    # -- here and away ------------------------------------------------------------------------

    async def session(self) -> None:
        client = client_of(self._place)
        try:
            # It writes, as we shall: a server that is full or forbids it is as good as away.
            probe = bucket_of(self._place.name, "probe", "")
            await self._take(client, [probe], [PROBE], PATIENCE)
            self._tie.back()
            while not self._tie.closed:
                await self._round(client)
        finally:
            with suppress(Exception):
                async with asyncio.timeout(PATIENCE):
                    await client.aclose()

    def away(self) -> None:
        """Every process by its own limit, as long as that lasts."""
        self._stirred.clear()
        for lease in self._leases.values():
            lease.forget()

    # -- reports ------------------------------------------------------------------------------

    async def _round(self, client: Client) -> None:
        """One report of all who have something to say, and the pause after it."""
        await self._filled.wait()
        self._filled.clear()
        self._soon.clear()
        leases, self._stirred = list(self._stirred), {}
        for start in range(0, len(leases), AT_ONCE):
            await self._report(client, leases[start : start + AT_ONCE])
        await asyncio.sleep(GAP)
        with suppress(TimeoutError):
            async with asyncio.timeout(TICK - GAP):
                await self._soon.wait()

    async def _report(self, client: Client, leases: list[Lease]) -> None:
        claims = [lease.claim() for lease in leases]
        told = await self._take(client, [lease.key for lease in leases], claims, LATE)
        for lease, portion, level in zip(leases, told[::2], told[1::2], strict=True):
            lease.granted(portion, level)
            if lease.left:  # if it is not asked for again, it is given back next time
                self.stir(lease, soon=False)

    async def _take(
        self, client: Client, keys: list[str], claims: list[Claim], patience: float
    ) -> list[float]:
        from redis.exceptions import NoScriptError

        rest: list[str | int] = [len(keys), *keys, *arguments(claims)]
        async with asyncio.timeout(patience):
            try:
                told = await client.execute_command("EVALSHA", self._sha, *rest)
            except NoScriptError:
                told = await client.execute_command("EVAL", TAKE, *rest)
        return [float(number) for number in told]
