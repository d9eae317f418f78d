"""Who gets which connection: reuse, age, room, the line, dead ones, and several event loops."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable

import pytest

from transport.rig import (
    LIMITS,
    OK,
    TURN,
    Script,
    Server,
    ask,
    close,
    failure,
    get,
    hang,
    play,
    request,
    reset,
    soon,
    stage,
    until,
)
from understudy.providers.pool import Pool, Room
from understudy.providers.transport import Origin, Outgoing


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_two_requests_in_a_row_share_a_connection() -> None:
    async def story(pool: Pool) -> None:
        async with Server([request, OK, request, OK]) as server:
            assert [await get(pool, server), await get(pool, server)] == [b"{}", b"{}"]
            assert len(server.peers) == 1

    play(story)


def test_a_connection_is_free_again_as_soon_as_its_answer_has_arrived() -> None:
    async def story(pool: Pool) -> None:
        async with Server([request, OK, request, OK]) as server:
            unread = await pool.send(server.ask(), LIMITS)
            assert await get(pool, server) == b"{}"
            assert len(server.peers) == 1
            assert await unread.read() == b"{}"

    play(story)


@pytest.mark.parametrize(("idle", "connections"), [(29.0, 1), (30.0, 1), (30.5, 2)])
def test_a_connection_is_trusted_for_thirty_seconds_of_idleness(
    idle: float, connections: int
) -> None:
    clock = Clock()

    async def story(pool: Pool) -> None:
        async with Server([request, OK, request, OK]) as server:
            await get(pool, server)
            clock.now += idle
            await get(pool, server)
            assert len(server.peers) == connections
            assert connections == 1 or await soon(server.peers[0].gone.is_set)

    play(story, lambda: Pool(clock=clock))


def test_a_forgotten_connection_is_closed_when_another_comes_back() -> None:
    clock = Clock()

    async def story(pool: Pool) -> None:
        gate = asyncio.Event()
        async with Server([request, OK, hang], [request, until(gate), OK]) as server:
            quick = asyncio.create_task(get(pool, server))
            assert await soon(lambda: len(server.peers) == 1)
            slow = asyncio.create_task(get(pool, server))
            assert await soon(lambda: len(server.peers) == 2)
            await quick
            clock.now += 31
            gate.set()
            await slow
            assert await soon(server.peers[0].gone.is_set)
            assert not server.peers[1].gone.is_set()

    play(story, lambda: Pool(clock=clock))


def test_no_more_than_so_many_are_kept_idle() -> None:
    async def story(pool: Pool) -> None:
        gate = asyncio.Event()
        async with Server([request, until(gate), OK, hang]) as server:
            tasks = [asyncio.create_task(get(pool, server)) for _ in range(4)]
            assert await soon(lambda: len(server.peers) == 4)
            gate.set()
            await asyncio.gather(*tasks)
            assert await soon(lambda: sum(peer.gone.is_set() for peer in server.peers) == 3)

    play(story, lambda: Pool(Room(idle=1)))


def test_when_all_are_busy_requests_wait_in_line_and_are_served_in_order() -> None:
    async def story(pool: Pool) -> None:
        gate = asyncio.Event()
        script: Script = [request, until(gate), OK, *(TURN * 4)]
        async with Server(script) as server:
            tasks = []
            for n in range(5):
                outgoing = server.ask(b"%d" % n)
                tasks.append(asyncio.create_task(read(pool, outgoing)))
                await asyncio.sleep(0)
            gate.set()
            await asyncio.gather(*tasks)
            assert b"".join(seen[-1:] for seen in server.peers[0].requests) == b"01234"
            assert len(server.peers) == 1

    play(story, lambda: Pool(Room(connections=1)))


async def read(pool: Pool, outgoing: Outgoing) -> bytes:
    return await (await pool.send(outgoing, LIMITS)).read()


def test_leaving_the_line_costs_the_others_nothing() -> None:
    async def story(pool: Pool) -> None:
        gate = asyncio.Event()
        async with Server([request, until(gate), OK, request, OK]) as server:
            first = asyncio.create_task(get(pool, server))
            assert await soon(lambda: bool(server.peers and server.peers[0].requests))
            leaving = asyncio.create_task(get(pool, server))
            staying = asyncio.create_task(get(pool, server))
            await asyncio.sleep(0)
            leaving.cancel()
            assert await soon(leaving.cancelled)
            gate.set()
            assert [*await asyncio.gather(first, staying)] == [b"{}", b"{}"]
            assert len(server.peers[0].requests) == 2

    play(story, lambda: Pool(Room(connections=1)))


def test_called_up_and_cancelled_in_the_same_moment_passes_the_turn_on() -> None:
    async def story(pool: Pool) -> None:
        gate = asyncio.Event()
        half = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{"
        async with Server([request, half, until(gate), b"}", *(TURN * 2)]) as server:
            answer = await pool.send(server.ask(), LIMITS)
            leaving = asyncio.create_task(get(pool, server))
            staying = asyncio.create_task(get(pool, server))
            await asyncio.sleep(0)
            # When the last byte is pushed the connection has just been given to the first in line.
            answer.push(lambda _, done: None if not done else leave(leaving))
            gate.set()
            assert await staying == b"{}"
            assert leaving.cancelled()
            assert len(server.peers[0].requests) == 2

    play(story, lambda: Pool(Room(connections=1)))


def leave(task: asyncio.Task[bytes]) -> None:
    task.cancel()


def test_a_place_whose_connection_dies_goes_to_the_next_in_line() -> None:
    async def story(pool: Pool) -> None:
        gate = asyncio.Event()
        async with Server([request, until(gate), reset], [request, OK]) as server:
            first = asyncio.create_task(failure(get(pool, server)))
            assert await soon(lambda: bool(server.peers and server.peers[0].requests))
            second = asyncio.create_task(get(pool, server))
            await asyncio.sleep(0)
            gate.set()
            assert (await first).billing == "maybe_billed"
            assert await second == b"{}"
            assert len(server.peers) == 2

    play(story, lambda: Pool(Room(connections=1)))


def test_a_connection_that_cannot_be_opened_gives_its_place_back() -> None:
    async def story(pool: Pool) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            nobody = Origin("http", "127.0.0.1", taken.getsockname()[1])
            for _ in range(3):
                assert (await failure(pool.send(ask(nobody), LIMITS))).billing == "not_sent"

    play(story, lambda: Pool(Room(connections=1)))


def test_those_in_line_are_told_when_the_transport_closes() -> None:
    async def story(pool: Pool) -> None:
        async with Server([request, hang]) as server:
            tasks = [asyncio.create_task(failure(get(pool, server))) for _ in range(2)]
            assert await soon(lambda: bool(server.peers and server.peers[0].requests))
            await pool.aclose()
            working, waiting = await asyncio.gather(*tasks)
            assert (working.billing, waiting.billing) == ("maybe_billed", "not_sent")

    play(story, lambda: Pool(Room(connections=1)))


def test_a_connection_the_peer_closed_while_idle_is_not_used() -> None:
    clock = Clock()

    async def story(pool: Pool) -> None:
        async with Server([request, OK, close], [request, OK]) as server:
            await get(pool, server)
            assert await soon(server.peers[0].gone.is_set)
            clock.now += 1
            assert await get(pool, server) == b"{}"
            assert len(server.peers) == 2

    play(story, lambda: Pool(clock=clock))


def test_bytes_nobody_asked_for_end_an_idle_connection() -> None:
    async def story(pool: Pool) -> None:
        gate = asyncio.Event()
        async with Server([request, OK, until(gate), OK], [request, OK]) as server:
            await get(pool, server)
            gate.set()
            assert await soon(server.peers[0].gone.is_set)
            assert await get(pool, server) == b"{}"
            assert len(server.peers) == 2

    play(story)


class Blocking:
    """A server in the same thread: what it does to a socket, the event loop has not yet seen."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.setblocking(False)
        self.origin = Origin("http", *self._socket.getsockname())

    async def answer(self) -> socket.socket:
        loop = asyncio.get_running_loop()
        sock, _ = await loop.sock_accept(self._socket)
        sock.setblocking(False)
        await self.answer_on(sock)
        return sock

    async def answer_on(self, sock: socket.socket) -> bytes:
        loop = asyncio.get_running_loop()
        seen = await loop.sock_recv(sock, 65536)
        await loop.sock_sendall(sock, OK)
        return seen

    def close(self) -> None:
        self._socket.close()


def hard(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


@pytest.mark.parametrize("leave", [socket.socket.close, hard], ids=["closed", "reset"])
def test_a_connection_closed_behind_the_loops_back_is_seen_before_writing(
    leave: Callable[[socket.socket], None],
) -> None:
    """Idle for a while, so the socket is looked at: nothing is written to a dead connection."""
    clock = Clock()

    async def story(pool: Pool) -> None:
        server = Blocking()
        first = asyncio.create_task(server.answer())
        await (await pool.send(ask(server.origin), LIMITS)).read()
        second = asyncio.create_task(server.answer())
        await asyncio.sleep(0)
        clock.now += 1
        leave(await first)  # from here to the write below the event loop does not turn
        assert await (await pool.send(ask(server.origin), LIMITS)).read() == b"{}"
        (await second).close()
        server.close()

    play(story, lambda: Pool(clock=clock))


def test_a_request_that_could_not_even_be_begun_is_sent_again_once() -> None:
    """Reset a moment after its answer: the first write fails and nothing has left."""
    clock = Clock()  # stands still, so the socket is not looked at

    async def story(pool: Pool) -> None:
        server = Blocking()
        first = asyncio.create_task(server.answer())
        await (await pool.send(ask(server.origin), LIMITS)).read()
        second = asyncio.create_task(server.answer())
        await asyncio.sleep(0)
        hard(await first)
        assert await (await pool.send(ask(server.origin), LIMITS)).read() == b"{}"
        (await second).close()
        server.close()

    # uvloop writes at the end of a turn, so there it is too late to know that nothing left.
    asyncio.run(stage(story, Pool(clock=clock), []))


def test_a_request_that_was_written_is_never_sent_again() -> None:
    """A kept connection that dies with our request in it: perhaps billed, so not repeated."""
    clock = Clock()

    async def story(pool: Pool) -> None:
        async with Server([request, OK, request, reset], [request, OK]) as server:
            await get(pool, server)
            clock.now += 1
            assert (await failure(get(pool, server))).billing == "maybe_billed"
            assert len(server.peers) == 1

    play(story, lambda: Pool(clock=clock))


def test_a_peer_that_closes_behind_its_answer_without_saying_so_is_asked_anew() -> None:
    """What was asked in the meantime has not been heard, so it cannot be billed either."""

    async def story(pool: Pool) -> None:
        async with Server([request, OK, close]) as server:
            for n in range(1, 6):
                assert await get(pool, server) == b"{}"
                assert [len(peer.requests) for peer in server.peers] == [1] * n

    play(story)
