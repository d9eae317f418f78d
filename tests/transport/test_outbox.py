"""Writes that wait for the end of a turn: once, in order, and into no other exchange."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

import pytest

from transport.rig import LIMITS, ask
from transport.test_wire import ORIGIN, Line, Nursery
from understudy.core.errors import ProviderError
from understudy.providers.answer import Answer
from understudy.providers.outbox import KNOWN, Outbox
from understudy.providers.wire import Connection

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


class Paper(Line):
    """A line that remembers what was written, or breaks when something is."""

    def __init__(self, *, breaks: bool = False) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self._breaks = breaks

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))
        self.closed = self._breaks


class Turn:
    """Two requests in one turn of a loop: the first is written at once, ours waits."""

    def __init__(self, line: Paper) -> None:
        loop = asyncio.get_running_loop()
        self.outbox = outbox = Outbox(loop)
        self.line = line
        self.home = Nursery()
        self.waiter: asyncio.Future[Answer] = loop.create_future()
        self.connection = Connection(self.home, ORIGIN)
        self.connection.connection_made(line)
        self.early = Paper()
        other = Connection(Nursery(), ORIGIN)
        other.connection_made(self.early)
        assert other.begin(ask(ORIGIN), LIMITS, loop.create_future(), outbox)
        assert self.connection.begin(ask(ORIGIN), LIMITS, self.waiter, outbox)


def one_turn(line: Paper, meanwhile: Callable[[Turn], None] = lambda turn: None) -> Turn:
    """The turn, what happens before its end, and its end."""

    async def turned() -> Turn:
        turn = Turn(line)
        assert len(turn.early.written) == 1
        assert line.written == []
        meanwhile(turn)
        await asyncio.sleep(0)  # the end of the turn
        return turn

    return asyncio.run(turned())


def told(turn: Turn) -> str:
    error = turn.waiter.exception()
    assert isinstance(error, ProviderError)
    return error.billing


def test_the_first_write_of_a_turn_goes_at_once_and_the_next_at_its_end() -> None:
    turn = one_turn(Paper())
    assert turn.line.written == turn.early.written
    turn.connection.data_received(OK)
    assert turn.waiter.result().status == 200
    assert turn.home.free_again == 1


def test_every_turn_has_a_first_write_of_its_own() -> None:
    async def turns() -> list[bool]:
        outbox, line = Outbox(asyncio.get_running_loop()), Connection(Nursery(), ORIGIN)
        seen = [outbox.takes(line), outbox.takes(line)]
        await asyncio.sleep(0)
        return [*seen, outbox.takes(line)]

    assert asyncio.run(turns()) == [False, True, False]


def test_a_write_that_breaks_keeps_nobody_elses_back() -> None:
    class Broken:
        def flush(self) -> None:
            raise RuntimeError("gone")

    told: list[str] = []

    def break_first(turn: Turn) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(str(context["exception"])))
        turn.outbox._queue.insert(0, Broken())

    turn = one_turn(Paper(), break_first)
    assert len(turn.line.written) == 1
    assert told == ["gone"]


def test_a_loop_that_is_gone_takes_its_outbox_with_it() -> None:
    async def used() -> Outbox:
        loop = asyncio.get_running_loop()
        assert Outbox.of(loop) is Outbox.of(loop)
        assert not Outbox.of(loop).takes(Connection(Nursery(), ORIGIN))
        return Outbox.of(loop)

    outbox = asyncio.run(used())
    gc.collect()
    assert outbox not in KNOWN.values()


def test_a_request_that_was_forsaken_before_the_turns_end_is_never_written() -> None:
    turn = one_turn(Paper(), lambda turn: turn.connection.forsake(turn.waiter))
    assert turn.line.written == []
    assert turn.line.closed


@pytest.mark.parametrize(
    ("line", "meanwhile"),
    [
        (Paper(breaks=True), lambda turn: None),
        (Paper(), lambda turn: turn.line.abort()),
        (Paper(), lambda turn: turn.connection.connection_lost(None)),
        (Paper(), lambda turn: turn.connection.data_received(OK)),
    ],
    ids=["the write fails", "closed by then", "lost by then", "spoken to before it was asked"],
)
def test_a_connection_found_dead_at_the_turns_end_says_that_nothing_was_sent(
    line: Paper, meanwhile: Callable[[Turn], None]
) -> None:
    turn = one_turn(line, meanwhile)
    assert told(turn) == "not_sent"
    assert turn.home.free_again == 0
    assert turn.line.closed or turn.line.written == []
