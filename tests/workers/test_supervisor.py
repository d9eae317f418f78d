"""Several workers on one port: they all serve, the dead are replaced, nothing is lost."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gateway.desk import (
    HELLO_STREAM,
    ROOT,
    Line,
    Upstream,
    always,
    ask,
    says,
)
from tests.rig import run
from tests.workers.stage import (
    CHAT,
    STREAM,
    House,
    alive,
    children,
    load,
    supervised,
    text_of,
    until,
)
from understudy.gateway.siblings import Glimpse, Question
from understudy.gateway.supervisor import PAUSES, pause


def numbers(glimpses: list[Glimpse]) -> list[int]:
    return [glimpse.number for glimpse in glimpses]


# -- serving


def test_all_workers_serve_one_port() -> None:
    async def work() -> None:
        async with Upstream(always()) as up, supervised(text_of(up.url, 3)) as house:
            answers = await asyncio.gather(*(house.chat() for _ in range(90)))
            assert {heard.status for heard in answers} == {200}
            seen = {g.number: g.seen[0] for g in await house.glimpses()}
            assert sorted(seen) == [1, 2, 3]
            assert sum(seen.values()) == 90
            assert min(seen.values()) > 0

    run(work())


def test_a_second_gateway_is_told_that_the_port_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = cli("--workers", "2", "--port", str(port))
    assert done.returncode == 2
    assert done.stderr == f"error: cannot listen on 127.0.0.1:{port}: Address already in use\n"


def test_two_gateways_of_workers_do_not_share_a_port() -> None:
    async def work() -> None:
        async with Upstream(always()) as up, supervised(text_of(up.url)) as house:
            port = house.address.rpartition(":")[2]
            done = await asyncio.to_thread(cli, "--workers", "2", "--port", port)
            assert (done.returncode, "already in use" in done.stderr) == (2, True)

    run(work())


def cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "understudy.cli", "serve", *arguments],
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": os.defpath},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[gateway]\nworkers = 0\n", "gateway.workers: is 0; expected a whole number, 1 or more"),
        ("[gateway]\nworkers = 2\nprot = 1\n", "gateway.prot: unknown key; did you mean 'port'?"),
        ('[gateway]\nworkers = 2\nhost = "0.0.0.0"\n', "are needed to listen on 0.0.0.0"),
    ],
)
def test_a_mistake_in_the_file_is_said_once_and_ends_it(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "understudy.toml"
    path.write_text(text)
    done = cli("--config", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("error:") == 1
    assert said in done.stderr


def test_what_only_a_worker_finds_out_is_said_once_and_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "understudy.toml"
    path.write_text('[gateway]\nworkers = 3\n[journal]\npath = "/proc/none/journal"\n')
    done = cli("--config", str(path), "--port", "0")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("error:") == 1
    assert "journal.path: cannot be written" in done.stderr


# -- dying


def test_a_killed_worker_is_replaced_and_other_connections_notice_nothing() -> None:
    async def work() -> None:
        async with Upstream(always()) as up, supervised(text_of(up.url)) as house:
            async with load(house, 12) as clients:
                before = house.pids()
                [one, _] = await house.glimpses(Question(records=1))
                victim = "".join(r.opening.id.partition("-")[0] for r in one.records)
                mine = [client.served_by == victim for client in clients]
                os.kill(before[1], signal.SIGKILL)
                await house.until(lambda seen: numbers(seen) == [1, 2] and house.pids() != before)
            # A client of the killed one loses what it had asked, once, and comes back.
            lost = [len(client.failures) for client in clients]
            assert all(count <= served for count, served in zip(lost, mine, strict=True))
            assert house.pids()[2] == before[2]
            assert house.pids()[1] != before[1]
            house.process.signal(signal.SIGTERM)
            ended = [line for line in await house.lines() if line["event"] == "worker_ended"]
            assert [(e["worker"], e["code"], e["restart_in"]) for e in ended] == [(1, -9, 0.0)]

    run(work())


def test_who_knocks_while_a_worker_is_away_is_let_in_by_another() -> None:
    async def work() -> None:
        async with Upstream(always()) as up, supervised(text_of(up.url)) as house:
            pid = house.pids()[1]
            os.kill(pid, signal.SIGSTOP)  # it neither serves nor lets anybody else have its door
            try:
                answers = await asyncio.gather(*(house.chat() for _ in range(32)))
            finally:
                os.kill(pid, signal.SIGCONT)
            assert {heard.status for heard in answers} == {200}

    run(work())


def test_one_that_dies_again_and_again_is_started_after_growing_pauses() -> None:
    async def work() -> None:
        async with Upstream(always()) as up, supervised(text_of(up.url)) as house:
            for _ in range(3):
                before = house.pids()
                os.kill(before[1], signal.SIGKILL)
                await until(lambda old=before: house.pids().get(1, old[1]) != old[1])
            house.process.signal(signal.SIGTERM)
            ended = [line for line in await house.lines() if line["event"] == "worker_ended"]
            assert [line["restart_in"] for line in ended] == [0.0, 0.5, 1.0]

    run(work())


def test_pauses_grow_up_to_half_a_minute() -> None:
    assert [pause(deaths) for deaths in range(1, 8)] == list(PAUSES)
    assert (pause(0), pause(1000)) == (0.0, 30.0)
    assert list(PAUSES) == sorted(PAUSES)


def test_a_worker_that_starts_while_the_file_is_bad_serves_the_last_good_one() -> None:
    async def work() -> None:
        async with Upstream(always()) as up, supervised(text_of(up.url)) as house:
            house.process.path.write_text("[gateway]\nprot = 1\n")
            before = house.pids()
            os.kill(before[1], signal.SIGKILL)
            await house.until(lambda seen: numbers(seen) == [1, 2] and house.pids() != before)
            answers = await asyncio.gather(*(house.chat() for _ in range(32)))
            assert {heard.status for heard in answers} == {200}
            assert {g.number for g in await house.glimpses() if g.seen[0]} == {1, 2}
            house.process.signal(signal.SIGTERM)
            told = [line for line in await house.lines() if line["event"] == "reload_refused"]
            assert told
            assert all("gateway.prot" in str(line["reason"]) for line in told)

    run(work())


# -- ending


async def streaming(house: House) -> tuple[Line, bytes, dict[str, str]]:
    line = await Line.to(house.address)
    line.send("POST", CHAT, STREAM)
    _, headers = await line.head()
    return line, await line.piece(), headers


async def deaf(house: House) -> None:
    while True:
        try:
            (await Line.to(house.address)).close()
        except ConnectionRefusedError:
            return
        except ConnectionResetError:
            pass  # it was in line when the door closed


@pytest.mark.parametrize(
    ("sign", "to_all"),
    [(signal.SIGTERM, False), (signal.SIGINT, False), (signal.SIGTERM, True)],
    ids=["SIGTERM", "SIGINT", "SIGTERM to every process, as systemd does"],
)
def test_on_a_signal_streams_end_and_newcomers_are_refused(sign: int, to_all: bool) -> None:
    async def work() -> None:
        rest = asyncio.Event()
        pieces = (HELLO_STREAM[0], rest, *HELLO_STREAM[1:])
        text = "access_log = true"
        async with Upstream(always(pieces)) as up, supervised(text_of(up.url, 2, text)) as house:
            streams = await asyncio.gather(*(streaming(house) for _ in range(8)))
            for pid in house.pids().values() if to_all else ():
                os.kill(pid, sign)
            house.process.signal(sign)
            await deaf(house)
            rest.set()
            for line, first, headers in streams:
                assert (first + await line.rest(headers)).endswith(HELLO_STREAM[-1])
                line.close()
            code, lines = await house.process.ended()
            assert code == 0
            outcomes = [line["outcome"] for line in lines if line["event"] == "request"]
            assert outcomes == ["ok"] * 8
            assert not house.folder.exists()

    run(work())


def test_a_second_signal_ends_the_drain() -> None:
    async def work() -> None:
        pieces = (HELLO_STREAM[0], asyncio.Event())
        text = "drain_timeout = 3600"
        async with Upstream(always(pieces)) as up, supervised(text_of(up.url, 2, text)) as house:
            line, _, _ = await streaming(house)
            house.process.signal(signal.SIGTERM)
            await deaf(house)
            house.process.signal(signal.SIGTERM)
            code, _ = await house.process.ended()
            line.close()
            assert code == 0

    run(work())


def test_workers_whose_supervisor_vanished_let_their_streams_end_and_go() -> None:
    async def work() -> None:
        rest = asyncio.Event()
        pieces = (HELLO_STREAM[0], rest, *HELLO_STREAM[1:])
        async with Upstream(always(pieces)) as up, supervised(text_of(up.url)) as house:
            line, first, headers = await streaming(house)
            pids = house.pids()
            house.process.signal(signal.SIGKILL)
            await deaf(house)
            rest.set()
            assert (first + await line.rest(headers)).endswith(HELLO_STREAM[-1])
            line.close()
            await until(lambda: not any(alive(pid) for pid in pids.values()))
            assert not house.folder.exists()

    run(work())


# -- changing


def test_another_number_of_workers_replaces_them_one_by_one_and_no_request_is_lost() -> None:
    async def work() -> None:
        async with Upstream(always()) as up, supervised(text_of(up.url)) as house:
            before = house.pids()
            async with load(house, 6) as clients:
                house.process.path.write_text(text_of(up.url, 3))
                house.process.signal(signal.SIGHUP)
                await house.until(lambda seen: numbers(seen) == [1, 2, 3])
                assert not {*before.values()} & {*house.pids().values()}
                house.process.path.write_text(text_of(up.url, 1))
                house.process.signal(signal.SIGHUP)
                await house.until(lambda seen: numbers(seen) == [1])
            assert [client.failures for client in clients] == [[]] * 6
            await until(lambda: len(children(house.process.process.pid)) == 1)

    run(work())


def test_another_address_is_served_when_the_file_says_so() -> None:
    async def work() -> None:
        async with Upstream(always()) as up, supervised(text_of(up.url)) as house:
            house.process.path.write_text(text_of(up.url, 2, 'host = "127.0.0.2"'))
            house.process.signal(signal.SIGHUP)
            await deaf(house)
            house.process.signal(signal.SIGTERM)
            lines = await house.lines()
            [turned] = [line for line in lines if line["event"] == "restarted"]
            assert str(turned["address"]).startswith("http://127.0.0.2:")

    run(work())


def test_an_address_that_is_not_ours_is_refused_and_the_old_one_stays() -> None:
    async def work() -> None:
        async with Upstream(always()) as up, supervised(text_of(up.url)) as house:
            more = 'host = "192.0.2.1"\nkeys = ["sk-a"]'
            before = house.pids()
            house.process.path.write_text(text_of(up.url, 2, more))
            house.process.signal(signal.SIGHUP)
            while (await house.chat()).status != 401:  # the rest of the file is taken
                pass
            assert house.pids() == before
            house.process.signal(signal.SIGTERM)
            lines = await house.lines()
            [refused] = [line for line in lines if line["event"] == "restart_refused"]
            assert "cannot listen on 192.0.2.1" in str(refused["reason"])

    run(work())


def test_sighup_reaches_every_worker_at_once() -> None:
    async def work() -> None:
        async with (
            Upstream(lambda _: says(400)) as one,
            Upstream(always()) as two,
            supervised(text_of(one.url)) as house,
        ):
            assert (await house.chat()).status == 400
            before = house.pids()
            house.process.path.write_text(text_of(two.url))
            house.process.signal(signal.SIGHUP)

            async def all_turned() -> bool:
                answers = await asyncio.gather(*(house.chat() for _ in range(16)))
                return {heard.status for heard in answers} == {200}

            while not await all_turned():
                pass
            assert house.pids() == before
            ready = await ask(house.address, "GET", "/readyz")
            assert ready.status == 200

    run(work())
