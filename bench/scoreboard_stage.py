"""The upstreams of the scoreboard: a head for every case, each on a port of its own, and a tail.

Heads share nothing, so that neither a bench nor a dead connection of one case reaches the next.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace

import trustme
from scoreboard_judge import CONTROL, TAIL, Case, Seen

from understudy.rehearse.script import parse
from understudy.rehearse.server import FakeServer

HERE = "127.0.0.1"
NOBODY = "no-such-host"  # not `.invalid`: a product refuses that by its name, without a lookup


@dataclass(frozen=True, slots=True)
class Ports:
    """Kept from the moment a configuration names them until the servers take them."""

    heads: Mapping[str, socket.socket]
    tail: socket.socket

    @classmethod
    def kept(cls, cases: Sequence[Case]) -> Ports:
        return cls({case.name: _bound() for case in cases}, _bound())

    def address(self, case: Case) -> str:
        """Where the head of a case is, or would be."""
        port = _port(self.heads[case.name])
        named = {
            "unknown-host": f"http://{NOBODY}:{port}",
            "bad-certificate": f"https://{HERE}:{port}",
        }
        return named.get(case.fault.name, f"http://{HERE}:{port}")

    @property
    def tail_address(self) -> str:
        return f"http://{HERE}:{_port(self.tail)}"

    def close(self) -> None:
        for kept in (self.tail, *self.heads.values()):
            kept.close()


def _bound() -> socket.socket:
    # Bound and never listening: who connects is refused.
    kept = socket.socket()
    kept.bind((HERE, 0))
    return kept


def _port(kept: socket.socket) -> int:
    return int(kept.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Upstreams:
    """Everybody who is asked, and how often."""

    heads: Mapping[str, FakeServer]
    tail: FakeServer

    def counted(self, case: Case, seen: Seen) -> Seen:
        tail = sum(played.model == case.name for played in self.tail.played)
        if not case.counted:
            return replace(seen, head=None, tail=tail)
        return replace(seen, head=len(self.heads[case.name].played), tail=tail)


@asynccontextmanager
async def upstreams(cases: Sequence[Case], ports: Ports) -> AsyncIterator[Upstreams]:
    """Servers on the ports that were kept for them."""
    tail, heads = FakeServer(parse(f"*: {TAIL!r} ...")), dict[str, FakeServer]()
    async with AsyncExitStack() as stack:
        await _started(stack, tail, ports.tail)
        for case in cases:
            kept = ports.heads[case.name]
            if case.fault.name == "bad-certificate":
                await _untrusted(stack, kept)
            elif case.counted:
                heads[case.name] = FakeServer(parse(f"*: {_cue(case)} ..."))
                await _started(stack, heads[case.name], kept)
        yield Upstreams(heads, tail)


def _cue(case: Case) -> str:
    return repr(case.own) if case.fault is CONTROL else case.fault.name


async def _started(stack: AsyncExitStack, server: FakeServer, kept: socket.socket) -> None:
    port = _port(kept)
    kept.close()
    await server.start(HERE, port)
    stack.push_async_callback(server.close)


async def _untrusted(stack: AsyncExitStack, kept: socket.socket) -> None:
    """TLS with a certificate of nobody's."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert(HERE).configure_cert(context)
    port = _port(kept)
    kept.close()
    server = await asyncio.start_server(_leave, HERE, port, ssl=context)
    await stack.enter_async_context(server)


def _leave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()
