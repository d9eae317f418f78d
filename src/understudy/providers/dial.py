"""From a name to an open connection: lookup, a race of addresses, TLS.

Addresses are tried a quarter second apart, families in turn (RFC 8305), so a host with a dead
IPv6 route costs 250 ms and not the whole connect limit. Done here and not by the event loop
because uvloop tries addresses one after the other.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from understudy.core.errors import is_ours
from understudy.providers.names import Found, Names, Where

if TYPE_CHECKING:
    from understudy.providers.transport import Origin

STAGGER = 0.25  # seconds before the next address is tried beside the slow one

Address = tuple[int, Where]


async def dial(
    loop: asyncio.AbstractEventLoop,
    origin: Origin,
    context: ssl.SSLContext | None,
    protocol: Callable[[], asyncio.Protocol],
) -> None:
    """Connect the protocol to the origin, through TLS when there is a context. Cancellable."""
    addresses = await lookup(Names.of(loop), origin.host, origin.port)
    sock = await race(loop, addresses)
    name = origin.host if context is not None else None
    await loop.create_connection(protocol, sock=sock, ssl=context, server_hostname=name)


async def lookup(names: Names, host: str, port: int) -> list[Address]:
    """Every address of a host, the families taking turns; a literal needs no resolver."""
    kind = socket.SOCK_STREAM
    try:
        found: Sequence[Found] = socket.getaddrinfo(
            host, port, type=kind, flags=socket.AI_NUMERICHOST
        )
    except OSError:
        found = await names.find(host, port)
    addresses: list[Address] = [(family, where) for family, _, _, _, where in found]
    first = [each for each in addresses if each[0] == addresses[0][0]]
    second = [each for each in addresses if each[0] != addresses[0][0]]
    turns = chain.from_iterable(zip_longest(first, second))
    return [each for each in turns if each is not None]


async def race(
    loop: asyncio.AbstractEventLoop, addresses: list[Address], stagger: float = STAGGER
) -> socket.socket:
    """The first connected socket; when there is none, the first error that is about the host."""
    if len(addresses) == 1:
        return await connect(loop, addresses[0])
    waiting = list(reversed(addresses))
    running: set[asyncio.Task[socket.socket]] = set()
    failed: list[BaseException] = []
    try:
        while waiting or running:
            if waiting:
                running.add(loop.create_task(connect(loop, waiting.pop())))
            patience = stagger if waiting else None
            done, _ = await asyncio.wait(
                running, timeout=patience, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                error = task.exception()
                if error is None:
                    running.discard(task)
                    return task.result()
                running.discard(task)
                failed.append(error)
        raise telling(failed)
    finally:
        await dismiss(running)


def telling(errors: Sequence[BaseException]) -> BaseException:
    """The first that is about the host: that we have no IPv6 says nothing of it."""
    return next((error for error in errors if not is_ours(error)), errors[0])


async def dismiss(losers: set[asyncio.Task[socket.socket]]) -> None:
    """End those still running, and close what they connected all the same."""
    for task in losers:
        task.cancel()
    if losers:
        await asyncio.wait(losers)
    for task in losers:
        if not task.cancelled() and task.exception() is None:
            task.result().close()


async def connect(loop: asyncio.AbstractEventLoop, address: Address) -> socket.socket:
    family, where = address
    sock = socket.socket(family, socket.SOCK_STREAM)
    connected = False
    try:
        sock.setblocking(False)
        # Requests are written whole: waiting for more to send would only delay them.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await loop.sock_connect(sock, where)
        connected = True
        return sock
    finally:
        if not connected:
            sock.close()
