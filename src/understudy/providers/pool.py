"""Kept connections, and the transport over them.

A lane belongs to one event loop and one origin; a pool is all the lanes. A lane hands out the
connection used last, opens another when none is idle, and lets requests wait in line when all are
busy. Nothing runs in the background: a connection idle for too long is found at the next look.

Knows who is idle and who waits. Reads and writes no HTTP.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from understudy.core.errors import ProviderError
from understudy.providers.answer import Answer
from understudy.providers.dial import dial
from understudy.providers.outbox import Outbox
from understudy.providers.transport import Limits, Origin, Outgoing
from understudy.providers.trouble import Cut, trouble
from understudy.providers.wire import CLOSING, Connection, Waiter

Clock = Callable[[], float]

# For this long after a connection came back the event loop has seen all that happened to it;
# later a look at the socket (one system call) tells whether the peer closed it meanwhile.
FRESH = 0.05  # seconds
# A peer that closes a connection this soon after an answer on it, without a word, closed it behind
# that answer, as many do without saying so: it did not hear what was asked in the meantime.
BEHIND = 0.3  # seconds


@dataclass(frozen=True, slots=True)
class Room:
    """How many connections an origin may have, and how long an idle one is trusted."""

    connections: int = 16_384
    idle: int = 256
    keep: float = 30.0  # seconds; servers commonly close after 60 or more


class Lane:
    """The connections of one event loop to one origin."""

    def __init__(
        self,
        origin: Origin,
        loop: asyncio.AbstractEventLoop,
        room: Room,
        context: ssl.SSLContext | None,
        clock: Clock,
    ) -> None:
        self._origin = origin
        self.loop = loop
        self._room = room
        self._context = context
        self._clock = clock
        self._idle: list[Connection] = []  # the one used last at the end
        self._all: set[Connection] = set()
        self._taken = 0  # slots: connections, and those being opened
        self._line: deque[asyncio.Future[Connection | None]] = deque()
        self._gone: asyncio.Future[None] | None = None  # set while closing
        self.outbox = Outbox.of(loop)

    def take(self) -> Connection | None:
        """An idle connection that can still be written to."""
        idle = self._idle
        while idle:
            connection = idle.pop()
            age = self._clock() - connection.idle_since
            if age < FRESH or (age <= self._room.keep and connection.is_quiet()):
                return connection
            connection.abort()
        return None

    async def open(self, limits: Limits) -> Connection:
        """A connection of one's own: a new one, or the first that comes free if all are busy."""
        if self._taken < self._room.connections:
            self._taken += 1
        else:
            connection = await self._queue()
            if connection is not None:
                return connection
        opened = False
        try:
            connection = await self._connect(limits)
            opened = True
        except (OSError, UnicodeError) as error:  # a name no resolver would take is the latter
            raise trouble(error, self._origin, sent=False) from error
        finally:
            if not opened:
                self._vacate()
        return connection

    async def _connect(self, limits: Limits) -> Connection:
        connection = Connection(self, self._origin)
        patience = asyncio.timeout(limits.connect)
        try:
            async with patience:
                await dial(self.loop, self._origin, self._context, lambda: connection)
        except TimeoutError as error:
            if not patience.expired():
                raise
            raise TimeoutError(f"gave no connection within {limits.connect:g} s") from error
        if self._gone is not None:
            connection.abort()
            raise ConnectionAbortedError("the transport is closing")
        if not connection.is_open():
            raise ConnectionResetError("closed as soon as it was open")
        self._all.add(connection)
        return connection

    async def _queue(self) -> Connection | None:
        """Wait in line for a connection, or for the room to open one (None)."""
        place: asyncio.Future[Connection | None] = self.loop.create_future()
        self._line.append(place)
        try:
            return await place
        except asyncio.CancelledError:
            # Called up and cancelled in the same moment: the next in line shall have it.
            if place in self._line:
                self._line.remove(place)
            elif not place.cancelled() and place.exception() is None:
                given = place.result()
                self._vacate() if given is None else self.free(given)
            raise

    # -- told by connections ------------------------------------------------------------------

    def has_just_had(self, connection: Connection) -> bool:
        return self._clock() - connection.idle_since < BEHIND

    def free(self, connection: Connection) -> None:
        now = connection.idle_since = self._clock()
        while self._line:
            place = self._line.popleft()
            if not place.done():
                place.set_result(connection)
                return
        idle = self._idle
        idle.append(connection)
        oldest = idle[0]
        if len(idle) > self._room.idle or now - oldest.idle_since > self._room.keep:
            idle.pop(0).abort()

    def lost(self, connection: Connection) -> None:
        if connection not in self._all:
            return  # it never came to be: whoever was opening it gives back the slot
        self._all.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._vacate()
        if self._gone is not None and not self._all and not self._gone.done():
            self._gone.set_result(None)

    def _vacate(self) -> None:
        while self._line:
            place = self._line.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._taken -= 1

    def shut(self) -> asyncio.Future[None]:
        """Close everything, those at work included; the future is when all of it is closed."""
        self._gone = gone = self.loop.create_future()
        self._idle.clear()
        while self._line:
            place = self._line.popleft()
            if not place.done():
                place.set_exception(trouble(Cut(CLOSING), self._origin, sent=False))
        for connection in list(self._all):
            connection.shut()
        if not self._all:
            gone.set_result(None)
        return gone


ROOM = Room()


class Pool:
    """The transport without a proxy. One object may serve several event loops and threads."""

    def __init__(
        self, room: Room = ROOM, *, ca_file: str | None = None, clock: Clock = time.monotonic
    ) -> None:
        self._room = room
        self._clock = clock
        self._context = tls(ca_file) if ca_file is not None else None
        # An event loop is only ever looked up by itself, so no lock is needed.
        self._loops: dict[asyncio.AbstractEventLoop, dict[str, Lane]] = {}

    async def send(self, outgoing: Outgoing, limits: Limits) -> Answer:
        lane = self._lane(outgoing.origin)
        for kept in (True, False, False):
            connection = lane.take() if kept else await lane.open(limits)
            if connection is None:
                continue
            # One that was dead has sent nothing, so asking again cannot be billed twice.
            answer = await self._asked(connection, lane.loop.create_future(), outgoing, limits)
            if answer is not None:
                return answer
        raise trouble(ConnectionResetError(), outgoing.origin, sent=False)

    async def _asked(
        self,
        connection: Connection,
        waiter: asyncio.Future[Answer],
        outgoing: Outgoing,
        limits: Limits,
    ) -> Answer | None:
        """The answer that comes over a connection; None if it was dead before it heard us."""
        if not connection.begin(outgoing, limits, waiter):
            return None
        try:
            return await waiter
        except ProviderError as error:
            if error.billing != "not_sent":
                raise
            return None
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                waiter.result().close()
            else:
                connection.forsake(waiter)
            raise
        finally:
            del waiter  # it holds an error, whose traceback holds this frame

    def at_once(self, outgoing: Outgoing, limits: Limits, waiter: Waiter) -> Connection | None:
        """Send over a kept connection, if one is free: nothing is awaited. None: use `send`.

        An error whose billing is `not_sent` means the same: the connection has proved dead.
        """
        lanes = self._loops.get(asyncio.get_running_loop())
        lane = None if lanes is None else lanes.get(outgoing.origin.key)
        connection = None if lane is None else lane.take()
        if lane is None or connection is None:
            return None
        return connection if connection.begin(outgoing, limits, waiter, lane.outbox) else None

    async def aclose(self) -> None:
        """Close every connection; those of other event loops as soon as they look."""
        here = asyncio.get_running_loop()
        closing = []
        for loop in list(self._loops):
            for lane in self._loops.pop(loop, {}).values():
                if loop is here:
                    closing.append(lane.shut())
                else:
                    with suppress(RuntimeError):  # it is closed, and its connections with it
                        loop.call_soon_threadsafe(lane.shut)
        for gone in closing:
            await gone

    def _lane(self, origin: Origin) -> Lane:
        loop = asyncio.get_running_loop()
        lanes = self._loops.get(loop)
        lane = lanes.get(origin.key) if lanes is not None else None
        return lane if lane is not None else self._new_lane(loop, origin)

    def _new_lane(self, loop: asyncio.AbstractEventLoop, origin: Origin) -> Lane:
        for other in list(self._loops):
            if other.is_closed():
                self._loops.pop(other, None)
        context = None
        if origin.scheme == "https":
            # Reading the system's certificates takes 20 ms: not before somebody needs them.
            context = self._context = self._context or tls()
        lane = Lane(origin, loop, self._room, context, self._clock)
        self._loops.setdefault(loop, {})[origin.key] = lane
        return lane


def tls(ca_file: str | None = None) -> ssl.SSLContext:
    """Verified TLS by the system's authorities, and one's own beside them."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    return context
