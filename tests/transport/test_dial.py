"""Which address is tried when: families in turn, the slow beside the next, nothing left open."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Coroutine

import pytest

from transport.rig import on_uvloop
from understudy.providers.dial import Address, lookup, race, telling
from understudy.providers.names import Names

V4, V6 = socket.AF_INET, socket.AF_INET6


def looked_up(host: str, *addresses: Address) -> list[Address]:
    """With a resolver that says so of every name."""
    told = [(family, socket.SOCK_STREAM, 6, "", where) for family, where in addresses]
    return asyncio.run(lookup(Names(lambda *_: told), host, 80))


def v4(n: int) -> Address:
    return V4, (f"192.0.2.{n}", 80)


def v6(n: int) -> Address:
    return V6, (f"2001:db8::{n}", 80, 0, 0)


@pytest.mark.parametrize(
    ("found", "order"),
    [
        ([v6(1), v6(2), v4(1), v4(2)], [v6(1), v4(1), v6(2), v4(2)]),
        ([v4(1), v4(2), v4(3), v6(1)], [v4(1), v6(1), v4(2), v4(3)]),
        ([v4(1)], [v4(1)]),
    ],
)
def test_families_take_turns_in_the_resolvers_order(
    found: list[Address], order: list[Address]
) -> None:
    assert looked_up("api.example.test", *found) == order


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", (V4, ("127.0.0.1", 80))), ("::1", (V6, ("::1", 80, 0, 0)))],
)
def test_a_literal_address_needs_no_resolver(host: str, address: Address) -> None:
    assert looked_up(host) == [address]


class Listeners:
    """A good listener, one with a full backlog where nobody is let in, and a dead port."""

    def __init__(self) -> None:
        self._good = socket.create_server(("127.0.0.1", 0))
        self._full = socket.socket()
        self._full.bind(("127.0.0.1", 0))
        self._full.listen(0)
        self._dead = socket.socket()
        self._dead.bind(("127.0.0.1", 0))
        self._filler = [socket.socket() for _ in range(2)]
        for sock in self._filler:
            sock.setblocking(False)
            sock.connect_ex(self._full.getsockname())
        self.good: Address = (V4, self._good.getsockname())
        self.full: Address = (V4, self._full.getsockname())
        self.dead: Address = (V4, self._dead.getsockname())

    def close(self) -> None:
        for sock in (self._good, self._full, self._dead, *self._filler):
            sock.close()


async def winner(*addresses: Address) -> object:
    sock = await race(asyncio.get_running_loop(), list(addresses), stagger=0.01)
    with sock:
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return sock.getpeername()


@pytest.mark.parametrize("run", [asyncio.run, on_uvloop])
@pytest.mark.parametrize(
    "order",
    [["good"], ["good", "dead"], ["dead", "good"], ["full", "good"], ["full", "dead", "good"]],
    ids=" ".join,
)
def test_the_first_to_connect_wins_and_the_others_are_dismissed(
    run: Callable[[Coroutine[None, None, None]], None], order: list[str]
) -> None:
    listeners = Listeners()
    known = {"good": listeners.good, "full": listeners.full, "dead": listeners.dead}

    async def story() -> None:
        assert await winner(*(known[name] for name in order)) == listeners.good[1]

    run(story())
    listeners.close()


def test_when_nobody_connects_the_first_error_is_told() -> None:
    listeners = Listeners()

    async def story() -> None:
        with pytest.raises(ConnectionRefusedError):
            await winner(listeners.dead, listeners.dead)

    asyncio.run(story())
    listeners.close()


def test_of_several_errors_the_one_about_the_host_is_told() -> None:
    ours, theirs = OSError(errno.ENETUNREACH, "no IPv6 here"), ConnectionRefusedError("no")
    assert telling([ours, theirs, ours]) is theirs
    assert telling([ours, OSError(errno.EMFILE, "full")]) is ours


def test_a_cancelled_race_leaves_nobody_running() -> None:
    listeners = Listeners()

    async def story() -> None:
        task = asyncio.create_task(winner(listeners.full, listeners.full))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(story())
    listeners.close()
