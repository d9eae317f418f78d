"""What clients write and leave unwritten: upgrades, expectations, old versions, too much, half a
connection. And what those are told who are still there when the gateway stops."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from tests.gateway.desk import (
    HELLO_STREAM,
    Heard,
    Line,
    Plays,
    Served,
    always,
    answer,
    fronted,
    never,
    serving,
)
from tests.gateway.test_heads import Door, outcome
from tests.rig import run, until
from understudy.gateway.farewell import SECONDS, SPARE, Farewell
from understudy.gateway.http import Reply, Request, ServerLimits
from understudy.gateway.server import TICK, Server
from understudy.testing import ManualClock

CHAT = "POST /v1/chat/completions HTTP/1.1"
BODY = b'{"model": "chat", "messages": [{"role": "user", "content": "hello"}]}'
STREAM = BODY.replace(b"{", b'{"stream": true, ', 1)
LENGTH = f"Content-Length: {len(BODY)}"
CHUNKED = "Transfer-Encoding: chunked"
LAST = b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
STOPPED = "the gateway was stopped"


def raw(*lines: str, body: bytes = b"") -> bytes:
    return "\r\n".join((*lines[:1], "Host: x", *lines[1:])).encode() + b"\r\n\r\n" + body


def chunks(body: bytes, size: int = 7) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"


async def heard(line: Line) -> Heard:
    status, headers = await line.head()
    return Heard(status, headers, await line.rest(headers))


async def answers(served: Served, data: bytes) -> list[Heard]:
    """All answers to these bytes on one connection, whose last one ends it."""
    line = await Line.to(served.address)
    line.writer.write(data)
    found = [await heard(line)]
    while "connection" not in found[-1].headers:
        found.append(await heard(line))
    assert await line.reader.read() == b""
    line.close()
    return found


# -- another protocol, and none

H2C = (
    "Connection: Upgrade, HTTP2-Settings",
    "Upgrade: h2c",
    "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA",
)


@pytest.mark.parametrize(
    "asked",
    [
        raw(CHAT, *H2C, LENGTH, body=BODY),
        raw(CHAT, LENGTH, *H2C, body=BODY) * 2,
        raw(CHAT, *H2C, CHUNKED, body=chunks(BODY)),
        raw(CHAT, "Connection: Upgrade", "Upgrade: websocket", LENGTH, body=BODY),
    ],
)
def test_who_would_like_another_protocol_is_served_in_this_one(asked: bytes) -> None:
    async def work() -> None:
        async with fronted(always()) as (served, up):
            found = await answers(served, asked + raw("GET /v1/models HTTP/1.1", *H2C) + LAST)
            chats = asked.count(CHAT.encode())
            assert [one.status for one in found] == [200] * (chats + 2)
            assert [one.body for one in up.asked] == [BODY.replace(b'"chat"', b'"m"')] * chats

    run(work())


def test_a_wish_for_another_protocol_changes_nothing_however_it_is_cut() -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        for framed in (raw(CHAT, "Content-Length: 3", body=b"abc"), LAST):
            plain = outcome(Door(loop), [framed])
            at = framed.index(b"\r\n\r\n")
            wish = framed[:at] + b"\r\nUpgrade: h2c\r\nConnection: upgrade" + framed[at:]
            for cut in range(1, len(wish)):
                (asked,), *rest = outcome(Door(loop), [wish[:cut], wish[cut:]])
                assert isinstance(asked, tuple)
                asked[3].pop(b"connection")
                plain[0][0][3].pop(b"connection", None)  # type: ignore[index]
                assert ([asked], *rest) == plain

    run(work())


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_who_wants_a_tunnel_gets_one_error(version: str) -> None:
    async def work() -> None:
        async with serving("") as served:
            (refused,) = await answers(served, raw(f"CONNECT there:443 HTTP/{version}"))
            assert refused.status == 400
            assert "CONNECT is asked of proxies" in str(refused.error["message"])

    run(work())


@pytest.mark.parametrize("keep", [False, True])
def test_an_old_client_is_told_whether_its_connection_stays(keep: bool) -> None:
    async def work() -> None:
        async with fronted(always()) as (served, _):
            line = await Line.to(served.address)
            wish = ("Connection: keep-alive",) if keep else ()
            line.writer.write(raw(CHAT[:-1] + "0", LENGTH, *wish, body=BODY))
            first = await heard(line)
            assert first.headers["connection"] == ("keep-alive" if keep else "close")
            assert first.body == answer()
            line.writer.write(LAST if keep else b"")
            assert (await line.reader.read()).startswith(b"HTTP/1.1 200" if keep else b"")
            line.close()

    run(work())


@pytest.mark.parametrize("wish", [(), ("Connection: keep-alive",)])
def test_an_old_client_gets_a_stream_without_chunks_that_ends_with_the_connection(
    wish: tuple[str, ...],
) -> None:
    async def work() -> None:
        async with fronted(always(HELLO_STREAM)) as (served, _), asyncio.timeout(20):
            line = await Line.to(served.address)
            length = f"Content-Length: {len(STREAM)}"
            line.writer.write(raw(CHAT[:-1] + "0", length, *wish, body=STREAM))
            status, headers = await line.head()
            assert (status, headers["connection"]) == (200, "close")
            assert "transfer-encoding" not in headers
            assert await line.reader.read() == b"".join(HELLO_STREAM)
            line.close()
            [told] = served.events("request")
            assert (told["outcome"], told["bytes"]) == ("ok", len(b"".join(HELLO_STREAM)))

    run(work())


# -- expectations


def test_who_waits_to_be_invited_is_not_until_the_answer_before_is_over() -> None:
    async def work() -> None:
        rest = asyncio.Event()
        pieces = (HELLO_STREAM[0], rest, *HELLO_STREAM[1:])
        plays = iter([Plays(200, pieces), Plays(200, answer())])
        async with fronted(lambda _: next(plays)) as (served, _):
            line = await Line.to(served.address)
            length = f"Content-Length: {len(STREAM)}"
            line.writer.write(raw(CHAT, length, body=STREAM))
            _, headers = await line.head()
            first = await line.piece()
            line.writer.write(raw(CHAT, LENGTH, "Expect: 100-continue"))
            (connection,) = served.runtime.server._connections
            await until(lambda: connection._reading)
            rest.set()
            assert first + await line.rest(headers) == b"".join(HELLO_STREAM)
            assert await line.head() == (100, {})
            line.writer.write(BODY)
            assert (await heard(line)).status == 200
            line.close()

    run(work())


def test_an_old_client_is_never_invited() -> None:
    async def work() -> None:
        async with fronted(always()) as (served, _):
            asked = raw(CHAT[:-1] + "0", LENGTH, "Expect: 100-continue", body=BODY)
            assert [one.status for one in await answers(served, asked)] == [200]

    run(work())


# -- too much

MOST = 1024


@pytest.mark.parametrize("size", [1, 100, 2 * MOST])
@pytest.mark.parametrize(("length", "status"), [(MOST, 200), (MOST + 1, 413)])
def test_a_body_in_chunks_is_weighed_to_the_byte(size: int, length: int, status: int) -> None:
    async def work() -> None:
        async with fronted(always(), f"[gateway]\nmax_body = {MOST}\n") as (served, up):
            body = BODY + b" " * (length - len(BODY))
            asked = raw(CHAT, CHUNKED, "Connection: close", body=chunks(body, size))
            (found,) = await answers(served, asked)
            assert (found.status, len(up.asked)) == (status, status == 200)

    run(work())


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (raw(CHAT, "Content-Length: 100000000"), 413),
        (raw(CHAT, CHUNKED, body=b"%x\r\n" % 100_000_000), 413),
        (raw(CHAT, "X-Long: " + "x" * 70_000)[:-4], 431),
        (raw(CHAT, "Content-Length : 3"), 400),
    ],
)
def test_who_writes_all_before_it_reads_is_still_told_that_it_was_too_much(
    head: bytes, status: int
) -> None:
    async def work() -> None:
        async with serving(f"[gateway]\nmax_body = {MOST}\n") as served:
            line = await Line.to(served.address)
            line.writer.write(head + b"x" * 70_000)
            await until(lambda: served.events("request"))  # the answer is written
            for _ in range(8):
                line.writer.write(b"x" * 1_000_000)
                await line.writer.drain()
            refused = await heard(line)
            assert (refused.status, refused.headers["connection"]) == (status, "close")
            assert await line.reader.read() == b""
            line.close()
            await until(lambda: not served.runtime.server.open_connections)
            assert len(served.events("request")) == 1

    run(work())


def test_nonsense_behind_a_request_does_not_cost_its_answer() -> None:
    async def work() -> None:
        go = asyncio.Event()

        async def slow(_: object) -> Plays:
            await go.wait()
            return Plays(200, answer())

        async with fronted(slow) as (served, up):
            line = await Line.to(served.address)
            line.writer.write(raw(CHAT, LENGTH, body=BODY) + b"nonsense\r\n\r\n")
            await until(lambda: up.asked)
            line.writer.write(b"x" * 100_000)
            go.set()
            found = await heard(line)
            assert (found.status, found.headers["connection"]) == (200, "close")
            line.writer.write(b"x" * 1_000_000)
            await line.writer.drain()
            assert await line.reader.read() == b""
            line.close()

    run(work())


@dataclass
class Ending:
    """A connection that notes how it ended."""

    how: list[str] = field(default_factory=list)

    def abort(self) -> None:
        self.how.append("abort")

    def connection_lost(self, error: Exception | None) -> None:
        self.how.append("lost")


def test_what_is_thrown_away_has_a_bound() -> None:
    ending = Ending()
    farewell = Farewell(ending, MOST)
    farewell.data_received(bytes(SPARE))
    farewell.data_received(bytes(MOST))
    assert ending.how == []
    farewell.data_received(b"x")
    farewell.connection_lost(None)
    assert ending.how == ["abort", "lost"]


def test_nobody_is_listened_to_for_ever() -> None:
    def nothing(request: Request, reply: Reply) -> None: ...

    async def work() -> None:
        clock = ManualClock()
        limits = ServerLimits(body=MOST)
        server = Server(nothing, lambda *_: b"{}", limits=limits, clock=clock)
        port = await server.listen("127.0.0.1", 0)
        line = await Line.to(f"http://127.0.0.1:{port}")
        line.writer.write(raw(CHAT, "Content-Length: 5000"))
        assert (await heard(line)).status == 413
        clock.advance(SECONDS + TICK - 0.1)
        server._tick()
        await until(lambda: True)
        assert server.open_connections == 1
        clock.advance(0.2)
        server._tick()
        await until(lambda: not server.open_connections)
        line.close()
        await server.close()

    run(work())


def test_nobody_is_late_before_the_time_is_up() -> None:
    """The clock is looked at once in a tick, and a request may begin at the end of one."""

    def nothing(request: Request, reply: Reply) -> None: ...

    async def work() -> None:
        clock = ManualClock()
        limits = ServerLimits(read_seconds=TICK)
        server = Server(nothing, lambda *_: b"{}", limits=limits, clock=clock)
        port = await server.listen("127.0.0.1", 0)
        clock.advance(TICK - 0.1)
        line = await Line.to(f"http://127.0.0.1:{port}")
        line.writer.write(raw(CHAT, LENGTH, body=BODY[:9]))
        await until(lambda: [c for c in server._connections if c._reading])
        clock.advance(0.2)
        server._tick()
        assert [c for c in server._connections if c._reading]
        clock.advance(TICK)
        server._tick()
        assert (await heard(line)).status == 408
        line.close()
        await server.close()

    run(work())


# -- half a connection


def test_who_shuts_its_side_while_a_target_works_is_taken_for_gone() -> None:
    """It looks the same on the wire, and a target's time costs money."""

    async def work() -> None:
        async with fronted(never) as (served, up), asyncio.timeout(20):
            line = await Line.to(served.address)
            line.writer.write(raw(CHAT, LENGTH, body=BODY))
            await until(lambda: up.asked)
            line.writer.write_eof()
            assert await line.reader.read() == b""
            line.close()
            await until(lambda: served.events("request"))
            assert [told["outcome"] for told in served.events("request")] == ["left"]

    run(work())


# -- when the gateway stops
