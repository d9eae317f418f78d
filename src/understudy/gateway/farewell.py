"""The end of a connection whose client still sends: it gets time to read what it was told.

A socket that is closed with something unread in it resets its connection, and the reset overtakes
the answer: clients that write first and read then see a broken connection where there was a 413.
So our side is shut, and what comes is thrown away until the client has closed its own (RFC 9112,
9.6).
"""

from __future__ import annotations

import asyncio
from typing import Protocol

# A body that is somewhat too large has to be taken whole, or its sender will not read the answer.
# That costs no memory and little time, a tenth of a second for all of it; a client holds its
# connection for less long than it may by being slow.
SPARE = 96 * 1024 * 1024  # bytes, beside as many as a body may have
SECONDS = 10.0  # at 100 Mbit/s, nearly so many bytes


class Leaving(Protocol):
    """The connection that ends."""

    def abort(self) -> None: ...
    def connection_lost(self, error: Exception | None) -> None: ...


class Farewell(asyncio.Protocol):
    """Takes its place at the socket, and keeps nothing."""

    __slots__ = ("_connection", "_left")

    def __init__(self, connection: Leaving, body: int) -> None:
        self._connection = connection
        self._left = body + SPARE  # bytes

    def data_received(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            self._connection.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._connection.connection_lost(error)
