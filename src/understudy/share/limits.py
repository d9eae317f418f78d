"""Rates of client keys that hold for all hosts together, through Redis or Valkey.

No request waits for it: leases answer from memory, and one task reports for them, ten times a
second while there is traffic and never without. If the server is away or slow, every process goes
by its own limit. One line says so, one that the limits are shared again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha1
from typing import TYPE_CHECKING

from understudy.core.health import Clock
from understudy.share.limits_lease import TICK, Claim, Lease
from understudy.share.limits_script import TAKE, arguments, bucket_of
from understudy.share.redis import FIRST, PATIENCE, PAUSES, REASON, Place, client_of, reason_of

if TYPE_CHECKING:
    from understudy.share.redis import Client

LATE = 0.5  # seconds for an answer; a server that needs more is away
GAP = 0.005  # seconds at least between two reports
AT_ONCE = 500  # buckets of one report
PROBE = Claim(rate=1.0, back=0.0, over=0.0, wanted=0)


class SharedLimits:
    """The steward of one process's leases."""

    def __init__(self, place: Place, note: Callable[..., None], clock: Clock) -> None:
        self.shared = False
        self._place = place
        self._note = note
        self._clock = clock
        self._sha = sha1(TAKE.encode(), usedforsecurity=False).hexdigest()
        self._leases: dict[tuple[str, str], Lease] = {}
        self._stirred: dict[Lease, None] = {}  # in the order they spoke up
        self._filled = asyncio.Event()
        self._soon = asyncio.Event()
        self._tried = asyncio.Event()
        self._said = False  # that it is away
        self._closed = False
        self._task: asyncio.Task[None] | None = None

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
        """Waits a moment for the server, and goes on without if it does not answer."""
        self._task = asyncio.get_running_loop().create_task(self._stay())
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST):
                await self._tried.wait()

    async def close(self) -> None:
        self._closed, self.shared = True, False
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=2 * PATIENCE)

    def stir(self, lease: Lease, *, soon: bool) -> None:
        self._stirred[lease] = None
        self._filled.set()
        if soon:
            self._soon.set()

    # -- here and away ------------------------------------------------------------------------

    async def _stay(self) -> None:
        """Connect, again and again."""
        tries = 0
        while not self._closed:
            try:
                await self._session()
            except Exception as error:  # noqa: BLE001 - whatever a server says, we go on
                tries = 0 if self.shared else tries + 1
                self._away(reason_of(error))
            pause = PAUSES[min(tries, len(PAUSES) - 1)]
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # not all hosts at once

    async def _session(self) -> None:
        client = client_of(self._place)
        try:
            # It writes, as we shall: a server that is full or forbids it is as good as away.
            probe = bucket_of(self._place.name, "probe", "")
            await self._take(client, [probe], [PROBE], PATIENCE)
            self._back()
            while not self._closed:
                await self._round(client)
        finally:
            with suppress(Exception):
                async with asyncio.timeout(PATIENCE):
                    await client.aclose()

    def _back(self) -> None:
        self.shared = True
        self._tried.set()
        if self._said:
            self._said = False
            self._note("limits_shared", "info", server=self._place.shown)

    def _away(self, reason: str) -> None:
        self.shared = False
        self._tried.set()
        self._stirred.clear()
        for lease in self._leases.values():
            lease.forget()
        if not self._said:
            self._said = True
            words = self._place.without_secret(reason)[:REASON]
            self._note("limits_open", "warning", server=self._place.shown, reason=words)

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
