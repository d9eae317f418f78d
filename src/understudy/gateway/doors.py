"""The sockets of one address: bound once by the supervisor, kept while workers come and go.

Every worker has a socket of its own, so the kernel spreads connections evenly. Because the
supervisor holds all of them, the queue of a worker that died is still there for the next one;
and until it is there, the others take in who waits (see docs/adr/0016-workers.md).
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import sys
from collections.abc import Callable, Sequence

LOOK = 0.05  # seconds between looks at the neighbours' doors
AT_ONCE = 64  # guests taken in at one look
BALANCED = sys.platform == "linux"  # elsewhere the kernel does not spread: one door for all


class Doors:
    """What the supervisor holds."""

    def __init__(self, host: str, port: int, count: int) -> None:
        """Raises OSError if the address is taken, or none of ours."""
        self.host = host
        self._wanted = port
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        self._addresses = list(dict.fromkeys((family, at) for family, _, _, _, at in found))
        self.port = port
        self.sockets: list[socket.socket] = []
        for family, at in self._addresses:
            # With a shared port nobody would be told that another gateway has it already.
            _bound(family, (at[0], self.port, *at[2:]), shared=False).close()
        self.grow(count)

    def serves(self, host: str, port: int) -> bool:
        """Is this the address that was asked for?"""
        return (host, port) == (self.host, self._wanted)

    def grow(self, count: int) -> None:
        """At least so many sockets an address. One that is there stays: it may have a queue."""
        wanted = (count if BALANCED else 1) * len(self._addresses)
        while len(self.sockets) < wanted:
            for family, at in self._addresses:
                door = _bound(family, (at[0], self.port, *at[2:]), shared=BALANCED)
                self.port = door.getsockname()[1]
                self.sockets.append(door)

    def close(self) -> None:
        for door in self.sockets:
            door.close()


def _bound(family: int, address: tuple[object, ...], *, shared: bool) -> socket.socket:
    door = socket.socket(family, socket.SOCK_STREAM)
    try:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            door.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        door.setblocking(False)
        door.bind(address)
    except OSError as error:
        door.close()
        raise cannot_listen(f"{address[0]}:{address[1]}", error) from None
    return door


def cannot_listen(address: str, error: OSError) -> OSError:
    """The same error in one line that names the address; event loops put it into many words."""
    number = error.errno or 0
    why = os.strerror(number) if number > 0 else error.strerror or str(error)
    return OSError(number, f"cannot listen on {address}: {why}")


class Neighbours:
    """The doors of the other workers: who waits there from one look to the next is taken in."""

    def __init__(
        self, doors: Sequence[socket.socket], take: Callable[[socket.socket], object]
    ) -> None:
        self._doors = {door.fileno(): door for door in doors}
        self._take = take
        self._waiting: set[int] = set()
        self._poll = select.poll()
        self._timer: asyncio.TimerHandle | None = None
        for number in self._doors:
            self._poll.register(number, select.POLLIN)

    def look(self) -> None:
        """Now, and again and again until closed."""
        waiting = {number for number, event in self._poll.poll(0) if event == select.POLLIN}
        for number in waiting & self._waiting:
            self._let_in(self._doors[number])
        self._waiting = waiting
        self._timer = asyncio.get_running_loop().call_later(LOOK, self.look)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for door in self._doors.values():
            door.close()
        self._doors.clear()

    def _let_in(self, door: socket.socket) -> None:
        for _ in range(AT_ONCE):
            try:
                guest, _ = door.accept()
            except OSError:
                return  # its owner was quicker, or the guest left
            guest.setblocking(False)
            self._take(guest)
