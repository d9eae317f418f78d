"""Workers of one machine tell each other by datagrams in a private folder. No hub, no service.

Everybody has a socket file there, and whoever has one is told. A file whose owner is dead is
cleared away by the first who finds out. The kernel keeps ten datagrams for a reader, so what it
does not take at once is tried again in a moment.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from understudy.share.base import Receive

SUFFIX = ".health"
AGAIN = 0.001  # seconds until a full reader is tried again; doubled while none takes anything
AGAIN_MOST = 0.064
WAITING = 10_000  # messages kept for one reader; the oldest are given up
LARGEST = 1024 * 1024  # bytes of a message
AT_ONCE = 64  # messages read before others get their turn


class LocalLink:
    """One worker's end."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._own = folder / f"{name}{SUFFIX}"
        self._socket: socket.socket | None = None
        self._waiting: dict[Path, deque[bytes]] = {}
        self._again: asyncio.TimerHandle | None = None
        self._pause = AGAIN

    async def start(self, receive: Receive) -> None:
        self._socket = ours = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        ours.setblocking(False)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LARGEST)
        ours.bind(str(self._own))
        asyncio.get_running_loop().add_reader(ours, self._read, ours, receive)

    def send(self, message: bytes) -> None:
        if self._socket is None:
            return
        for other in self._others():
            waiting = self._waiting.get(other)
            if waiting is not None:
                waiting.append(message)  # behind what came before
            elif not self._took(other, message):
                self._waiting[other] = deque([message], WAITING)
        self._soon()

    async def close(self) -> None:
        ours, self._socket = self._socket, None
        if self._again is not None:
            self._again.cancel()
        if ours is not None:
            asyncio.get_running_loop().remove_reader(ours)
            ours.close()
            self._own.unlink(missing_ok=True)

    def _others(self) -> Iterator[Path]:
        with suppress(OSError):  # the folder is gone: so is everybody
            for path in self._folder.iterdir():
                if path.suffix == SUFFIX and path != self._own:
                    yield path

    def _took(self, other: Path, message: bytes) -> bool:
        """False if it has to be tried again."""
        assert self._socket is not None
        try:
            self._socket.sendto(message, str(other))
        except BlockingIOError:
            return False
        except ConnectionRefusedError:
            other.unlink(missing_ok=True)
        except OSError:
            pass  # it left just now, or the message is one that nobody could take
        return True

    def _soon(self) -> None:
        if self._waiting and self._again is None:
            self._again = asyncio.get_running_loop().call_later(self._pause, self._try_again)

    def _try_again(self) -> None:
        self._again = None
        taken = sum([self._handed(other) for other in list(self._waiting)])
        self._pause = AGAIN if taken else min(2 * self._pause, AGAIN_MOST)
        self._soon()

    def _handed(self, other: Path) -> int:
        """How many of the waiting messages it took."""
        waiting = self._waiting[other]
        before = len(waiting)
        while waiting and self._took(other, waiting[0]):
            waiting.popleft()
        if not waiting:
            del self._waiting[other]
        return before - len(waiting)

    def _read(self, ours: socket.socket, receive: Receive) -> None:
        for _ in range(AT_ONCE):
            try:
                message = ours.recv(LARGEST)
            except OSError:
                return
            receive(message)
