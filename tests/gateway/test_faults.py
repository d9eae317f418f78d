"""Upstreams that fail on the wire, row by row as the peers were measured; plain and streaming.

A faulty primary and a healthy backup, both on real sockets, in the OpenAI and the Anthropic
dialect. What must come out: the backup's whole answer where nothing had been sent yet, else the
partial text, the dialect's error event and no invented end (contract R1, R2, R5, G8).
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from tests.rig import run
from tests.served import house, listening, provider
from tests.transport.rig import Script, Server, close, hang, request, reset
from understudy import AVAILABILITY
from understudy.providers.base import Patience
from understudy.providers.http import Settings
from understudy.providers.pool import Pool
from understudy.providers.transport import Limits, Origin, Outgoing, render_head

QUICK = Settings(
    patience=Patience(first_byte=0.3, idle=0.3, response=0.3),
    limits=Limits(connect=0.3, max_reply=1 << 20),
)
ONCE = replace(AVAILABILITY, transient_retries=0)


@dataclass(frozen=True)
class Wire:
    """One dialect's bytes."""

    name: str
    path: str
    plain: bytes  # a whole answer, text BACKUP
    events: tuple[bytes, ...]  # a stream: envelope, pieces, end
    over: bytes  # its end mark
    error: bytes  # an error event
    empty: bytes


def _data(*rows: object) -> tuple[bytes, ...]:
    return tuple(b"data: " + json.dumps(row).encode() + b"\n\n" for row in rows)


def _events(*rows: dict[str, object]) -> tuple[bytes, ...]:
    return tuple(f"event: {row['type']}\ndata: {json.dumps(row)}\n\n".encode() for row in rows)


def _chunk(delta: dict[str, str], finish: str | None = None) -> dict[str, object]:
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _answer(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps(
        {"id": "c", "choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    ).encode()


CHAT = Wire(
    "openai",
    "/v1/chat/completions",
    _answer("BACKUP"),
    (
        *_data(
            _chunk({"role": "assistant", "content": ""}),
            _chunk({"content": "BAC"}),
            _chunk({"content": "KUP"}),
            _chunk({}, "stop"),
        ),
        b"data: [DONE]\n\n",
    ),
    b"data: [DONE]",
    b'data: {"error":{"message":"overloaded","type":"server_error","code":503}}\n\n',
    b'{"id":"c","choices":[]}',
)
MESSAGE = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "x",
    "content": [],
    "stop_reason": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
MESSAGES = Wire(
    "anthropic",
    "/v1/messages",
    json.dumps(
        MESSAGE | {"content": [{"type": "text", "text": "BACKUP"}], "stop_reason": "end_turn"}
    ).encode(),
    _events(
        {"type": "message_start", "message": MESSAGE},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "BAC"},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "KUP"},
        },
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 2},
        },
        {"type": "message_stop"},
    ),
    b"message_stop",
    b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n',
    json.dumps(MESSAGE).encode(),
)
WIRES = [CHAT, MESSAGES]

SSE = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def whole(body: bytes, status: int = 200, kind: str = "application/json", **headers: str) -> bytes:
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = (
        f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\n{more}content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def first_events(wire: Wire) -> bytes:
    """The stream up to and with its first content."""
    pieces = wire.events[: 2 if wire.name == "openai" else 3]
    return b"".join(chunk(piece) for piece in pieces)


def nothing_said(wire: Wire) -> bytes:
    """The same, but its text is empty."""
    pieces = wire.events[: 2 if wire.name == "openai" else 3]
    return b"".join(chunk(piece.replace(b"BAC", b"")) for piece in pieces)


HTML = b"<html><body>Bad gateway</body></html>"

# Faults before the first content: the backup answers, whole, and the client sees nothing else.
BEFORE: dict[str, Callable[[Wire, bool], Script]] = {
    "reset before headers": lambda w, s: [request, reset],
    "closed before headers": lambda w, s: [request, close],
    "reset inside headers": lambda w, s: [request, b"HTTP/1.1 200 OK\r\ncontent-ty", reset],
    "silence after accept": lambda w, s: [request, hang],
    "silence after headers": lambda w, s: [request, SSE if s else whole(w.plain)[:60], hang],
    "reset inside the body": lambda w, s: [request, SSE if s else whole(w.plain)[:-9], reset],
    "cut body": lambda w, s: [request, SSE + chunk(b": hi\n\n") if s else whole(w.plain)[:-9], close],
    "empty 200": lambda w, s: [request, whole(b"", kind="text/event-stream" if s else "application/json")],
    "stream without events": lambda w, s: [request, SSE + END if s else whole(b" ")],
    "comments only": lambda w, s: [request, SSE + chunk(b": ping\n\n") * 9, hang] if s else [request, hang],
    "no choices": lambda w, s: [request, SSE + chunk(b"data: " + w.empty + b"\n\n") + END if s else whole(w.empty)],
    "malformed JSON": lambda w, s: [request, SSE + chunk(b'data: {"cho\n\n') + END if s else whole(w.plain[:-7])],
    "HTML with 200": lambda w, s: [request, whole(HTML, kind="text/html")],
    "error as first event": lambda w, s: [request, SSE + chunk(w.error) + END if s else whole(w.error[w.error.index(b"{"):])],
    "error after the envelope": lambda w, s: [request, SSE + chunk(w.events[0]) + chunk(w.error) + END if s else whole(b"busy", 503)],
    "error after empty text": lambda w, s: [request, SSE + nothing_said(w) + chunk(w.error) + END if s else whole(b"busy", 503)],
    "no event in front": lambda w, s: [request, SSE + b"".join(map(chunk, (b"data: null\n\n", *w.events))) + END if s else whole(b"null")],
    "500": lambda w, s: [request, whole(b'{"error":{"message":"oops"}}', 500)],
    "503 page": lambda w, s: [request, whole(HTML, 503, "text/html")],
    "529": lambda w, s: [request, whole(b'{"type":"error","error":{"type":"overloaded_error"}}', 529)],
    "429 with a delay": lambda w, s: [request, whole(b'{"error":{"message":"slow down"}}', 429, retry_after="3")],
    "401": lambda w, s: [request, whole(b'{"error":{"message":"bad key k-0123456789"}}', 401)],
    "404 model": lambda w, s: [request, whole(b'{"error":{"message":"The model `m` does not exist","code":"model_not_found"}}', 404)],
    "402": lambda w, s: [request, whole(b'{"error":{"message":"Insufficient balance"}}', 402)],
    "too large a body": lambda w, s: [request, whole(b" " * (2 << 20) + w.plain)],
    "gzip bomb": lambda w, s: [request, whole(gzip.compress(b" " * (8 << 20)), content_encoding="gzip")],
    "endless line": lambda w, s: [request, SSE + chunk(b"data: " + b"x" * 65536) * 40],
    "wrong length": lambda w, s: [request, b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n" + w.plain, close],
    "not HTTP": lambda w, s: [request, b"SSH-2.0-OpenSSH_9.2\r\n", close],
}  # fmt: skip

# Faults after it: the text so far, an error event, and no end mark that the upstream did not send.
AFTER: dict[str, Callable[[Wire], Script]] = {
    "reset mid-stream": lambda w: [request, SSE + first_events(w), reset],
    "cut mid-stream": lambda w: [request, SSE + first_events(w), close],
    "polite end without the end mark": lambda w: [request, SSE + first_events(w) + END],
    "silence mid-stream": lambda w: [request, SSE + first_events(w), hang],
    "comments mid-stream": lambda w: [
        request,
        SSE + first_events(w) + chunk(b": x\n\n") * 3,
        hang,
    ],
    "error event mid-stream": lambda w: [request, SSE + first_events(w) + chunk(w.error) + END],
}


@asynccontextmanager
async def staged(wire: Wire, script: Script) -> AsyncIterator[tuple[str, Server, Server]]:
    """A gateway over a faulty primary and a healthy backup of the same dialect."""
    stream = SSE + b"".join(map(chunk, wire.events)) + END
    good = [request, _either(wire, stream)] * 3
    async with Server(script) as bad, Server(good) as fine:
        base = {"openai": "/v1", "anthropic": ""}[wire.name]
        head = provider(wire.name, str(bad.origin), "head", QUICK)
        tail = provider(wire.name, str(fine.origin), "tail", QUICK)
        assert head.base_url.endswith(base)
        async with listening(house(head, tail, policy=ONCE, chat="head/m, tail/m")) as address:
            yield address, bad, fine
        await head.aclose()
        await tail.aclose()


def _either(wire: Wire, stream: bytes):  # type: ignore[no-untyped-def]
    """The backup answers in the form that was asked for."""

    async def step(peer) -> None:  # type: ignore[no-untyped-def]
        wanted = b'"stream":true' in peer.requests[-1].replace(b" ", b"")
        peer.writer.write(stream if wanted else whole(wire.plain))

    return step


async def asked(address: str, wire: Wire, *, stream: bool) -> tuple[int, bytes, str]:
    """Status, body and story, as a client on the wire sees them."""
    origin = Origin.from_url(address)
    body = {"model": "chat", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    if stream:
        body["stream"] = True
    head = render_head("POST", origin, wire.path, {"content-type": "application/json"})
    pool = Pool()
    answer = await pool.send(Outgoing(origin, head, json.dumps(body).encode()), Limits())
    data = await asyncio.wait_for(answer.read(), 20)
    story = answer.header("x-understudy-attempts")
    await pool.aclose()
    return answer.status, data, story


@pytest.mark.parametrize("wire", WIRES, ids=lambda w: w.name)
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("fault", BEFORE)
def test_a_fault_before_content_is_answered_by_the_backup(
    fault: str, stream: bool, wire: Wire
) -> None:
    async def scene() -> tuple[int, bytes, str]:
        async with staged(wire, BEFORE[fault](wire, stream)) as (address, bad, _):
            told = await asked(address, wire, stream=stream)
            assert len(bad.peers) == 1
            return told

    status, body, story = run(scene())
    assert status == 200
    assert body == (b"".join(wire.events) if stream else wire.plain)
    assert story.startswith("head/m=")
    assert story.endswith("tail/m=ok")


@pytest.mark.parametrize("wire", WIRES, ids=lambda w: w.name)
@pytest.mark.parametrize("fault", AFTER)
def test_a_fault_after_content_is_an_error_and_never_an_end(fault: str, wire: Wire) -> None:
    async def scene() -> tuple[bytes, int]:
        async with staged(wire, AFTER[fault](wire)) as (address, _, fine):
            _, body, _ = await asked(address, wire, stream=True)
            return body, len(fine.peers)

    body, backups = run(scene())
    assert backups == 0
    assert b"BAC" in body
    assert b"KUP" not in body
    assert b'"error"' in body
    assert wire.over not in body


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_a_bad_request_is_one_attempt_with_its_own_status_and_words(stream: bool) -> None:
    said = b'{"error":{"message":"max_tokens is too small","type":"invalid_request_error"}}'

    async def scene() -> tuple[int, bytes, int]:
        async with staged(CHAT, [request, whole(said, 400)]) as (address, _, fine):
            status, body, _ = await asked(address, CHAT, stream=stream)
            return status, body, len(fine.peers)

    assert run(scene()) == (400, said, 0)


def test_refused_and_unknown_hosts_are_answered_by_the_backup() -> None:
    async def scene() -> list[str]:
        stories = []
        async with staged(CHAT, [request, hang]) as (_, _, fine):
            for address in ("http://127.0.0.1:1", "http://nobody.invalid"):
                head = provider("openai", address, "head", QUICK)
                tail = provider("openai", str(fine.origin), "tail", QUICK)
                served = house(head, tail, policy=ONCE, chat="head/m, tail/m")
                async with listening(served) as gateway:
                    stories.append((await asked(gateway, CHAT, stream=False))[2])
                await tail.aclose()
        return stories

    assert run(scene()) == ["head/m=transient, tail/m=ok"] * 2


def test_a_malformed_request_blames_nobody_and_names_its_field() -> None:
    """Found out only when it has to be translated, it is still the caller's own mistake."""

    async def scene() -> tuple[int, bytes, dict[str, object]]:
        async with Server([request, hang]) as up:
            head = provider("anthropic", str(up.origin), "head", QUICK)
            served = house(head, policy=ONCE, chat="head/m")
            async with listening(served) as address:
                origin = Origin.from_url(address)
                sent = render_head("POST", origin, CHAT.path, {"content-type": "application/json"})
                pool = Pool()
                body = b'{"model":"chat","messages":"none"}'
                answer = await pool.send(Outgoing(origin, sent, body), Limits())
                told = answer.status, await answer.read()
                await pool.aclose()
            return *told, dict(served.registry.health.snapshot())

    status, body, marks = run(scene())
    assert status == 400
    assert b"$.messages" in body
    assert marks == {}


def test_a_key_in_an_upstreams_last_words_does_not_reach_the_client() -> None:
    error = b'data: {"error":{"message":"key k-0123456789 was revoked","code":401}}\n\n'

    async def scene() -> bytes:
        script = [request, SSE + first_events(CHAT) + chunk(error) + END]
        async with staged(CHAT, script) as (address, _, _):
            return (await asked(address, CHAT, stream=True))[1]

    body = run(scene())
    assert b"was revoked" in body
    assert b"k-0123456789" not in body
