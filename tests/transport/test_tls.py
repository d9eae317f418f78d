"""TLS: verified, named, and refused with a reason when it is not what it should be."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from transport.rig import LIMITS, OK, Server, ask, failure, get, hang, play, request, soon
from understudy.core.faults import Fault
from understudy.providers.pool import Pool
from understudy.providers.transport import Origin


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def trusting(
    authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Pool]:
    """Makes pools that trust the authority."""
    path: Path = tmp_path_factory.mktemp("tls") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return lambda: Pool(ca_file=str(path))


def context_for(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


def test_a_trusted_certificate_is_accepted_and_the_connection_kept(
    authority: trustme.CA, trusting: Callable[[], Pool]
) -> None:
    async def story(pool: Pool) -> None:
        tls = context_for(authority, "127.0.0.1")
        async with Server([request, OK, request, OK], tls=tls) as server:
            assert [await get(pool, server), await get(pool, server)] == [b"{}", b"{}"]
            assert len(server.peers) == 1

    play(story, trusting)


def test_the_host_is_named_in_the_handshake(
    authority: trustme.CA, trusting: Callable[[], Pool]
) -> None:
    async def story(pool: Pool) -> None:
        named: list[str | None] = []
        tls = context_for(authority, "localhost")
        tls.sni_callback = lambda _, name, __: named.append(name)
        async with Server([request, OK], tls=tls) as server:
            origin = replace(server.origin, host="localhost")
            answer = await pool.send(ask(origin), LIMITS)
            assert await answer.read() == b"{}"
            assert named == ["localhost"]

    play(story, trusting)


def test_a_certificate_nobody_vouches_for_is_refused_unsent(authority: trustme.CA) -> None:
    async def story(pool: Pool) -> None:
        async with Server([request, OK], tls=context_for(authority, "127.0.0.1")) as server:
            error = await failure(get(pool, server))
            assert (error.fault, error.billing) == (Fault.TRANSIENT, "not_sent")
            assert "a certificate we do not trust" in error.message
            assert isinstance(error.__cause__, ssl.SSLCertVerificationError)

    play(story)


def test_a_certificate_for_somebody_else_is_refused_unsent(
    authority: trustme.CA, trusting: Callable[[], Pool]
) -> None:
    async def story(pool: Pool) -> None:
        async with Server([request, OK], tls=context_for(authority, "example.test")) as server:
            error = await failure(get(pool, server))
            assert error.billing == "not_sent"
            assert "a certificate we do not trust" in error.message

    play(story, trusting)


def test_plain_text_where_tls_should_be_is_refused_unsent() -> None:
    async def story(pool: Pool) -> None:
        async with Server([b"HTTP/1.1 400 Bad Request\r\n\r\n", hang]) as server:
            error = await failure(pool.send(ask(replace(server.origin, scheme="https")), LIMITS))
            assert (error.fault, error.billing) == (Fault.TRANSIENT, "not_sent")
            assert await soon(server.peers[0].gone.is_set)

    play(story)


def test_a_handshake_that_never_ends_is_ended_by_the_connect_limit() -> None:
    async def story(pool: Pool) -> None:
        async with Server([hang]) as server:
            origin = replace(server.origin, scheme="https")
            error = await failure(pool.send(ask(origin), replace(LIMITS, connect=0.05)))
            assert error.billing == "not_sent"
            assert "gave no connection within 0.05 s" in error.message
            assert await soon(server.peers[0].gone.is_set)

    play(story)


def test_a_handshake_that_is_cancelled_closes_its_connection_at_once() -> None:
    async def story(pool: Pool) -> None:
        async with Server([hang]) as server:
            origin = replace(server.origin, scheme="https")
            task = asyncio.create_task(pool.send(ask(origin), LIMITS))
            assert await soon(lambda: len(server.peers) == 1)
            task.cancel()
            assert await soon(task.cancelled)
            assert await soon(server.peers[0].gone.is_set)

    play(story)


@pytest.mark.parametrize("cut", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"])
def test_a_cancelled_request_over_tls_closes_its_connection_at_once(
    authority: trustme.CA, trusting: Callable[[], Pool], cut: bytes
) -> None:
    async def story(pool: Pool) -> None:
        tls = context_for(authority, "127.0.0.1")
        async with Server([request, cut, hang], tls=tls) as server:
            task = asyncio.create_task(get(pool, server))
            assert await soon(lambda: bool(server.peers and server.peers[0].requests))
            task.cancel()
            assert await soon(task.cancelled)
            assert await soon(server.peers[0].gone.is_set)

    play(story, trusting)


def test_a_missing_authority_file_is_told_when_the_pool_is_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Pool(ca_file=str(tmp_path / "absent.pem"))


@pytest.mark.parametrize("host", ["::1", "localhost"])
def test_ipv6_and_resolved_names_are_reached(host: str) -> None:
    async def story(pool: Pool) -> None:
        async with Server([request, OK], host=host) as server:
            answer = await pool.send(server.ask(), LIMITS)
            assert await answer.read() == b"{}"
            assert (b"host: " + Origin("http", host, server.origin.port).authority.encode()) in (
                server.peers[0].requests[0]
            )

    play(story)
