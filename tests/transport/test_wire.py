"""Laws of one connection, without sockets: any slicing is the same, any garbage is an error."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import pytest
from httptools import HttpResponseParser
from hypothesis import given, settings
from hypothesis import strategies as st

from transport.rig import LIMITS, ask
from understudy.core.errors import ProviderError
from understudy.providers.answer import Answer
from understudy.providers.transport import Origin
from understudy.providers.wire import Connection

T = TypeVar("T")
ORIGIN = Origin("http", "api.example.com", 80)


class Line(asyncio.Transport):
    """A transport that leads nowhere."""

    def __init__(self, sock: socket.socket | None = None, *, encrypted: bool = False) -> None:
        super().__init__({"socket": sock, "ssl_object": object() if encrypted else None})
        self.closed = False
        self.reading = True

    def write(self, data: bytes | bytearray | memoryview) -> None: ...

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


class Nursery:
    """Where connections come home to."""

    def __init__(self) -> None:
        self.free_again = 0

    def has_just_had(self, connection: Connection) -> bool:
        return False

    def free(self, connection: Connection) -> None:
        self.free_again += 1

    def lost(self, connection: Connection) -> None: ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a client can tell of an exchange."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    error: str
    kept: bool


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def at_once(coroutine: Coroutine[None, None, T]) -> T:
    """The result of something that need not wait."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise AssertionError("it waits")


def exchange(loop: asyncio.AbstractEventLoop, pieces: list[bytes], *, eof: bool) -> Outcome:
    """Play the server's bytes to a connection, piece by piece, and see what becomes of them."""
    home, line = Nursery(), Line()
    connection = Connection(home, ORIGIN)
    connection.connection_made(line)
    waiter: asyncio.Future[Answer] = loop.create_future()
    assert connection.begin(ask(ORIGIN), LIMITS, waiter)
    for piece in pieces:
        if not line.closed:
            connection.data_received(piece)
    if eof or line.closed:
        connection.connection_lost(None)
    assert waiter.done()
    kept = home.free_again == 1 and not line.closed
    failed = waiter.exception()
    if failed is not None:
        assert isinstance(failed, ProviderError)
        return Outcome(0, (), b"", failed.message, kept)
    return taken(waiter.result(), kept)


def taken(answer: Answer, kept: bool) -> Outcome:
    assert answer.done != (answer.error is not None)
    try:
        body = at_once(answer.read())
    except ProviderError as error:
        return Outcome(answer.status, tuple(answer.headers), b"", error.message, kept)
    return Outcome(answer.status, tuple(answer.headers), body, "", kept)


def sliced(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in pairwise(edges)]


names = st.from_regex(r"X-[A-Za-z0-9-]{1,8}", fullmatch=True).map(str.encode)
values = st.from_regex(r"([!-~]([ -~]{0,10}[!-~])?)?", fullmatch=True).map(str.encode)
cuts = st.lists(st.integers(0, 4000), max_size=12)


@st.composite
def answers(draw: st.DrawFn) -> tuple[bytes, int, bytes, bool]:
    """A valid answer: its bytes, status, body, and whether it needs the connection's end."""
    status = draw(st.sampled_from([200, 201, 307, 404, 429, 500, 529]))
    body = draw(st.binary(max_size=200))
    lines = [b"%b:%b" % pair for pair in draw(st.lists(st.tuples(names, values), max_size=5))]
    sent = body
    if draw(st.booleans()) and body:
        sent = gzip.compress(body, mtime=0)
        lines.append(b"Content-Encoding: gzip")
    framing = draw(st.sampled_from(["length", "chunks", "end"]))
    if framing == "length":
        lines.append(b"Content-Length: %d" % len(sent))
    elif framing == "chunks":
        lines.append(b"Transfer-Encoding: chunked")
        pieces = [piece for piece in sliced(sent, draw(cuts)) if piece]
        sent = b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"
    interim = draw(st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"\r\n"]))
    head = b"".join(line + b"\r\n" for line in [b"HTTP/1.1 %d Said So" % status, *lines])
    return interim + head + b"\r\n" + sent, status, body, framing == "end"


@settings(deadline=None)
@given(answers(), cuts)
def test_any_slicing_of_an_answer_is_the_same_answer(
    loop: asyncio.AbstractEventLoop, answer: tuple[bytes, int, bytes, bool], cuts: list[int]
) -> None:
    data, status, body, until_end = answer
    whole = exchange(loop, [data], eof=until_end)
    assert (whole.status, whole.body, whole.error) == (status, body, "")
    assert whole.kept is not until_end
    assert exchange(loop, sliced(data, cuts), eof=until_end) == whole


@settings(deadline=None)
@given(answers())
def test_an_answer_byte_by_byte_is_the_same_answer(
    loop: asyncio.AbstractEventLoop, answer: tuple[bytes, int, bytes, bool]
) -> None:
    data, _, _, until_end = answer
    single = [data[n : n + 1] for n in range(len(data))]
    assert exchange(loop, single, eof=until_end) == exchange(loop, [data], eof=until_end)


@settings(deadline=None)
@given(answers(), st.integers(0, 10_000))
def test_an_answer_cut_short_is_an_error_unless_only_its_end_could_tell(
    loop: asyncio.AbstractEventLoop, answer: tuple[bytes, int, bytes, bool], cut: int
) -> None:
    data, _, _, until_end = answer
    part = data[: cut % len(data)]
    outcome = exchange(loop, [part], eof=True)
    headless = b"\r\n\r\n" not in part.lstrip(b"\r\n")
    assert outcome.error or (until_end and not headless)
    assert not outcome.kept


@settings(deadline=None)
@given(st.binary(max_size=300), cuts)
def test_garbage_ends_in_an_answer_or_an_error(
    loop: asyncio.AbstractEventLoop, data: bytes, cuts: list[int]
) -> None:
    exchange(loop, sliced(data, cuts), eof=True)


@settings(deadline=None)
@given(answers(), st.integers(0, 10_000), st.binary(min_size=1, max_size=4), cuts)
def test_a_damaged_answer_ends_in_an_answer_or_an_error(
    loop: asyncio.AbstractEventLoop,
    answer: tuple[bytes, int, bytes, bool],
    where: int,
    what: bytes,
    cuts: list[int],
) -> None:
    data = answer[0]
    at = where % len(data)
    exchange(loop, sliced(data[:at] + what + data[at + len(what) :], cuts), eof=True)


class Listener:
    """What the parser itself makes of the headers."""

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value.strip(b" \t")))


heads = st.lists(
    st.one_of(
        st.tuples(names, values).map(lambda pair: b"%b: %b" % pair),
        st.binary(min_size=1, max_size=12).filter(lambda line: b"\r\n" not in line),
        st.sampled_from([b"a: \t b \t", b"a:", b"a : b", b" a: b", b"a: b\rc", b"a: b\nc: d"]),
    ),
    max_size=5,
)


@settings(deadline=None)
@given(heads)
def test_headers_are_read_as_the_parser_reads_them(
    loop: asyncio.AbstractEventLoop, lines: list[bytes]
) -> None:
    """We cut the head ourselves; if the parser saw other lines in it, that would be a hole."""
    head = b"".join(line + b"\r\n" for line in [b"HTTP/1.1 204 Fine", *lines])
    outcome = exchange(loop, [head + b"\r\n"], eof=True)
    if outcome.error:
        return
    listener = Listener()
    HttpResponseParser(listener).feed_data(head + b"\r\n")
    assert list(outcome.headers) == listener.headers


@pytest.mark.parametrize("more", [b"x", b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"])
def test_an_idle_connection_that_is_spoken_to_is_closed(
    loop: asyncio.AbstractEventLoop, more: bytes
) -> None:
    line = Line()
    connection = Connection(Nursery(), ORIGIN)
    connection.connection_made(line)
    connection.data_received(more)
    assert line.closed


def test_a_dead_connection_takes_no_request(loop: asyncio.AbstractEventLoop) -> None:
    line = Line()
    connection = Connection(Nursery(), ORIGIN)
    assert not connection.begin(ask(ORIGIN), LIMITS, loop.create_future())
    connection.connection_made(line)
    line.abort()
    assert not connection.begin(ask(ORIGIN), LIMITS, loop.create_future())


def test_a_connection_that_ends_while_paused_goes_home_reading(
    loop: asyncio.AbstractEventLoop,
) -> None:
    """TLS may hand over bytes it had already read; a deaf idle connection would miss its end."""
    home, line = Nursery(), Line()
    connection = Connection(home, ORIGIN)
    connection.connection_made(line)
    waiter: asyncio.Future[Answer] = loop.create_future()
    assert connection.begin(ask(ORIGIN), LIMITS, waiter)
    connection.data_received(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\na")
    waiter.result().pause()
    assert not line.reading
    connection.data_received(b"b")
    assert line.reading
    assert home.free_again == 1
    assert at_once(waiter.result().read()) == b"ab"


@pytest.mark.parametrize(
    ("said", "closed", "encrypted", "quiet"),
    [
        (b"", False, False, True),
        (b"x", False, False, False),
        (b"", True, False, False),
        (b"", False, True, True),
        (b"session ticket", False, True, True),
        (b"session ticket", True, True, False),
    ],
)
def test_a_look_at_the_socket_tells_whether_the_peer_spoke_or_left(
    loop: asyncio.AbstractEventLoop, said: bytes, closed: bool, encrypted: bool, quiet: bool
) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        connection = Connection(Nursery(), ORIGIN)
        connection.connection_made(Line(ours, encrypted=encrypted))
        theirs.sendall(said)
        if closed:
            theirs.close()
        assert connection.is_quiet() is quiet
