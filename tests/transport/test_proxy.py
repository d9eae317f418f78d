"""Through a real proxy: the same answers, the same errors, and no word to the proxy too many."""

from __future__ import annotations

import asyncio
import base64
import gzip
import ssl
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import pytest

pytest.importorskip("aiohttp")
import trustme

from transport.rig import (
    LIMITS,
    OK,
    Peer,
    Script,
    Server,
    close,
    failure,
    hang,
    on_uvloop,
    open_sockets,
    request,
    reset,
    soon,
    until,
)
from understudy.core.errors import ProviderError
from understudy.core.faults import Fault
from understudy.providers.pool import Room
from understudy.providers.proxy import Proxied
from understudy.providers.transport import Origin, Transport

LONG = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


class Proxy:
    """A forward proxy: CONNECT opens a tunnel, an absolute URL is fetched."""

    def __init__(self, refuse: bytes = b"") -> None:
        self.heads: list[bytes] = []
        self._refuse = refuse
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _: TracebackType | None,
    ) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            if self._refuse:
                writer.write(self._refuse)
            else:
                await self._serve(head, reader, writer)
        except (OSError, EOFError):
            pass
        finally:
            writer.close()

    async def _serve(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        method, target, rest = head.split(b" ", 2)
        tunnel = method == b"CONNECT"
        where, slash, path = target.removeprefix(b"http://").partition(b"/")
        host, _, port = where.decode().rpartition(":")
        back, forth = await asyncio.open_connection(host, int(port))
        self._writers.append(forth)
        if tunnel:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            forth.write(b" ".join([method, slash + path, rest]))
        await asyncio.gather(copy(reader, forth), copy(back, writer))


async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    except OSError:
        pass
    sink.close()


Story = Callable[[Proxy, Callable[..., Proxied]], Coroutine[None, None, None]]


def play(story: Story, refuse: bytes = b"") -> None:
    """Run a story with a proxy on both event loops; no task may be left."""

    async def stage() -> None:
        made: list[Proxied] = []

        def through(proxy: str, **options: object) -> Proxied:
            ca_file, room = options.get("ca_file"), options.get("room", Room())
            assert ca_file is None or isinstance(ca_file, str)
            assert isinstance(room, Room)
            made.append(Proxied(proxy, room, ca_file=ca_file))
            return made[-1]

        async with asyncio.timeout(20), Proxy(refuse) as proxy:
            try:
                await story(proxy, through)
            finally:
                for transport in made:
                    await transport.aclose()
        me = asyncio.current_task()
        assert await soon(lambda: asyncio.all_tasks() == {me}), asyncio.all_tasks()

    for run in (asyncio.run, on_uvloop):
        before = open_sockets()
        run(stage())
        assert open_sockets() == before


async def get(transport: Transport, server: Server) -> bytes:
    return await (await transport.send(server.ask(), LIMITS)).read()


def test_a_plain_origin_is_asked_for_in_absolute_form() -> None:
    async def story(proxy: Proxy, through: Callable[..., Proxied]) -> None:
        async with Server([request, OK, request, OK]) as server:
            transport = through(proxy.url)
            answer = await transport.send(server.ask(b"[1]"), LIMITS)
            assert (answer.status, answer.header("Content-Type")) == (200, "application/json")
            assert await answer.read() == b"{}"
            assert proxy.heads[0].startswith(
                b"POST %b/v1/x HTTP/1.1\r\n" % str(server.origin).encode()
            )
            (seen,) = server.peers[0].requests
            head, _, body = seen.partition(b"\r\n\r\n")
            assert body == b"[1]"
            assert sorted(line.split(b":")[0].lower() for line in head.split(b"\r\n")[1:]) == [
                b"content-length",
                b"host",
                b"x-key",
            ]

    play(story)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def ca_file(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("tls") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


@pytest.fixture(scope="module")
def tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


def test_a_tls_origin_is_reached_through_a_tunnel_the_proxy_cannot_read(
    tls: ssl.SSLContext, ca_file: str
) -> None:
    async def story(proxy: Proxy, through: Callable[..., Proxied]) -> None:
        async with Server([request, OK, request, OK], tls=tls) as server:
            url = proxy.url.replace("http://", "http://user:p%40ss@")
            transport = through(url, ca_file=ca_file)
            assert [await get(transport, server), await get(transport, server)] == [b"{}", b"{}"]
            (head,) = proxy.heads
            assert head.startswith(b"CONNECT %b " % server.origin.authority.encode())
            assert b"Proxy-Authorization: Basic " + base64.b64encode(b"user:p@ss") in head
            assert b"secret" not in head
            assert all(b"roxy-" not in seen for seen in server.peers[0].requests)

    play(story)


def test_a_certificate_nobody_vouches_for_is_refused_unsent(tls: ssl.SSLContext) -> None:
    async def story(proxy: Proxy, through: Callable[..., Proxied]) -> None:
        async with Server([request, OK], tls=tls) as server:
            error = await failure(get(through(proxy.url), server))
            assert label(error) == NOT_SENT
            assert "a certificate we do not trust" in error.message

    play(story)


def label(error: ProviderError) -> tuple[Fault, str]:
    return error.fault, error.billing


MAYBE = (Fault.TRANSIENT, "maybe_billed")
NOT_SENT = (Fault.TRANSIENT, "not_sent")

BROKEN: dict[str, Script] = {
    "closed without an answer": [request, close],
    "reset without an answer": [request, reset],
    "closed inside the body": [request, LONG, close],
    "cut between chunks": [request, CHUNKED + b"5\r\nhello\r\n", close],
    "not HTTP": [request, b"SSH-2.0-OpenSSH_9.2\r\n\r\n", close],
    "too much": [request, b"HTTP/1.1 200 OK\r\ncontent-length: 9999999\r\n\r\n", b"x" * 2_000_000],
    "a header without end": [request, b"HTTP/1.1 200 OK\r\nx: ", b"y" * 300_000],
    "a coding nobody knows": [
        request,
        b"HTTP/1.1 200 OK\r\ncontent-encoding: zip\r\ncontent-length: 9\r\n\r\nx",
    ],
    "a gzip bomb": [
        request,
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n" + gzip.compress(bytes(10_000_000)),
    ],
}


@pytest.mark.parametrize("script", BROKEN.values(), ids=BROKEN)
def test_a_broken_answer_is_transient_and_maybe_billed(script: Script) -> None:
    async def story(proxy: Proxy, through: Callable[..., Proxied]) -> None:
        async with Server(script) as server:
            limits = replace(LIMITS, max_reply=1_000_000)

            async def attempt() -> bytes:
                return await (await through(proxy.url).send(server.ask(), limits)).read()

            error = await failure(attempt())
            assert label(error) == MAYBE
            assert error.message.startswith(server.origin.authority)
            assert await soon(server.peers[0].gone.is_set)

    play(story)


def test_a_proxy_that_is_not_there_means_nothing_was_sent() -> None:
    async def story(proxy: Proxy, through: Callable[..., Proxied]) -> None:
        async with Server([request, OK]) as server, Proxy() as gone:
            dead = gone.url
        error = await failure(get(through(dead), server))
        assert label(error) == NOT_SENT
        assert "the proxy does not answer" in error.message

    play(story)


def test_a_proxy_that_refuses_the_tunnel_means_nothing_was_sent(tls: ssl.SSLContext) -> None:
    async def story(proxy: Proxy, through: Callable[..., Proxied]) -> None:
        async with Server([request, OK], tls=tls) as server:
            error = await failure(get(through(proxy.url), server))
            assert label(error) == NOT_SENT
            assert "the proxy answered 407" in error.message

    play(story, refuse=b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")


def test_a_proxy_that_hangs_up_on_the_tunnel_means_nothing_was_sent(tls: ssl.SSLContext) -> None:
    async def story(proxy: Proxy, through: Callable[..., Proxied]) -> None:
        async with Server([request, OK], tls=tls) as server:
            assert label(await failure(get(through(proxy.url), server))) == NOT_SENT

    play(story, refuse=b"\r\n")


def test_a_proxy_that_never_answers_is_given_up_on_unsent() -> None:
    async def story(_: Proxy, through: Callable[..., Proxied]) -> None:
        async with Server([hang]) as silent:
            proxy = f"http://{silent.origin.authority}"
            outgoing = silent.ask()
            outgoing = replace(outgoing, origin=Origin("https", "api.example.test", 443))
            error = await failure(through(proxy).send(outgoing, replace(LIMITS, connect=0.05)))
            assert label(error) == NOT_SENT
            assert await soon(silent.peers[0].gone.is_set)

    play(story)


@pytest.mark.parametrize("script", [[request, hang], [request, LONG, hang]])
def test_a_cancelled_request_closes_its_connection_at_once(script: Script) -> None:
    async def story(proxy: Proxy, through: Callable[..., Proxied]) -> None:
        async with Server(script) as server:
            task = asyncio.create_task(get(through(proxy.url), server))
            assert await soon(lambda: bool(server.peers and server.peers[0].requests))
            task.cancel()
            assert await soon(task.cancelled)
            assert await soon(server.peers[0].gone.is_set)

    play(story)


def test_pushed_and_iterated_bytes_come_as_they_arrive() -> None:
    async def story(proxy: Proxy, through: Callable[..., Proxied]) -> None:
        more = asyncio.Event()
        drip: Script = [CHUNKED + b"1\r\na\r\n", until(more), b"1\r\nb\r\n0\r\n\r\n"]
        async with Server([request, *drip]) as server:
            transport = through(proxy.url)
            pushed: list[tuple[bytes | None, bool]] = []
            answer = await transport.send(server.ask(), LIMITS)
            answer.push(lambda data, done: pushed.append((data, done)))
            assert await soon(lambda: pushed == [(b"a", False)])
            iterated = (await transport.send(server.ask(), LIMITS)).chunks()
            assert await anext(iterated) == b"a"
            more.set()
            assert [chunk async for chunk in iterated] == [b"b"]
            assert await soon(lambda: pushed[-1][1])
            assert b"".join(data or b"" for data, _ in pushed) == b"ab"

    play(story)


def test_a_paused_push_is_silent_until_resumed() -> None:
    async def story(proxy: Proxy, through: Callable[..., Proxied]) -> None:
        body = bytes(3_000_000)
        head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body)
        async with Server([request, head, body]) as server:
            answer = await through(proxy.url).send(server.ask(), LIMITS)
            sizes: list[int] = []
            ended = asyncio.Event()

            def sink(data: bytes | None, done: bool) -> None:
                sizes.append(len(data or b""))
                if len(sizes) == 1:
                    answer.pause()
                if done:
                    ended.set()

            answer.push(sink)
            assert await soon(lambda: len(sizes) == 1)
            for _ in range(100):
                await asyncio.sleep(0)
            assert len(sizes) == 1
            answer.resume()
            await ended.wait()
            assert sum(sizes) == len(body)

    play(story)


def test_a_reader_who_does_not_read_stops_the_sender_and_may_leave() -> None:
    async def story(proxy: Proxy, through: Callable[..., Proxied]) -> None:
        sent = 0

        async def flood(peer: Peer) -> None:
            nonlocal sent
            for _ in range(60):
                peer.writer.write(bytes(1_000_000))
                await peer.writer.drain()
                sent += 1

        head = b"HTTP/1.1 200 OK\r\ncontent-length: 60000000\r\n\r\n"
        async with Server([request, head, flood]) as server:
            answer = await through(proxy.url).send(server.ask(), LIMITS)
            last, still = -1, 0
            while still < 100:
                await asyncio.sleep(0)
                still, last = (still + 1 if sent == last else 0), sent
            assert sent < 60
            answer.close()
            assert await soon(server.peers[0].gone.is_set)

    play(story)


def test_a_redirect_is_an_answer() -> None:
    async def story(proxy: Proxy, through: Callable[..., Proxied]) -> None:
        wire = b"HTTP/1.1 302 Away\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
        async with Server([request, wire]) as server:
            answer = await through(proxy.url).send(server.ask(), LIMITS)
            assert (answer.status, await answer.read()) == (302, b"")

    play(story)


def test_gzip_is_unpacked() -> None:
    async def story(proxy: Proxy, through: Callable[..., Proxied]) -> None:
        packed = gzip.compress(b"hello")
        head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n"
        async with Server([request, head % len(packed) + packed]) as server:
            assert await get(through(proxy.url), server) == b"hello"

    play(story)
