"""Names and who answers for them: a silent name server is a matter of its own names only."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Sequence
from threading import Event

import pytest

from tests.rig import run, until
from understudy.providers.names import Found, Names, resolved

SECONDS = 10  # that a thread waits at most


def at(address: str) -> list[Found]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443))]


class Server:
    """A name server by script: per name an address, an error, or silence until `speak`."""

    def __init__(self, **answers: str | Exception) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.silent: set[str] = set()
        self.speak = Event()

    def __call__(self, host: str, port: int) -> Sequence[Found]:
        self.asked.append(host)
        if host in self.silent:
            assert self.speak.wait(SECONDS)
        answer = self.answers[host]
        if isinstance(answer, Exception):
            raise answer
        return at(answer)


NO_SUCH = socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def test_a_silent_server_holds_up_nobody_who_asks_for_another_name() -> None:
    async def work() -> None:
        server = Server(dead="192.0.2.1", well="192.0.2.2")
        server.silent = {"dead"}
        names = Names(server)
        waiting = [asyncio.ensure_future(names.find("dead", 443)) for _ in range(50)]
        await until(lambda: server.asked)
        for _ in range(3):
            assert await names.find("well", 443) == at("192.0.2.2")
        assert not any(task.done() for task in waiting)
        server.speak.set()
        assert await asyncio.gather(*waiting) == [at("192.0.2.1")] * 50
        assert server.asked.count("dead") == 1

    run(work())


def test_each_time_it_is_wanted_a_name_is_asked_for_anew() -> None:
    async def work() -> None:
        server = Server(api="192.0.2.1")
        names = Names(server)
        assert await names.find("api", 443) == at("192.0.2.1")
        server.answers["api"] = "192.0.2.9"
        assert await names.find("api", 443) == at("192.0.2.9")
        assert server.asked == ["api", "api"]

    run(work())


def test_who_stops_waiting_takes_nobody_with_him() -> None:
    async def work() -> None:
        server = Server(api="192.0.2.1")
        server.silent = {"api"}
        names = Names(server)
        one, other = (asyncio.ensure_future(names.find("api", 443)) for _ in range(2))
        await until(lambda: server.asked)
        one.cancel()
        with pytest.raises(asyncio.CancelledError):
            await one
        server.speak.set()
        assert await other == at("192.0.2.1")

    run(work())


def test_a_name_that_was_never_known_fails_as_the_resolver_says_and_may_be_asked_again() -> None:
    async def work() -> None:
        server = Server(api=NO_SUCH)
        names = Names(server)
        for _ in range(2):
            with pytest.raises(socket.gaierror, match="not known"):
                await names.find("api", 443)
        server.answers["api"] = "192.0.2.1"
        assert await names.find("api", 443) == at("192.0.2.1")
        assert len(server.asked) == 3

    run(work())


def test_when_the_name_servers_fail_the_last_answer_will_do() -> None:
    async def work() -> None:
        server = Server(api="192.0.2.1")
        names = Names(server)
        await names.find("api", 443)
        server.answers["api"] = NO_SUCH
        assert await names.find("api", 443) == at("192.0.2.1")

    run(work())


def test_when_they_are_silent_the_last_answer_will_do_soon() -> None:
    async def work() -> None:
        server = Server(api="192.0.2.1")
        names = Names(server, patience=0.001)
        await names.find("api", 443)
        server.silent = {"api"}
        server.answers["api"] = "192.0.2.9"
        assert await names.find("api", 443) == at("192.0.2.1")
        assert await names.find("api", 443) == at("192.0.2.1")
        assert len(server.asked) == 2  # one is still being waited for
        server.speak.set()
        await until(lambda: not names._asked)
        server.silent = set()
        assert await names.find("api", 443) == at("192.0.2.9")

    run(work())


def test_a_loop_that_ends_before_the_answer_comes_is_not_missed() -> None:
    server = Server(api="192.0.2.1")
    server.silent = {"api"}

    async def work() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await Names(server).find("api", 443)
        await until(lambda: server.asked)

    run(work())
    server.speak.set()


def test_without_a_thread_to_ask_in_it_is_our_own_machine_that_failed() -> None:
    def none_left(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    async def work() -> int | None:
        with pytest.raises(OSError, match="new thread") as caught:
            await Names(Server(), start=none_left).find("api", 443)
        return caught.value.errno

    assert run(work()) == errno.ENOMEM


def test_the_systems_own_resolver_is_asked_by_default() -> None:
    assert {where[0] for *_, where in resolved("localhost", 80)} <= {"127.0.0.1", "::1"}
