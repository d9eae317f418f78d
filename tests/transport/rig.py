"""A server that does what its scripts say, one script a connection, byte for byte.

A step is bytes to write or something to do: `request` reads one, `close` and `reset` end the
connection, `until(event)` waits for the test, `hang` waits for the client to leave. After its
last step a connection waits for the client to leave. Nothing here sleeps.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from types import TracebackType

import uvloop

from understudy.core.errors import ProviderError
from understudy.providers.pool import Pool
from understudy.providers.transport import Answer, Limits, Origin, Outgoing, render_head

LIMITS = Limits()
OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"


class Peer:
    """One accepted connection, as the server sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.requests: list[bytes] = []
        self.gone = asyncio.Event()  # the client has left

    async def play(self, script: Script) -> None:
        for step in script:
            if isinstance(step, bytes):
                self.writer.write(step)
                await self.writer.drain()
            else:
                await step(self)
        await hang(self)


Step = bytes | Callable[[Peer], Awaitable[None]]
Script = Sequence[Step]


async def request(peer: Peer) -> None:
    """Read one request whole."""
    head = await peer.reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.partition(b":")[2])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    )
    peer.requests.append(head + await peer.reader.readexactly(length))


async def close(peer: Peer) -> None:
    peer.writer.close()


async def reset(peer: Peer) -> None:
    """RST instead of FIN."""
    sock = peer.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.writer.transport.abort()


async def hang(peer: Peer) -> None:
    """Wait for the client to leave; what it still says is of no interest."""
    try:
        while await peer.reader.read(65536):
            pass
    except OSError:
        pass
    peer.gone.set()


TURN: tuple[Step, Step] = (request, OK)  # one exchange


def until(event: asyncio.Event) -> Callable[[Peer], Awaitable[None]]:
    async def wait(_: Peer) -> None:
        await event.wait()

    return wait


class Server:
    """Plays its scripts, the first for the first connection, the last for all that follow."""

    def __init__(
        self, *scripts: Script, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
    ) -> None:
        self.peers: list[Peer] = []
        self._scripts = scripts
        self._host = host
        self._tls = tls

    async def __aenter__(self) -> Server:
        self._server = await asyncio.start_server(self._accept, self._host, 0, ssl=self._tls)
        port = self._server.sockets[0].getsockname()[1]
        self.origin = Origin("https" if self._tls else "http", self._host, port)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _: TracebackType | None,
    ) -> None:
        self._server.close()
        for peer in self.peers:
            peer.writer.close()
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        self.peers.append(peer)
        script = self._scripts[min(len(self.peers), len(self._scripts)) - 1]
        try:
            await peer.play(script)
        except (OSError, EOFError):
            peer.gone.set()  # the client left in the middle of a step
        finally:
            writer.close()

    def ask(self, body: bytes = b"{}") -> Outgoing:
        """A request to this server."""
        return ask(self.origin, body)


def ask(origin: Origin, body: bytes = b"{}") -> Outgoing:
    return Outgoing(origin, render_head("POST", origin, "/v1/x", {"x-key": "secret"}), body)


async def soon(happened: Callable[[], bool]) -> bool:
    """Does it happen by itself? Every timer of the transport is longer than the patience here."""
    loop = asyncio.get_running_loop()
    end = loop.time() + 2.0
    while True:
        if happened() or loop.time() > end:
            return happened()
        await asyncio.sleep(0)


async def failure(attempt: Awaitable[object]) -> ProviderError:
    """The error in which an attempt ends; ending without one, or in another, is a failure."""
    try:
        await attempt
    except ProviderError as error:
        return error
    raise AssertionError("it did not fail")


async def get(pool: Pool, server: Server, limits: Limits = LIMITS) -> bytes:
    answer: Answer = await pool.send(server.ask(), limits)
    return await answer.read()


def play(story: Story, make: Callable[[], Pool] = Pool) -> None:
    """Run a story on both event loops and insist that it leaves nothing behind."""
    for run in (asyncio.run, on_uvloop):
        complaints: list[object] = []
        before = open_sockets()
        run(stage(story, make(), complaints))
        assert not complaints
        assert open_sockets() == before


Story = Callable[[Pool], Coroutine[None, None, None]]


async def stage(story: Story, pool: Pool, complaints: list[object]) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    async with asyncio.timeout(20):  # no test waits: this is for one that would never end
        try:
            await story(pool)
        finally:
            await pool.aclose()
    me = asyncio.current_task()
    assert await soon(lambda: asyncio.all_tasks() == {me}), asyncio.all_tasks()


def open_sockets() -> int:
    """How many sockets this process has open, where the system tells."""
    listing = Path("/proc/self/fd")
    if not listing.exists():
        return 0
    # The listing itself is among them and gone when it is looked at.
    kinds = (os.readlink(entry) for entry in listing.iterdir() if entry.is_symlink())
    return sum(kind.startswith("socket:") for kind in kinds)


def on_uvloop(main: Coroutine[None, None, None]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)
