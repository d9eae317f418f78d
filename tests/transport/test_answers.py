"""Answers as they should be: every framing, every coding, read, iterated and pushed."""

from __future__ import annotations

import asyncio
import gzip
import importlib
import zlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from transport.rig import (
    LIMITS,
    OK,
    Script,
    Server,
    close,
    failure,
    get,
    play,
    request,
    soon,
    until,
)
from understudy.providers.answer import HIGH_WATER
from understudy.providers.pool import Pool

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def deflated(data: bytes, wbits: int) -> bytes:
    packer = zlib.compressobj(wbits=wbits)
    return packer.compress(data) + packer.flush()


def length(body: bytes, *lines: bytes) -> bytes:
    head = b"".join(line + b"\r\n" for line in lines)
    return b"HTTP/1.1 200 OK\r\n%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body)


TEXT = b"All the world's a stage. " * 40

# bytes of an answer -> status, body, and whether the connection is kept.
ANSWERS: dict[str, tuple[bytes, int, bytes, bool]] = {
    "by length": (length(TEXT), 200, TEXT, True),
    "empty": (length(b""), 200, b"", True),
    "in chunks": (CHUNKED + b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", 200, b"hello world", True),
    "chunk extensions and trailers": (
        CHUNKED + b"5;a=b\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n",
        200,
        b"hello",
        True,
    ),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", True),
    "not modified": (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n", 304, b"", True),
    "an error": (b"HTTP/1.1 429 Slow\r\ncontent-length: 2\r\n\r\n{}", 429, b"{}", True),
    "a redirect is an answer": (
        b"HTTP/1.1 307 Away\r\nlocation: http://elsewhere.test/\r\ncontent-length: 0\r\n\r\n",
        307,
        b"",
        True,
    ),
    "100 Continue in front": (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, 200, b"{}", True),
    "several 1xx in front": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n" + OK,
        200,
        b"{}",
        True,
    ),
    "blank lines in front": (b"\r\n\r\n" + OK, 200, b"{}", True),
    "no reason given": (b"HTTP/1.1 200\r\ncontent-length: 2\r\n\r\n{}", 200, b"{}", True),
    "told to close": (length(b"{}", b"connection: close"), 200, b"{}", False),
    "old HTTP": (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}", 200, b"{}", False),
    "more than was announced": (length(b"{}") + b"surplus", 200, b"{}", False),
    "a second answer nobody asked for": (OK + OK, 200, b"{}", False),
    "the beginning of a second answer": (OK + b"HTTP/1.1 2", 200, b"{}", False),
    "a body where none may be": (b"HTTP/1.1 204 No Content\r\n\r\n{}", 204, b"", False),
    "gzip": (length(gzip.compress(TEXT), b"Content-Encoding: gzip"), 200, TEXT, True),
    "x-gzip": (length(gzip.compress(TEXT), b"content-encoding: x-gzip"), 200, TEXT, True),
    "deflate": (length(deflated(TEXT, 15), b"content-encoding: deflate"), 200, TEXT, True),
    "bare deflate": (length(deflated(TEXT, -15), b"content-encoding: Deflate"), 200, TEXT, True),
    "identity": (length(TEXT, b"content-encoding: identity"), 200, TEXT, True),
    "gzip of nothing": (length(b"", b"content-encoding: gzip"), 200, b"", True),
    "a long head": (length(b"{}", b"x: " + b"y" * 60_000), 200, b"{}", True),
    "a long body": (length(b"z" * 900_000), 200, b"z" * 900_000, True),
}


@pytest.mark.parametrize(("wire", "status", "body", "kept"), ANSWERS.values(), ids=ANSWERS)
def test_an_answer_is_read_and_its_connection_kept_or_not(
    wire: bytes, status: int, body: bytes, kept: bool
) -> None:
    async def story(pool: Pool) -> None:
        async with Server([request, wire, request, OK], [request, OK]) as server:
            answer = await pool.send(server.ask(), LIMITS)
            assert (answer.status, await answer.read()) == (status, body)
            assert kept or await soon(server.peers[0].gone.is_set)
            assert await get(pool, server) == b"{}"
            assert len(server.peers) == (1 if kept else 2)

    play(story)


def test_brotli_is_unpacked_when_its_package_is_there() -> None:
    pytest.importorskip("brotli")
    packed: bytes = importlib.import_module("brotli").compress(TEXT)

    async def story(pool: Pool) -> None:
        wire = length(packed, b"content-encoding: br")
        async with Server([request, wire, request, length(b"nope", b"content-encoding: br")]) as s:
            assert await get(pool, s) == TEXT
            assert "cannot be unpacked" in (await failure(get(pool, s))).message

    play(story)


def test_a_brotli_bomb_stops_at_the_limit() -> None:
    pytest.importorskip("brotli")
    packed: bytes = importlib.import_module("brotli").compress(bytes(5_000_000), quality=1)
    limits = replace(LIMITS, max_reply=1_000_000)

    async def story(pool: Pool) -> None:
        async with Server([request, length(packed, b"content-encoding: br")]) as server:
            assert "more than is allowed" in (await failure(get(pool, server, limits))).message

    play(story)


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.0 200 OK\r\nx: y\r\n\r\n"])
def test_without_a_length_the_body_ends_with_the_connection(head: bytes) -> None:
    async def story(pool: Pool) -> None:
        async with Server([request, head, b"to the ", b"end", close]) as server:
            assert await get(pool, server) == b"to the end"

    play(story)


def test_headers_are_found_in_any_case_and_keep_their_order() -> None:
    async def story(pool: Pool) -> None:
        wire = length(b"", b"X-Request-ID:  req_1 ", b"Set-Cookie: a", b"SET-COOKIE: b", b"Empty:")
        async with Server([request, wire]) as server:
            answer = await pool.send(server.ask(), LIMITS)
            assert answer.headers == [
                (b"x-request-id", b"req_1"),
                (b"set-cookie", b"a"),
                (b"set-cookie", b"b"),
                (b"empty", b""),
                (b"content-length", b"0"),
            ]
            assert answer.header("x-request-id") == answer.header("X-Request-Id") == "req_1"
            assert answer.header("set-cookie") == "a"
            assert answer.header("request-id") == answer.header("empty") == ""
            assert answer.header("content-length") == "0"

    play(story)


def test_a_request_is_written_as_it_was_rendered() -> None:
    async def story(pool: Pool) -> None:
        async with Server([request, OK]) as server:
            answer = await pool.send(server.ask(b'{"a":1}'), LIMITS)
            await answer.read()
            assert server.peers[0].requests == [
                b"POST /v1/x HTTP/1.1\r\nhost: %b\r\nx-key: secret\r\ncontent-length: 7\r\n\r\n"
                b'{"a":1}' % server.origin.authority.encode()
            ]

    play(story)


def test_a_large_request_arrives_whole() -> None:
    async def story(pool: Pool) -> None:
        async with Server([request, OK]) as server:
            body = b"x" * 5_000_000
            await (await pool.send(server.ask(body), LIMITS)).read()
            assert server.peers[0].requests[0].endswith(body)

    play(story)


def test_a_drip_is_delivered_drop_by_drop() -> None:
    async def story(pool: Pool) -> None:
        second, third = asyncio.Event(), asyncio.Event()
        script: Script = [
            *(request, CHUNKED + b"1\r\na\r\n", until(second), b"1\r\nb\r\n"),
            *(until(third), b"1\r\nc\r\n0\r\n\r\n"),
        ]
        async with Server(script) as server:
            answer = await pool.send(server.ask(), LIMITS)
            chunks = answer.chunks()
            assert await anext(chunks) == b"a"
            second.set()
            assert await anext(chunks) == b"b"
            third.set()
            assert [chunk async for chunk in chunks] == [b"c"]

    play(story)


def test_what_came_before_a_break_is_delivered_first() -> None:
    async def story(pool: Pool) -> None:
        async with Server([request, CHUNKED + b"5\r\nhello\r\n", close]) as server:
            answer = await pool.send(server.ask(), LIMITS)
            assert await anext(answer.chunks()) == b"hello"
            error = await failure(anext(answer.chunks()))
            assert answer.error is error

    play(story)


def test_a_reader_who_does_not_read_stops_the_sender() -> None:
    async def story(pool: Pool) -> None:
        size = 40 * HIGH_WATER
        sent = 0

        async def flood(peer: object) -> None:
            nonlocal sent
            for _ in range(40):
                server.peers[0].writer.write(bytes(HIGH_WATER))
                await server.peers[0].writer.drain()
                sent += HIGH_WATER

        head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size
        async with Server([request, head, flood, request, OK]) as server:
            answer = await pool.send(server.ask(), LIMITS)
            await stillness(lambda: sent)
            assert sent < size
            got = 0
            async for chunk in answer:
                got += len(chunk)
            assert got == size
            assert await get(pool, server) == b"{}"
            assert len(server.peers) == 1

    play(story)


async def stillness(value: Callable[[], int]) -> None:
    """Wait until a number has stopped changing for a hundred turns of the loop."""
    last, still = value(), 0
    while still < 100:
        await asyncio.sleep(0)
        still, last = (still + 1 if value() == last else 0), value()
