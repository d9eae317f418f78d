"""A head that is known again means what it meant to the parser; nothing else is taken for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from understudy.gateway.connection import Connection
from understudy.gateway.heads import MOST, Heads
from understudy.gateway.http import Head, Reply, Request, ServerLimits
from understudy.gateway.unfit import Unfit
from understudy.providers.outbox import Outbox


class Line(asyncio.Transport):
    """A client that is written to."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.told = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.told += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def write_eof(self) -> None:
        self.closed = True

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


@dataclass
class Door:
    """A server that notes what it is asked, and says nothing else."""

    loop: asyncio.AbstractEventLoop
    heads: Heads = field(default_factory=Heads)
    limits: ServerLimits = field(default_factory=lambda: ServerLimits(body=64))
    asked: list[tuple[object, ...]] = field(default_factory=list)
    stopping = False
    last_visits = False
    now = 0.0

    def __post_init__(self) -> None:
        self.outbox = Outbox(self.loop)

    def application(self, request: Request, reply: Reply) -> None:
        head = request.head
        self.asked.append(
            (request.method, request.path, head.query, dict(head.headers), request.body)
        )
        reply.send(200, b"", b"ok")
        reply.over()

    def refusal(self, path: str, problem: Unfit) -> bytes:
        return f"{path} {problem.status} {problem.why}".encode()

    def opened(self, connection: Connection) -> None: ...

    def closed(self, connection: Connection) -> None: ...


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def outcome(door: Door, pieces: list[bytes]) -> tuple[object, ...]:
    """What one connection makes of these pieces."""
    door.asked = []
    line, connection = Line(), Connection(door)
    connection.connection_made(line)
    for piece in pieces:
        if not line.closed:
            connection.data_received(piece)
    connection.flush()
    return door.asked, line.told, line.closed


def raw(*lines: str, body: bytes = b"") -> bytes:
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


POST = "POST /v1/chat/completions?x=1 HTTP/1.1"
lines = st.lists(
    st.sampled_from([
        "Host: here",
        "Authorization: Bearer sk-1",
        "X-Strength: 5",
        "X-Length: 3",
        "Connection: close",
        "Connection: upgrade",
        "Upgrade: h2c",
        "Connection: Upgrade, close",
        "Expect: 100-continue",
        "Transfer-Encoding: chunked",
        "Content-Length: 3",
        "content-length: 3",
        "Content-Length: 03",
        "Content-Length: 5",
        "Content-Length:3",
        "Content-Length: 3 ",
        "Content-Length: 3, 3",
        "Content-Length: 65",
        "Content-Length:  3",
    ]),
    max_size=4,
)  # fmt: skip
bodies = st.sampled_from(
    [b"", b"abc", b"abcde", b"a" * 65, b"abc\r\n\r\n", b"3\r\nabc\r\n0\r\n\r\n"]
)
firsts = st.sampled_from([POST, "GET / HTTP/1.0", "POST / HTTP/1.1", "nonsense"])
requests = st.builds(lambda first, more, body: raw(first, *more, body=body), firsts, lines, bodies)
pieces = st.lists(
    st.one_of(
        requests, st.builds(lambda r, n: r[: n % (len(r) + 1)], requests, st.integers(0, 300))
    ),
    min_size=1,
    max_size=3,
)
KNOWN = raw(POST, "Host: here", "Content-Length: 3", body=b"abc")
CUT = raw(POST, "Host: here", "Content-Length: 68")[:-4] + b"!"  # a head without an end


@given(st.lists(pieces, min_size=1, max_size=3))
@example([[KNOWN], [CUT]])
@example([[KNOWN], [KNOWN[:-2]], [KNOWN]])
def test_whoever_was_there_before_a_connection_is_served_as_if_it_were_the_first(
    loop: asyncio.AbstractEventLoop, histories: list[list[bytes]]
) -> None:
    door = Door(loop)
    for history in histories:
        alone = outcome(Door(loop), [piece for piece in history if piece])
        again = outcome(door, [piece for piece in history if piece])
        assert again == alone


def test_a_head_is_known_again_whatever_the_length_of_its_body(
    loop: asyncio.AbstractEventLoop,
) -> None:
    door = Door(loop)
    outcome(door, [KNOWN])
    found = door.heads.find(raw(POST, "Host: here", "Content-Length: 10", body=b"0123456789"))
    assert found is not None
    head, body = found
    assert (head.path, head.query, body) == ("/v1/chat/completions", "x=1", b"0123456789")
    assert dict(head.headers) == {b"host": b"here"}


@pytest.mark.parametrize(
    "other",
    [
        raw(POST, "Host: there", "Content-Length: 3", body=b"abc"),
        raw(POST, "Host: here", "Content-Length: 4", body=b"abc"),
        raw(POST, "Host: here", "Content-Length: 2", body=b"abc"),
        raw(POST, "Host: here", "Content-Length: -3", body=b"abc"),
        raw(POST, "Host: here", "Content-Length: 0000000003", body=b"abc"),
        raw(POST, "Host: here", "Content-Length: 3, 3", body=b"abc"),
        raw(POST, "Host: here", "Content-Length: ", body=b""),
        KNOWN + KNOWN,
        CUT,
        b"",
    ],
)
def test_what_differs_in_more_than_its_length_is_left_to_the_parser(
    loop: asyncio.AbstractEventLoop, other: bytes
) -> None:
    door = Door(loop)
    outcome(door, [KNOWN])
    assert door.heads.find(KNOWN) is not None
    assert door.heads.find(other) is None


def test_clients_that_vary_their_heads_without_end_do_not_fill_the_memory() -> None:
    heads = Heads()
    for number in range(3 * MOST):
        data = raw(POST, f"X-Id: {number}", "Content-Length: 3", body=b"abc")
        heads.keep(data, Head("POST", b"/"), b"abc")
    assert len(heads._known) <= MOST
    assert heads.find(data) is not None
