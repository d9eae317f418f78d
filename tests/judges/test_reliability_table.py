"""The rest of the table in which peers were measured under fault, after gateway/test_faults.py.

There: faults on the wire of a connection that stands. Here: connections that never come to stand,
drips and stalls that only a deadline ends, and what a second request makes of the first one's
fate. Every row plain and streaming, in the OpenAI and the Anthropic dialect.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest
import trustme

from tests.clients.rig import closed_port
from tests.gateway.test_faults import (
    CHAT,
    END,
    HTML,
    MESSAGES,
    ONCE,
    QUICK,
    SSE,
    WIRES,
    Wire,
    _either,
    asked,
    chunk,
    first_events,
    whole,
)
from tests.rig import run
from tests.served import house, listening, provider
from tests.transport.rig import Peer, Script, Server, hang, request
from understudy import AVAILABILITY, Policy
from understudy.gateway.house import House
from understudy.providers.base import Patience

wires = pytest.mark.parametrize("wire", WIRES, ids=lambda w: w.name)
ways = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
PATIENT = replace(QUICK, patience=Patience(9, 9, 9))  # but not with connecting
ENDLESS = replace(QUICK, patience=Patience(0, 0, 0))
SOON = 0.6  # seconds for a whole request
LATE = 10.0  # seconds; nothing here may take as long
KEY = b"k-0123456789"


@dataclass
class Stage:
    """A gateway over a head that fails and a tail that does not."""

    wire: Wire
    head: str
    tail: Server
    policy: Policy = ONCE
    settings: object = QUICK
    timeout: float = 600.0
    house: House = field(init=False)
    address: str = ""

    async def ask(self, stream: bool) -> tuple[int, bytes, str]:
        async with asyncio.timeout(LATE):
            return await asked(self.address, self.wire, stream=stream)

    def whole(self, stream: bool) -> bytes:
        """What the tail answers."""
        return b"".join(self.wire.events) if stream else self.wire.plain


@asynccontextmanager
async def staged(wire: Wire, head: str | Script, **more: object) -> AsyncIterator[Stage]:
    """`head` is an address, or what a server there does."""
    good = [request, _either(wire, SSE + b"".join(map(chunk, wire.events)) + END)] * 4
    async with AsyncExitStack() as stack:
        tail = await stack.enter_async_context(Server(good))
        if not isinstance(head, str):
            head = str((await stack.enter_async_context(Server(head))).origin)
        stage = Stage(wire, head, tail, **more)  # type: ignore[arg-type]
        first = provider(wire.name, head, "head", stage.settings)  # type: ignore[arg-type]
        last = provider(wire.name, str(tail.origin), "tail", QUICK)
        for each in (first, last):
            stack.push_async_callback(each.aclose)
        stage.house = house(first, last, policy=stage.policy, chat="head/m, tail/m")
        stage.house.rules = replace(stage.house.rules, timeout=stage.timeout)
        stage.address = await stack.enter_async_context(listening(stage.house))
        yield stage


# -- connections that never come to stand -----------------------------------------------------


@asynccontextmanager
async def nobody() -> AsyncIterator[str]:
    with closed_port() as address:
        yield address


@asynccontextmanager
async def unknown() -> AsyncIterator[str]:
    yield "http://nobody.invalid"


@asynccontextmanager
async def unvouched() -> AsyncIterator[str]:
    """TLS with a certificate of nobody's."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    async with Server([request, hang], tls=context) as server:
        yield str(server.origin)


@asynccontextmanager
async def plain_text() -> AsyncIterator[str]:
    """Plain text where TLS should be."""
    async with Server([b"HTTP/1.1 400 Bad Request\r\n\r\n"]) as server:
        yield f"https://127.0.0.1:{server.origin.port}"


@asynccontextmanager
async def mute() -> AsyncIterator[str]:
    """A handshake that is never answered."""
    async with Server([hang]) as server:
        yield f"https://127.0.0.1:{server.origin.port}"


UNREACHABLE = {
    "refused": nobody,
    "no such host": unknown,
    "bad certificate": unvouched,
    "plain text on TLS": plain_text,
    "handshake stall": mute,
}


@wires
@ways
@pytest.mark.parametrize("why", UNREACHABLE)
def test_a_head_that_cannot_be_reached_is_replaced_by_the_backup(
    why: str, stream: bool, wire: Wire
) -> None:
    async def scene() -> None:
        async with (
            UNREACHABLE[why]() as address,
            staged(wire, address, settings=PATIENT) as stage,
        ):
            status, body, story = await stage.ask(stream)
            assert (status, body) == (200, stage.whole(stream))
            assert story == "head/m=transient, tail/m=ok"

    run(scene())


# -- stalls and drips -------------------------------------------------------------------------


def drip(data: bytes) -> Callable[[Peer], object]:
    """A few bytes at a time, for ever, until the client leaves."""

    async def step(peer: Peer) -> None:
        while True:
            peer.writer.write(data)
            try:
                async with asyncio.timeout(0.02):
                    if not await peer.reader.read(1):
                        return
            except TimeoutError:
                continue

    return step


def half(wire: Wire, stream: bool) -> bytes:
    """An answer that has begun and says nothing yet."""
    return SSE + chunk(wire.events[0]) if stream else whole(wire.plain)[:-9]


SLOW: dict[str, Callable[[Wire, bool], Script]] = {
    "stall inside the body": lambda w, s: [request, half(w, s), hang],
    "drip inside the headers": lambda w, s: [request, b"HTTP/1.1 200 OK\r\nx: ", drip(b"x")],
    "drip inside the body": lambda w, s: [request, half(w, s), drip(chunk(b" ") if s else b" ")],
    "drip of comments": lambda w, s: [request, half(w, s), drip(chunk(b": x\n\n") if s else b"")],
}  # type: ignore[dict-item]


@wires
@ways
@pytest.mark.parametrize("fault", SLOW)
def test_who_says_nothing_in_time_is_replaced_by_the_backup(
    fault: str, stream: bool, wire: Wire
) -> None:
    async def scene() -> None:
        async with staged(wire, SLOW[fault](wire, stream)) as stage:
            status, body, story = await stage.ask(stream)
            assert (status, body) == (200, stage.whole(stream))
            assert story.startswith("head/m=")
            assert story.endswith(", tail/m=ok")

    run(scene())


@wires
@ways
@pytest.mark.parametrize("fault", SLOW)
def test_without_any_timeout_of_its_own_a_head_has_its_share_of_the_request(
    fault: str, stream: bool, wire: Wire
) -> None:
    async def scene() -> None:
        script = SLOW[fault](wire, stream)
        async with staged(wire, script, settings=ENDLESS, timeout=SOON) as stage:
            status, body, story = await stage.ask(stream)
            assert (status, body) == (200, stage.whole(stream))
            assert story.endswith(", tail/m=ok")

    run(scene())


@wires
def test_content_that_drips_for_ever_ends_with_the_request_and_never_as_success(
    wire: Wire,
) -> None:
    piece = wire.events[1 if wire is CHAT else 2]

    async def scene() -> bytes:
        script = [request, SSE + first_events(wire), drip(chunk(piece))]
        async with staged(wire, script, timeout=SOON) as stage:  # type: ignore[arg-type]
            _, body, _ = await stage.ask(stream=True)
            assert not stage.tail.peers
            return body

    body = run(scene())
    assert body.count(b"BAC") > 2
    assert b'"error"' in body
    assert wire.over not in body


# -- broken in the middle ---------------------------------------------------------------------

BROKEN = b'data: {"cho\n\n'


@pytest.mark.parametrize(
    ("asks", "speaks"),
    [
        (CHAT, CHAT),
        (MESSAGES, MESSAGES),
        (CHAT, MESSAGES),
        (MESSAGES, CHAT),
    ],
    ids=["openai", "anthropic", "openai-anthropic", "anthropic-openai"],
)
def test_an_event_that_is_no_json_is_an_error_and_never_passed_on(
    asks: Wire, speaks: Wire
) -> None:
    rest = speaks.events[2 if speaks is CHAT else 3 :]

    async def scene() -> bytes:
        pieces = [chunk(BROKEN), *map(chunk, rest), END]
        script = [request, SSE + first_events(speaks) + b"".join(pieces)]
        async with staged(speaks, script) as stage:
            _, body, _ = await asked(stage.address, asks, stream=True)
            assert not stage.tail.peers
            return body

    body = run(scene())
    assert b"BAC" in body
    assert b"KUP" not in body
    assert b'"error"' in body
    assert asks.over not in body
    assert b'{"cho\n' not in body


# -- answers with a status, and what the next request makes of them ---------------------------


def refusal(status: int, message: str, **headers: str) -> bytes:
    return whole(b'{"error":{"message":"%b"}}' % message.encode(), status, **headers)


BUSY = refusal(503, "busy")


@wires
@ways
def test_two_failures_and_the_third_try_is_the_heads_own_answer(stream: bool, wire: Wire) -> None:
    patient = replace(AVAILABILITY, transient_retries=2)
    own = SSE + b"".join(map(chunk, wire.events)) + END if stream else whole(wire.plain)

    async def scene() -> str:
        script = [request, BUSY, request, BUSY, request, own]
        async with staged(wire, script, policy=patient) as stage:
            stage.house.registry.health.cooldown = replace(
                stage.house.registry.health.cooldown, threshold=3
            )
            status, body, story = await stage.ask(stream)
            assert (status, body) == (200, stage.whole(stream))
            assert not stage.tail.peers
            return story

    assert run(scene()) == "head/m=transient, head/m=transient, head/m=ok"


# What the head answers, how often it is asked, what that is called; and what it is at next.
NEXT = {
    "503": (BUSY, 2, "transient", "skipped"),
    "503 page": (whole(HTML, 503, "text/html"), 2, "transient", "skipped"),
    "429 for 3 s": (refusal(429, "slow", retry_after="3"), 1, "rate_limit", "skipped"),
    "429 for an hour": (refusal(429, "slow", retry_after="3600"), 1, "rate_limit", "skipped"),
    "401": (refusal(401, "bad key"), 1, "auth", "skipped"),
    "402": (refusal(402, "no credit"), 1, "out_of_credits", "skipped"),
    "404": (refusal(404, "model `m` does not exist"), 1, "model_not_found", "model_not_found"),
}
LONGEST = {"429 for 3 s": 3.0, "402": 1800.0}  # seconds of a bench; 300 where nothing else is said


@wires
@ways
@pytest.mark.parametrize("row", NEXT)
def test_the_next_request_knows_what_the_last_one_learned(
    row: str, stream: bool, wire: Wire
) -> None:
    answer, tries, learned, known = NEXT[row]

    async def scene() -> list[str]:
        async with staged(wire, [request, answer] * 2, policy=AVAILABILITY) as stage:
            stories = []
            for _ in range(2):
                status, body, story = await stage.ask(stream)
                assert (status, body) == (200, stage.whole(stream))
                stories.append(story)
            health = stage.house.registry.health
            left = [s.bench.left(health.clock()) for s in health.snapshot().values() if s.bench]
            assert all(seconds <= LONGEST.get(row, 300.0) for seconds in left)
            return stories

    first, second = run(scene())
    assert first == f"head/m={learned}, " * tries + "tail/m=ok"
    assert second == f"head/m={known}, tail/m=ok"


@wires
@ways
def test_a_callers_own_mistake_is_one_attempt_and_no_mark(stream: bool, wire: Wire) -> None:
    said = b'{"type":"error","error":{"type":"invalid_request_error","message":"too small"}}'

    async def scene() -> None:
        async with staged(wire, [request, whole(said, 400)]) as stage:
            assert await stage.ask(stream) == (400, said, "head/m=permanent")
            assert not stage.tail.peers
            assert stage.house.registry.health.snapshot() == {}

    run(scene())


@wires
@ways
def test_a_key_that_a_provider_quotes_is_not_passed_on(stream: bool, wire: Wire) -> None:
    quoting = refusal(401, f"key {KEY.decode()} is not known")

    async def scene() -> tuple[int, bytes]:
        async with staged(wire, [request, quoting]) as stage:
            stage.house.registry.register_alias("chat", "head/m")
            status, body, _ = await stage.ask(stream)
            return status, body

    status, body = run(scene())
    assert status == 503
    assert b"is not known" in body
    assert KEY not in body
