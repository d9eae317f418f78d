"""Doors and links in one process: queues that outlive a listener, and messages that arrive."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from tests.rig import run
from tests.workers.stage import turn
from understudy.gateway.doors import BALANCED, Doors, Neighbours
from understudy.share.local import SUFFIX, WAITING, LocalLink

# -- doors


def knock(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


@pytest.mark.skipif(not BALANCED, reason="only Linux spreads connections over sockets")
def test_who_waits_where_nobody_opens_is_taken_in_by_a_neighbour() -> None:
    async def work() -> None:
        doors = Doors("127.0.0.1", 0, 2)
        for door in doors.sockets:
            door.listen()
        guests: list[socket.socket] = []
        neighbours = Neighbours([socket.socket(fileno=os.dup(doors.sockets[0].fileno()))],
                                guests.append)  # fmt: skip
        knocks = [knock(doors.port) for _ in range(32)]
        neighbours.look()
        assert not guests  # a live neighbour would have let them in by the next look
        async with asyncio.timeout(10):
            while not guests:
                await turn()
        own, taken = 0, len(guests)
        with suppress(BlockingIOError):
            while True:
                doors.sockets[1].accept()[0].close()
                own += 1
        assert (own + taken, own > 0, taken > 0) == (32, True, True)
        neighbours.close()
        for open_one in (*knocks, *guests):
            open_one.close()
        doors.close()

    run(work())


def test_a_door_that_nobody_listens_at_yet_is_passed_by() -> None:
    async def work() -> None:
        doors = Doors("127.0.0.1", 0, 1)
        guests: list[socket.socket] = []
        neighbours = Neighbours([socket.socket(fileno=os.dup(doors.sockets[0].fileno()))],
                                guests.append)  # fmt: skip
        for _ in range(3):
            neighbours.look()
            neighbours._timer.cancel()  # type: ignore[union-attr]
        assert not guests
        neighbours.close()
        doors.close()

    run(work())


def test_doors_of_one_address_have_one_port_and_more_can_be_added() -> None:
    doors = Doors("127.0.0.1", 0, 2)
    doors.grow(4)
    doors.grow(1)
    assert {door.getsockname()[1] for door in doors.sockets} == {doors.port}
    assert len(doors.sockets) == (4 if BALANCED else 1)
    assert doors.serves("127.0.0.1", 0)
    assert not doors.serves("127.0.0.1", doors.port)
    doors.close()


def test_a_port_that_another_shares_out_is_taken_all_the_same() -> None:
    doors = Doors("127.0.0.1", 0, 2)
    doors.sockets[0].listen()
    with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{doors.port}: Address already"):
        Doors("127.0.0.1", doors.port, 2)
    doors.close()


# -- links


class Ends:
    """Links in one folder, and what each heard."""

    def __init__(self, folder: Path, *names: str) -> None:
        self.links = {name: LocalLink(folder, name) for name in names}
        self.heard: dict[str, list[bytes]] = {name: [] for name in names}

    async def open(self) -> None:
        for name, link in self.links.items():
            await link.start(self.heard[name].append)

    async def close(self) -> None:
        for link in self.links.values():
            await link.close()

    async def until(self, name: str, count: int) -> None:
        async with asyncio.timeout(10):
            while len(self.heard[name]) < count:
                await turn()


def test_a_message_reaches_everybody_but_its_sender(tmp_path: Path) -> None:
    async def work() -> None:
        ends = Ends(tmp_path, "a", "b", "c")
        await ends.open()
        ends.links["a"].send(b"hello")
        await ends.until("b", 1)
        await ends.until("c", 1)
        assert ends.heard == {"a": [], "b": [b"hello"], "c": [b"hello"]}
        await ends.close()
        assert os.listdir(tmp_path) == []

    run(work())


def test_a_burst_that_no_reader_could_hold_arrives_whole_and_in_order(tmp_path: Path) -> None:
    async def work() -> None:
        ends = Ends(tmp_path, "a", "b")
        await ends.open()
        sent = [b"%d" % n for n in range(2000)]
        for message in sent:
            ends.links["a"].send(message)
        await ends.until("b", len(sent))
        assert ends.heard["b"] == sent
        await ends.close()

    run(work())


def test_what_the_dead_leave_behind_is_cleared_away(tmp_path: Path) -> None:
    async def work() -> None:
        left = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        left.bind(str(tmp_path / f"dead{SUFFIX}"))
        left.close()
        ends = Ends(tmp_path, "a", "b")
        await ends.open()
        ends.links["a"].send(b"hello")
        await ends.until("b", 1)
        assert sorted(os.listdir(tmp_path)) == [f"a{SUFFIX}", f"b{SUFFIX}"]
        await ends.close()

    run(work())


def test_sending_never_raises_whatever_became_of_the_link(tmp_path: Path) -> None:
    async def work() -> None:
        link = LocalLink(tmp_path / "x", "a")
        link.send(b"not open yet")
        (tmp_path / "x").mkdir()
        await link.start(lambda _: None)
        reader = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        reader.bind(str(tmp_path / "x" / f"slow{SUFFIX}"))
        link.send(b"x" * 10_000_000)  # larger than anybody takes
        for n in range(WAITING + 100):
            link.send(b"%d" % n)
        assert max(len(waiting) for waiting in link._waiting.values()) == WAITING
        reader.close()
        for path in (tmp_path / "x").iterdir():
            path.unlink()
        (tmp_path / "x").rmdir()
        link.send(b"nobody is there")
        await link.close()
        link.send(b"closed")
        await link.close()

    run(work())
