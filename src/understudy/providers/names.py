"""Names looked up, each in a thread of its own, so that none waits for another.

The event loop has four threads for all names. A name server that is silent about one of them
takes 10 s and more to be given up; a few requests for that name, and nobody else can be looked up
either: the provider that should step in is as unreachable as the one that failed. Here a name is
asked for once at a time, whoever wants it. If there is no answer, or none soon, the last one will
do: names seldom move in the hour in which their servers fail.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Thread
from weakref import WeakKeyDictionary

PATIENCE = 1.0  # seconds for a fresh answer, where there is an old one
MOST = 1024  # names that are remembered

# As getaddrinfo gives it; the odd member is for a Python without IPv6.
Where = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]
Found = tuple[int, int, int, str, Where]
Name = tuple[str, int]  # host and port
Resolver = Callable[[str, int], Sequence[Found]]


def resolved(host: str, port: int) -> Sequence[Found]:
    """The resolver's word; blocks. Without a file to ask with it says there is no such name."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        socket.socket().close()  # raises what is really wrong, if it is that
        raise


def spawn(work: Callable[[], None], name: str) -> None:
    """In a thread that the interpreter does not wait for: name servers may take their time."""
    Thread(target=work, name=f"lookup of {name}", daemon=True).start()


class Names:
    """What one event loop knows of names."""

    def __init__(
        self,
        ask: Resolver = resolved,
        patience: float = PATIENCE,
        start: Callable[[Callable[[], None], str], None] = spawn,
    ) -> None:
        self._ask = ask
        self._patience = patience
        self._start = start
        self._known: dict[Name, Sequence[Found]] = {}
        self._asked: dict[Name, asyncio.Future[Sequence[Found]]] = {}

    @staticmethod
    def of(loop: asyncio.AbstractEventLoop) -> Names:
        """The one that everybody in this loop shares."""
        return KNOWN.get(loop) or KNOWN.setdefault(loop, Names())

    async def find(self, host: str, port: int) -> Sequence[Found]:
        """Its addresses. Raises what the resolver does, unless they were known before."""
        name = (host, port)
        asked = self._asked.get(name) or self._begin(name)
        known = self._known.get(name)
        if known is None:
            return await asyncio.shield(asked)
        done, _ = await asyncio.wait({asked}, timeout=self._patience)
        return known if not done or asked.exception() is not None else asked.result()

    def _begin(self, name: Name) -> asyncio.Future[Sequence[Found]]:
        loop = asyncio.get_running_loop()
        asked = self._asked[name] = loop.create_future()
        asked.add_done_callback(lambda _: asked.exception())  # nobody may be waiting any more

        def look_up() -> None:
            answer: Sequence[Found] | Exception
            try:
                answer = self._ask(*name)
            except Exception as error:  # noqa: BLE001 - whoever waits has to be told
                answer = error
            with suppress(RuntimeError):  # the loop was closed: nobody waits
                loop.call_soon_threadsafe(self._told, name, answer)

        try:
            self._start(look_up, name[0])
        except RuntimeError as error:  # there is no thread left
            self._told(name, OSError(errno.ENOMEM, str(error)))
        return asked

    def _told(self, name: Name, answer: Sequence[Found] | Exception) -> None:
        asked = self._asked.pop(name)
        if isinstance(answer, Exception):
            return asked.set_exception(answer)
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[name] = answer
        asked.set_result(answer)


KNOWN: WeakKeyDictionary[asyncio.AbstractEventLoop, Names] = WeakKeyDictionary()
