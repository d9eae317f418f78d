"""Health over a real Redis: hosts learn from each other, and nobody waits when it is gone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trustme

from tests.rig import run
from tests.share.joined import SECRET, Host, hosts, rights_on_the_page
from tests.share.server import Server, eventually, free_port, needs_redis, redis
from understudy.share.tie import Place

pytestmark = needs_redis


async def told(one: Host, other: Host, key: str = "p/a") -> None:
    """What one learns the other knows, and that it is over."""
    one.health.bench(key, 60, "mending")
    await eventually(lambda: other.benched(key))
    other.health.unbench(key)
    await eventually(lambda: not one.benched(key))


def test_a_bench_an_order_and_a_success_reach_another_host() -> None:
    async def work() -> None:
        async with redis() as server, hosts(server.url, server.url) as (one, other):
            one.health.report_failure("p/a")
            one.health.report_failure("p/a")
            await eventually(lambda: other.benched("p/a"))
            state = other.health.snapshot()["p/a"]
            assert state.bench is not None
            assert (state.bench.source, state.rounds) == ("remote", 1)
            assert state.reason.endswith("learned by gw-0")
            one.health.report_success("p/a")
            await eventually(lambda: not other.health.snapshot())
            await told(other, one)
            assert (one.events, other.events) == ([], [])

    run(work())


def test_a_newcomer_learns_what_runs_and_for_how_long() -> None:
    async def work() -> None:
        async with redis() as server, hosts(server.url) as (one,):
            one.health.bench("p/a", 60, "mending")
            one.health.bench("p/b", 60)
            one.health.unbench("p/b")
            await all_kept(server, 3)
            async with hosts(server.url) as (newcomer,):
                bench = newcomer.health.standing("p/a")
                assert bench is not None
                assert 50 < bench.left(time.monotonic()) <= 60
                assert bench.why == "ordered at gw-0: mending"
                assert newcomer.health.available("p/b")

    run(work())


async def all_kept(server: Server, facts: int) -> None:
    """Beside the facts there is their index."""
    async with asyncio.timeout(20):
        while await server.order("DBSIZE") != b":%d\r\n" % (facts + 1):
            pass


def test_deployments_on_one_server_do_not_hear_each_other() -> None:
    async def work() -> None:
        async with redis() as server:
            places = [Place(server.url, name) for name in ("blue", "blue", "green")]
            async with hosts(*places) as (one, other, stranger):
                await told(one, other)
                assert (stranger.sharing.taken, stranger.sharing.ignored) == (0, 0)

    run(work())


@pytest.mark.parametrize(
    "nonsense", [b"", b"{}", b"\xff\xfe", b"[" * 9000, b'{"kind":"bench","origin":"x","stamp":-1}']
)
def test_nonsense_on_the_channel_is_ignored(nonsense: bytes) -> None:
    async def work() -> None:
        async with redis() as server, hosts(server.url, server.url) as (one, other):
            text = nonsense.decode("latin-1")
            await server.order("PUBLISH", "understudy:{default}:events", text)
            await eventually(lambda: one.sharing.ignored)
            assert not one.health.snapshot()
            await told(one, other)

    run(work())


def test_a_full_server_is_told_of_once_and_news_still_arrive() -> None:
    async def work() -> None:
        async with redis() as server, hosts(server.url, server.url) as (one, other):
            await server.order("CONFIG", "SET", "maxmemory", 1)
            one.health.bench("p/a", 60)
            await eventually(lambda: other.benched("p/a"))
            await eventually(lambda: one.events)
            assert "OOM" in str(one.said[0][1]["reason"]) or "memory" in str(one.said[0][1])
            await server.order("CONFIG", "SET", "maxmemory", 0)
            await eventually(lambda: one.events == ["share_lost", "share_back"])
            async with hosts(server.url) as (newcomer,):
                assert newcomer.benched("p/a")

    run(work())


def test_a_host_that_starts_without_the_server_goes_on_alone_and_joins_later() -> None:
    async def work() -> None:
        async with redis() as server:
            await server.kill()
            before = time.monotonic()
            async with hosts(server.url, server.url) as (one, other):
                assert time.monotonic() - before < 5
                one.health.bench("p/a", 60)
                await server.start()
                await eventually(lambda: other.benched("p/a"))
                await eventually(lambda: one.link.connected and other.link.connected)
                assert one.events == other.events == ["share_lost", "share_back"]

    run(work())


def test_who_was_thrown_out_reads_what_it_missed() -> None:
    async def work() -> None:
        async with redis() as server, hosts(server.url, server.url) as (one, other):
            await server.order("CLIENT", "KILL", "TYPE", "pubsub")
            one.health.bench("p/a", 60)
            await eventually(lambda: other.benched("p/a"))
            await eventually(lambda: one.link.connected and other.link.connected)
            assert one.events == other.events == ["share_lost", "share_back"]

    run(work())


async def _babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(100)
    writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
    writer.close()


async def _silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


@pytest.mark.parametrize("play", [_babble, _silence])
def test_a_stranger_at_the_servers_address_is_a_loss_told_once(
    play: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> None:
    async def work() -> None:
        async with await asyncio.start_server(play, "127.0.0.1", 0) as stranger:
            port = stranger.sockets[0].getsockname()[1]
            async with hosts(f"redis://127.0.0.1:{port}") as (one,):
                one.health.bench("p/a", 60)
                await eventually(lambda: one.events)
                assert one.events == ["share_lost"]
                assert not one.link.connected

    run(work())


def test_a_password_opens_and_is_never_shown() -> None:
    async def work() -> None:
        async with redis("--requirepass", SECRET) as server:
            address = f"127.0.0.1:{server.port}"
            right, wrong = f"redis://:{SECRET}@{address}", f"redis://:{SECRET}no@{address}"
            async with hosts(right, right, wrong) as (one, other, barred):
                await told(one, other)
                await eventually(lambda: barred.events)
                assert SECRET not in str(barred.said)
                assert barred.said[0][1]["server"] == address
        assert SECRET not in repr(Place(right))

    run(work())


def test_the_rights_on_the_page_are_enough() -> None:
    async def work() -> None:
        async with redis() as server:
            await server.order(*rights_on_the_page())
            url = f"redis://understudy:{SECRET}@127.0.0.1:{server.port}"
            async with hosts(url, url) as (one, other):
                await told(one, other)
                one.health.bench("p/b", 60)
                await all_kept(server, 3)
                async with hosts(url) as (newcomer,):
                    assert newcomer.benched("p/b")
                assert (one.said, other.said, newcomer.said) == ([], [], [])

    run(work())


def test_a_cluster_is_a_place_too() -> None:
    async def work() -> None:
        bus = ("--cluster-port", str(free_port()))  # by default far above the port, or nowhere
        async with redis("--cluster-enabled", "yes", *bus) as server:
            await server.order("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
            place = Place(server.url, cluster=True)
            async with hosts(place, place) as (one, other):
                await eventually(lambda: one.link.connected and other.link.connected)
                await told(one, other)
                one.health.bench("p/b", 60)
                await eventually(lambda: other.benched("p/b"))
                async with hosts(place) as (newcomer,):
                    await eventually(lambda: newcomer.benched("p/b"))

    run(work())


def test_the_way_to_the_server_may_be_encrypted(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    own = authority.issue_cert("127.0.0.1")
    own.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    own.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    files = {"cert": "cert.pem", "key": "key.pem", "ca-cert": "ca.pem"}
    options = [
        word
        for name, file in files.items()
        for word in (f"--tls-{name}-file", str(tmp_path / file))
    ]
    options += ["--tls-auth-clients", "no"]

    async def work() -> None:
        async with redis(*options, tls=True) as server:
            url = f"rediss://127.0.0.1:{server.port}"
            trusting = f"{url}?ssl_ca_certs={tmp_path / 'ca.pem'}"
            async with hosts(trusting, trusting, url) as (one, other, doubtful):
                await told(one, other)
                await eventually(lambda: doubtful.events)
                assert "certificate" in str(doubtful.said[0][1]["reason"]).lower()

    run(work())


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://:planted@cache:6380/0", "cache:6380"),
        ("rediss://cache", "cache:6379"),
        ("unix://:planted@/run/redis.sock?db=1", "/run/redis.sock"),
    ],
)
def test_a_line_says_which_server_is_lost_and_no_password(url: str, shown: str) -> None:
    assert Place(url).shown == shown
