"""An HTTP/1.1 server: listens, counts connections, keeps the coarse deadlines. Knows no routes.

One coarse tick for all deadlines. Sizes, times and connections are bounded; a client that leaves
ends its request.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from understudy.core.health import Clock
from understudy.gateway.connection import Application, Connection
from understudy.gateway.doors import cannot_listen
from understudy.gateway.heads import Heads
from understudy.gateway.http import ServerLimits
from understudy.gateway.unfit import Unfit
from understudy.providers.outbox import Outbox

__all__ = ["Application", "Server"]

LAST_WORDS = 0.5  # seconds for what those are told who are cut off
SPARE = 16  # places for operators' questions when all others are taken
TICK = 1.0  # seconds between looks at the clock; deadlines here are coarse on purpose


def nothing(method: str, path: str) -> bool:
    return False


class Server:
    """Listens, counts connections, keeps the coarse deadlines, drains."""

    def __init__(
        self,
        application: Application,
        refusal: Callable[[str, Unfit], bytes],
        *,
        limits: ServerLimits = ServerLimits(),  # noqa: B008 - frozen
        clock: Clock,
    ) -> None:
        self.application = application
        self.refusal = refusal
        self.limits = limits
        self.stopping = False
        self.last_visits = False  # answers ask their clients not to come back
        self.room = limits.connections  # that there are files for
        self.crowded: Callable[[int], None] | None = None  # told how many were turned away
        self.open_to: Callable[[str, str], bool] = nothing  # method and path, whatever the crowd
        self.now = clock()
        self._clock = clock
        self._connections: set[Connection] = set()
        self._listeners: list[asyncio.Server] = []
        self._ticking: asyncio.TimerHandle | None = None
        self._turned_away = 0  # since the last tick
        self.loop: asyncio.AbstractEventLoop
        self.outbox: Outbox
        self.heads = Heads()

    async def listen(self, host: str, port: int) -> int:
        """Start; the port, which is the system's choice if 0 was given."""
        self._settle()
        try:
            listener = await self.loop.create_server(
                lambda: Connection(self), host, port, backlog=2048
            )
        except OSError as error:
            raise cannot_listen(f"{host}:{port}", error) from None
        self._listeners.append(listener)
        self._tick()
        bound: int = listener.sockets[0].getsockname()[1]
        return bound

    async def listen_on(self, door: socket.socket) -> None:
        """Start on a socket that is bound already, beside others perhaps."""
        self._settle()
        listener = await self.loop.create_server(lambda: Connection(self), sock=door, backlog=2048)
        self._listeners.append(listener)
        if self._ticking is None:
            self._tick()

    def _settle(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.outbox = Outbox.of(self.loop)

    async def take(self, guest: socket.socket) -> None:
        """Serve a connection that was accepted elsewhere."""
        await self.loop.connect_accepted_socket(lambda: Connection(self), guest)

    def shut(self) -> None:
        """Let nobody in any more; who is inside stays."""
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()

    async def close(self) -> None:
        """Stop listening, let running requests end within the drain limit, then cut them off."""
        self.stopping = True
        self.shut()
        for connection in [c for c in self._connections if not c.busy]:
            connection.cut()
        await self._emptied(self.limits.drain_seconds)
        for connection in list(self._connections):
            connection.cut()
        await self._emptied(LAST_WORDS)
        for connection in list(self._connections):
            connection.abort()
        if self._ticking is not None:
            self._ticking.cancel()
        self._tell_of_the_crowd()

    async def _emptied(self, seconds: float) -> None:
        """Wait for that, but no longer than so."""
        end = self._clock() + seconds
        pause = 0.0  # idle connections are gone at once; running requests are waited for
        while self._connections and self._clock() < end:
            await asyncio.sleep(pause)
            pause = min(0.02, pause + 0.001)

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    @property
    def most(self) -> int:
        """Connections that are let in at a time."""
        return min(self.limits.connections, self.room)

    def opened(self, connection: Connection) -> None:
        self._connections.add(connection)
        connection.deadline = self.now + self.limits.read_seconds
        over = len(self._connections) - self.most
        connection.spare = over > 0
        if over > SPARE:
            self._turned_away += 1
            connection.abort()

    def admits(self, method: str, path: str) -> bool:
        free = len(self._connections) <= self.most  # by now, though not when it was opened
        admitted = free or self.open_to(method, path)
        self._turned_away += not admitted
        return admitted

    def closed(self, connection: Connection) -> None:
        self._connections.discard(connection)

    def _tell_of_the_crowd(self) -> None:
        turned_away, self._turned_away = self._turned_away, 0
        if turned_away and self.crowded is not None:
            self.crowded(turned_away)

    def _tick(self) -> None:
        self.now = self._clock()
        due = self.now - TICK  # a deadline counts from the tick before: nobody's comes too early
        for connection in [c for c in self._connections if c.deadline <= due]:
            connection.expire()
        self._tell_of_the_crowd()
        self._ticking = self.loop.call_later(TICK, self._tick)
