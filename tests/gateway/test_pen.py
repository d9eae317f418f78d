"""Log lines and who reads them: nobody's answer waits for that."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import select
import signal
from collections.abc import Iterator
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.desk import HELLO, Upstream, aliases, always, ask, process, provider
from tests.rig import run
from understudy.observe.pen import Pen

PIPE = 4096  # bytes; the smallest the system makes
CHAT = {**HELLO, "model": "chat"}


class Desk:
    """A pen whose writing can be held up."""

    def __init__(self, most: int) -> None:
        self.written: list[bytes] = []
        self.begun = Event()
        self.flows = Event()
        self.pen = Pen(self._write, lambda: 1.25, most)

    def _write(self, data: bytes) -> None:
        self.begun.set()
        assert self.flows.wait(10)
        if data.startswith(b"break"):
            raise OSError(errno.ENOSPC, "No space left on device")
        self.written.append(data)

    def stuck_with(self, first: bytes) -> None:
        """This is in the writer's hand, and stays there."""
        self.pen.put(first)
        assert self.begun.wait(10)

    def all(self) -> bytes:
        self.flows.set()
        assert self.pen.close(10)
        return b"".join(self.written)


def test_lines_are_written_in_order_and_those_that_waited_together() -> None:
    desk = Desk(most=1000)
    desk.stuck_with(b"a\n")
    desk.pen.put(b"b\n")
    desk.pen.put(b"c\nd\n")
    assert desk.all() == b"a\nb\nc\nd\n"
    assert desk.written == [b"a\n", b"b\nc\nd\n"]
    desk.pen.put(b"e\n")
    assert desk.all() == b"a\nb\nc\nd\ne\n"


def test_what_is_too_much_is_lost_and_told_behind_what_came_before_it() -> None:
    desk = Desk(most=8)
    desk.stuck_with(b"one\n")
    desk.pen.put(b"two\n")
    desk.pen.put(b"three\nfour\n")
    desk.pen.put(b"five\n")
    assert desk.pen.lost == 3
    lost = b'{"event":"lines_lost","level":"warning","at":1.25,"lines":3}\n'
    assert desk.all() == b"one\ntwo\n" + lost
    desk.pen.put(b"six\n")
    assert desk.all() == b"one\ntwo\n" + lost + b"six\n"
    assert desk.pen.lost == 3


def test_a_piece_larger_than_the_limit_is_written_if_nothing_else_waits() -> None:
    desk = Desk(most=4)
    desk.pen.put(b"much longer than that\n")
    assert desk.all() == b"much longer than that\n"


def test_the_last_lines_are_not_waited_for_without_end() -> None:
    desk = Desk(most=1000)
    desk.stuck_with(b"a\n")
    assert not desk.pen.close(0.001)
    assert desk.all() == b"a\n"


def test_what_cannot_be_written_is_counted_and_the_next_is_tried_again() -> None:
    desk = Desk(most=1000)
    desk.flows.set()
    desk.pen.put(b"break\nthis\n")
    assert desk.all() == b""
    assert desk.pen.lost == 2
    desk.pen.put(b"after\n")
    assert desk.all() == b"after\n"


def test_a_pen_that_was_never_used_is_closed_at_once() -> None:
    assert Desk(most=1).pen.close(0.0)


@given(st.lists(st.integers(1, 5), max_size=20), st.integers(1, 60))
def test_every_line_is_written_once_and_in_order_or_counted_as_lost(
    sizes: list[int], most: int
) -> None:
    desk = Desk(most)
    desk.stuck_with(b"first\n")
    number, given_lines = 0, []
    for size in sizes:
        piece = [b"%d\n" % (number + n) for n in range(size)]
        number += size
        given_lines += piece
        desk.pen.put(b"".join(piece))
    lines = desk.all().splitlines(keepends=True)
    told = [json.loads(line)["lines"] for line in lines if line.startswith(b"{")]
    kept = [line for line in lines[1:] if not line.startswith(b"{")]
    assert kept == [line for line in given_lines if line in kept]
    assert len(kept) + desk.pen.lost == number
    assert sum(told) <= desk.pen.lost  # if nothing is written afterwards the last are not told
    if kept or not desk.pen.lost:
        assert sum(told) == desk.pen.lost


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The smallest there is: it is full after a dozen lines."""
    out, into = os.pipe()
    fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, PIPE)
    yield out, into
    os.close(out)
    os.close(into)


async def answered(text: str, into: int) -> tuple[list[int], int]:
    """A hundred requests to a gateway that logs there; their statuses, and its exit code."""
    async with Upstream(always()) as up, asyncio.timeout(60):
        whole = text + provider("p", up.url) + aliases(chat="p/m")
        async with process(whole, out=into) as running:
            asked = [
                await ask(running.address, "POST", "/v1/chat/completions", CHAT)
                for _ in range(100)
            ]
            running.signal(signal.SIGTERM)
            return [heard.status for heard in asked], await running.process.wait()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_gateway_whose_lines_nobody_reads_goes_on_answering_and_ends_when_told(
    workers: int, pipe: tuple[int, int]
) -> None:
    out, into = pipe
    statuses, code = run(answered(f"[gateway]\nworkers = {workers}\n", into))
    assert statuses == [200] * 100
    assert code == 0
    held = [json.loads(line) for line in os.read(out, PIPE).splitlines()[:-1]]
    assert {line["event"] for line in held} == {"request"}


def test_a_pipe_that_does_not_wait_loses_no_line(pipe: tuple[int, int]) -> None:
    """Whoever started us may have made it so."""
    out, into = pipe
    os.set_blocking(into, False)
    read: list[bytes] = []

    async def work() -> tuple[list[int], int]:
        loop = asyncio.get_running_loop()
        loop.add_reader(out, lambda: read.append(os.read(out, 256)))
        try:
            return await answered("", into)
        finally:
            loop.remove_reader(out)

    statuses, code = run(work())
    read.append(os.read(out, PIPE) if select.select([out], [], [], 0)[0] else b"")
    events = [json.loads(line)["event"] for line in b"".join(read).splitlines()]
    assert (statuses, code) == ([200] * 100, 0)
    assert events == ["request"] * 100 + ["draining", "stopped"]
