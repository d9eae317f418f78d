"""All that can go wrong on the way ends in one error, rightly labelled, and nothing leaks."""

from __future__ import annotations

import asyncio
import gzip
import socket
from dataclasses import replace

import pytest

from transport.rig import (
    LIMITS,
    OK,
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
)
from understudy.core.errors import ProviderError
from understudy.core.faults import Fault
from understudy.providers.pool import Pool
from understudy.providers.transport import Answer, Origin

LONG = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"
SMALL = replace(LIMITS, max_reply=100_000)


def label(error: ProviderError) -> tuple[Fault, str]:
    return error.fault, error.billing


MAYBE = (Fault.TRANSIENT, "maybe_billed")
NOT_SENT = (Fault.TRANSIENT, "not_sent")

# What the server does, and what is said of it.
BROKEN: dict[str, tuple[Script, str]] = {
    "closed without an answer": ([request, close], "closed the connection without an answer"),
    "reset before the head": ([request, reset], "reset the connection"),
    "closed inside the head": (
        [request, b"HTTP/1.1 200 OK\r\nx: ", close],
        "closed the connection in the middle of its head",
    ),
    "reset inside the head": ([request, b"HTTP/1.1 200 OK\r\nx: ", reset], "the connection"),
    "closed inside the body": (
        [request, LONG, close],
        "closed the connection in the middle of its answer",
    ),
    "reset inside the body": ([request, LONG, reset], "the connection"),
    "cut between chunks": ([request, CHUNKED, close], "in the middle of its answer"),
    "cut inside a chunk": ([request, CHUNKED + b"5\r\nwo", close], "in the middle of its answer"),
    "no last chunk size": ([request, CHUNKED + b"0\r\n", close], "in the middle of its answer"),
    "nonsense for a chunk size": ([request, CHUNKED + b"xyz\r\n"], "does not speak HTTP/1.1"),
    "not HTTP": ([request, b"SSH-2.0-OpenSSH_9.2\r\n"], "does not speak HTTP/1.1"),
    "a length twice": (
        [request, b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"],
        "does not speak HTTP/1.1",
    ),
    "a length and chunks": (
        [
            request,
            b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        ],
        "does not speak HTTP/1.1",
    ),
    "a negative length": (
        [request, b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n"],
        "does not speak HTTP/1.1",
    ),
    "a folded header": (
        [request, b"HTTP/1.1 200 OK\r\nx: a\r\n b\r\ncontent-length: 0\r\n\r\n"],
        "does not speak HTTP/1.1",
    ),
    "another protocol": (
        [
            request,
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        ],
        "answered with status 101",
    ),
    "a coding nobody knows": (
        [request, b"HTTP/1.1 200 OK\r\ncontent-encoding: zip\r\ncontent-length: 1\r\n\r\nx"],
        "packed as 'zip', which is not understood",
    ),
}


@pytest.mark.parametrize(("script", "said"), BROKEN.values(), ids=BROKEN)
def test_a_broken_answer_is_transient_and_maybe_billed(script: Script, said: str) -> None:
    async def story(pool: Pool) -> None:
        async with Server(script) as server:
            error = await failure(get(pool, server))
            assert label(error) == MAYBE
            assert str(error.message).startswith(server.origin.authority)
            assert said in error.message
            assert error.__cause__ is not None
            assert await soon(server.peers[0].gone.is_set)

    play(story)


PACKED = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n%b"
WHOLE = gzip.compress(b"x" * 100, mtime=0)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"nope", "a packed body that cannot be unpacked"),
        (WHOLE[:20], "a packed body that stops in the middle"),
        (WHOLE + b"more", "a packed body with bytes after its end"),
    ],
    ids=["no gzip", "half of it", "something after it"],
)
def test_a_badly_packed_body_costs_the_answer_but_not_the_connection(
    body: bytes, said: str
) -> None:
    async def story(pool: Pool) -> None:
        async with Server([request, PACKED % (len(body), body), request, OK]) as server:
            error = await failure(get(pool, server))
            assert label(error) == MAYBE
            assert said in error.message
            assert await get(pool, server) == b"{}"
            assert len(server.peers) == 1

    play(story)


def test_a_refused_connection_was_not_sent() -> None:
    async def story(pool: Pool) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # bound but not listening: nobody else gets the port
            origin = Origin("http", "127.0.0.1", taken.getsockname()[1])
            error = await failure(pool.send(ask(origin), LIMITS))
        assert label(error) == NOT_SENT
        assert error.message == f"{origin.authority} refused the connection"
        assert isinstance(error.__cause__, ConnectionRefusedError)

    play(story)


def test_a_name_without_an_address_was_not_sent() -> None:
    async def story(pool: Pool) -> None:
        error = await failure(pool.send(ask(Origin("http", "nobody.invalid", 80)), LIMITS))
        assert label(error) == NOT_SENT
        assert "nobody.invalid" in error.message

    play(story)


def test_a_name_that_is_no_name_was_not_sent() -> None:
    async def story(pool: Pool) -> None:
        error = await failure(pool.send(ask(Origin("http", "a" * 64 + ".test", 80)), LIMITS))
        assert label(error) == NOT_SENT

    play(story)


def test_a_connection_that_is_never_taken_up_times_out_unsent() -> None:
    """A full backlog: the kernel neither accepts nor refuses."""

    async def story(pool: Pool) -> None:
        with socket.socket() as server, socket.socket() as first, socket.socket() as second:
            server.bind(("127.0.0.1", 0))
            server.listen(0)
            for filler in (first, second):
                filler.setblocking(False)
                filler.connect_ex(server.getsockname())
            origin = Origin("http", *server.getsockname())
            error = await failure(pool.send(ask(origin), replace(LIMITS, connect=0.05)))
        assert label(error) == NOT_SENT
        assert error.message == f"{origin.authority} gave no connection within 0.05 s"

    play(story)


def chunked(size: int) -> bytes:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%b\r\n" % (size, b"x" * size)


TOO_MUCH: dict[str, tuple[Script, str]] = {
    "a length over the limit": (
        [request, b"HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n", b"x" * 200_000],
        "a body of more than 100000 bytes",
    ),
    "chunks over the limit": ([request, chunked(200_000)], "a body of more than 100000 bytes"),
    "a body without end": (
        [request, b"HTTP/1.0 200 OK\r\n\r\n", b"x" * 200_000],
        "a body of more than 100000 bytes",
    ),
    "headers without end": (
        [request, b"HTTP/1.1 200 OK\r\n", b"x: y\r\n" * 20_000],
        "a head of more than 65536 bytes",
    ),
    "a header without end": (
        [request, b"HTTP/1.1 200 OK\r\nx: ", b"y" * 100_000],
        "a head of more than 65536 bytes",
    ),
    "a status line without end": ([request, b"HTTP/1.1 200 " + b"y" * 100_000], "a head of more"),
    "100 Continue without end": (
        [request, b"HTTP/1.1 100 Continue\r\n\r\n" * 4000],
        "a head of more than 65536 bytes",
    ),
    "a gzip bomb": (
        [
            request,
            b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n"
            + gzip.compress(bytes(10_000_000)),
        ],
        "a body that unpacks to more than is allowed",
    ),
}


@pytest.mark.parametrize(("script", "said"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_too_much_is_refused_at_its_limit(script: Script, said: str) -> None:
    async def story(pool: Pool) -> None:
        async with Server(script) as server:
            error = await failure(get(pool, server, SMALL))
            assert label(error) == MAYBE
            assert said in error.message
            assert await soon(server.peers[0].gone.is_set)

    play(story)


def test_a_hundred_megabytes_cost_no_more_than_the_limit() -> None:
    async def story(pool: Pool) -> None:
        sent = 0

        async def flood(peer: object) -> None:
            nonlocal sent
            writer = server.peers[0].writer
            while sent < 100_000_000:
                writer.write(bytes(1_000_000))
                sent += 1_000_000
                await writer.drain()

        head = b"HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n"
        async with Server([request, head, flood]) as server:
            error = await failure(get(pool, server, replace(LIMITS, max_reply=4_000_000)))
            assert "a body of more than 4000000 bytes" in error.message
            assert await soon(server.peers[0].gone.is_set)
            assert sent < 50_000_000

    play(story)


@pytest.mark.parametrize(
    "script",
    [[request, hang], [request, b"HTTP/1.1 200 OK\r\nx: ", hang], [request, LONG, hang]],
    ids=["no answer", "half a head", "half a body"],
)
def test_a_cancelled_request_closes_its_connection_at_once(script: Script) -> None:
    async def story(pool: Pool) -> None:
        async with Server(script) as server:
            task = asyncio.create_task(get(pool, server))
            assert await soon(lambda: bool(server.peers and server.peers[0].requests))
            task.cancel()
            assert await soon(task.cancelled)
            assert await soon(server.peers[0].gone.is_set)

    play(story)


@pytest.mark.parametrize("way", ["read", "iterate"])
def test_a_cancelled_reader_closes_the_connection_at_once(way: str) -> None:
    async def story(pool: Pool) -> None:
        async with Server([request, LONG, hang]) as server:
            answer = await pool.send(server.ask(), LIMITS)
            await anext(answer.chunks())
            task = asyncio.create_task(answer.read() if way == "read" else anext_of(answer))
            await asyncio.sleep(0)
            task.cancel()
            assert await soon(task.cancelled)
            assert await soon(server.peers[0].gone.is_set)

    play(story)


async def anext_of(answer: Answer) -> bytes:
    return await anext(answer.chunks())


def test_a_request_cancelled_while_connecting_leaves_nothing_open() -> None:
    async def story(pool: Pool) -> None:
        async with Server([hang]) as server:
            task = asyncio.create_task(get(pool, server))
            await asyncio.sleep(0)
            task.cancel()
            assert await soon(task.cancelled)
            assert await soon(lambda: all(peer.gone.is_set() for peer in server.peers))

    play(story)


def test_cancelled_and_answered_in_the_same_moment_is_cancelled() -> None:
    """The answer's bytes are in the socket when the caller gives up: nothing may leak."""

    async def story(pool: Pool) -> None:
        async with Server([request, OK] * 20) as server:
            for turns in range(12):
                task = asyncio.create_task(get(pool, server))
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                assert await soon(task.done)
            assert await get(pool, server) == b"{}"

    play(story)


def test_closing_an_unread_answer_closes_its_connection() -> None:
    async def story(pool: Pool) -> None:
        async with Server([request, LONG, hang]) as server:
            answer = await pool.send(server.ask(), LIMITS)
            answer.close()
            answer.close()
            assert await soon(server.peers[0].gone.is_set)
            assert label(await failure(answer.read())) == MAYBE

    play(story)


def test_closing_the_transport_ends_what_is_under_way() -> None:
    async def story(pool: Pool) -> None:
        async with Server([request, LONG, hang], [request, hang]) as server:
            answer = await pool.send(server.ask(), LIMITS)
            reading = asyncio.create_task(failure(answer.read()))
            asking = asyncio.create_task(failure(get(pool, server)))
            assert await soon(lambda: len(server.peers) == 2 and bool(server.peers[1].requests))
            await pool.aclose()
            for error in (await reading, await asking):
                assert "the transport is closing" in error.message
            assert await soon(lambda: all(peer.gone.is_set() for peer in server.peers))

    play(story)


def test_no_error_quotes_a_header_or_a_body() -> None:
    async def story(pool: Pool) -> None:
        async with Server([request, close]) as server:
            outgoing = server.ask(b"private words")
            error = await failure(pool.send(outgoing, LIMITS))
            for text in (str(error), repr(error), repr(outgoing), repr(error.__cause__)):
                assert "secret" not in text
                assert "private" not in text

    play(story)
