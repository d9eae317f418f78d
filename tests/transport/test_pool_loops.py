"""One pool for several event loops, and how its connections end."""

from __future__ import annotations

import asyncio
import threading

from transport.rig import (
    LIMITS,
    OK,
    TURN,
    Peer,
    Server,
    ask,
    get,
    play,
    request,
    soon,
    until,
)
from transport.test_pool import Blocking
from understudy.providers.pool import Pool


def test_one_pool_serves_two_event_loops_in_two_threads() -> None:
    pool = Pool()
    together = threading.Barrier(2, timeout=20)
    connections: list[int] = []

    async def story() -> None:
        async with Server([request, OK] * 20) as server:
            together.wait()
            for _ in range(20):
                assert await get(pool, server) == b"{}"
            connections.append(len(server.peers))
            together.wait()
            await pool.aclose()

    threads = [threading.Thread(target=asyncio.run, args=(story(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert connections == [1, 1]


def test_a_new_event_loop_forgets_those_that_are_closed() -> None:
    pool = Pool()
    last = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}"

    async def story() -> None:
        async with Server([request, last]) as server:
            await get(pool, server)
            assert await soon(server.peers[0].gone.is_set)

    for _ in range(3):
        asyncio.run(story())
    assert len(pool._loops) == 1


def test_an_answer_to_half_a_request_ends_the_connection() -> None:
    """A server that says no to an upload and leaves the rest of it lying in the socket."""
    no = b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n"

    async def story(pool: Pool) -> None:
        async def glance(peer: Peer) -> None:
            await peer.reader.readuntil(b"\r\n\r\n")
            # Nobody reads on: what the socket cannot hold stays with the client.

        gate = asyncio.Event()
        async with Server([glance, no, until(gate)], [*TURN]) as server:
            answer = await pool.send(server.ask(bytes(20_000_000)), LIMITS)
            assert (answer.status, await answer.read()) == (413, b"")
            assert await get(pool, server) == b"{}"
            assert len(server.peers) == 2
            gate.set()

    play(story)


def test_a_closed_transport_has_closed_its_connections() -> None:
    """Not only begun to: the event loop may stop right after."""

    async def story() -> None:
        server, pool = Blocking(), Pool()
        first = asyncio.create_task(server.answer())
        await (await pool.send(ask(server.origin), LIMITS)).read()
        with await first as peer:
            await pool.aclose()
            peer.setblocking(False)
            assert peer.recv(1) == b""
        server.close()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(story())
    loop.close()
