"""A relayed stream that is whole stays so, whatever becomes of its connection; and only then."""

from __future__ import annotations

import asyncio

import pytest

from tests.gateway.desk import (
    DONE,
    HELLO,
    Heard,
    Served,
    Upstream,
    aliases,
    always,
    chunk,
    provider,
    serving,
)
from tests.rig import run
from understudy import HttpProvider
from understudy.dialects.base import Truncated, WireError
from understudy.dialects.table import dialect_named
from understudy.gateway.flows import Alike
from understudy.gateway.scan import MARKS, Scan
from understudy.messages.response import Response, TextDelta, Usage

DOORS = {
    "openai": "/v1/chat/completions",
    "responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/chat:streamGenerateContent?alt=sse",
    "ollama": "/api/chat",
}
ASKED = {
    "responses": {"input": "hi"},
    "anthropic": {**HELLO, "max_tokens": 9},
    "gemini": {"contents": [{"parts": [{"text": "hi"}]}]},
}


def whole(dialect: str) -> tuple[bytes, ...]:
    """A good stream as this dialect writes it, in three pieces."""
    writer = dialect_named(dialect).writer("m")
    answer = Response("Hello there", finish_reason="stop", id="r-1", usage=Usage(7, 5))
    return tuple(map(writer.write_event, [TextDelta("Hello "), TextDelta("there"), answer]))


async def heard(served: Served, dialect: str) -> Heard:
    body = {"model": "chat", "stream": True, **ASKED.get(dialect, HELLO)}
    return await served.ask("POST", DOORS[dialect], body)


async def streamed(
    dialect: str, pieces: tuple[bytes | asyncio.Event | None, ...], upstream: str = ""
) -> tuple[bytes, str, bool]:
    """What the client got, the outcome as logged, and whether the target is blamed."""
    async with Upstream(always(pieces)) as up:
        text = provider("p", up.url, upstream or dialect, idle_timeout=0.05)
        async with serving(text + aliases(chat="p/m")) as served:
            body = (await heard(served, dialect)).body
            (line,) = served.events("request")
            health = served.runtime.gateway.house.registry.health
            return body, str(line["outcome"]), bool(health.snapshot())


@pytest.mark.parametrize("dialect", DOORS)
@pytest.mark.parametrize("end", ["breaks", "stays open"])
def test_what_follows_the_end_mark_spoils_nothing(dialect: str, end: str) -> None:
    async def work() -> None:
        last = None if end == "breaks" else asyncio.Event()
        pieces = whole(dialect)
        assert await streamed(dialect, (*pieces, last)) == (b"".join(pieces), "ok", False)

    run(work())


@pytest.mark.parametrize("end", ["breaks", "stays open"])
def test_nor_does_it_where_a_finish_is_all_there_is_and_the_stream_is_translated(end: str) -> None:
    async def work() -> None:
        last = None if end == "breaks" else asyncio.Event()
        told, outcome, blamed = await streamed("openai", (*whole("gemini"), last), "gemini")
        assert (outcome, blamed) == ("ok", False)
        assert told.endswith(DONE)

    run(work())


NULL = b'data: {"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":null}]}\n\n'


@pytest.mark.parametrize(
    ("dialect", "pieces"),
    [
        ("gemini", (NULL, NULL)),
        ("openai", (chunk("hi", ""), chunk("there", ""))),
        ("openai", (chunk("hi"), chunk("", "stop"), None)),
        ("anthropic", whole("anthropic")[:2]),
    ],
    ids=["reason null", "reason empty", "finish but no end mark, broken", "no end"],
)
def test_what_only_looks_like_an_end_is_none(
    dialect: str, pieces: tuple[bytes | None, ...]
) -> None:
    async def work() -> None:
        told, outcome, blamed = await streamed(dialect, pieces)
        assert (outcome, blamed) == ("broken", True)
        assert told.startswith(b"".join(piece for piece in pieces if piece))
        assert b"error" in told

    run(work())


RESPONSES = whole("responses")
HALF = {
    "openai": (chunk("hi"), chunk("", "stop"), b'data: {"choices":[],"usa'),
    "gemini": (*whole("gemini"), b'data: {"usageMeta'),
}
TOLD = {"openai": b'data: {"error":'}
UNSEEN = {
    "openai": b'data: {"choices":[{"index":0,"delta":{},"error":{"message":"no memory"}}]}\n\n',
    "anthropic": b'data: {"error":{"message":"no memory"}}\n\n',
    "responses": b'data: {"type":"response.error","message":"no memory"}\n\n',
}


@pytest.mark.parametrize("dialect", ["anthropic", "responses", "gemini"])
def test_an_end_written_with_blanks_is_one(dialect: str) -> None:
    async def work() -> None:
        pieces = tuple(piece.replace(b'":', b'" : ') for piece in whole(dialect))
        assert await streamed(dialect, pieces) == (b"".join(pieces), "ok", False)

    run(work())


def test_an_end_under_its_older_name_is_one() -> None:
    async def work() -> None:
        named = tuple(
            piece.replace(b"response.completed", b"response.done") for piece in RESPONSES
        )
        assert await streamed("responses", named) == (b"".join(named), "ok", False)

    run(work())


@pytest.mark.parametrize("dialect", HALF)
def test_half_an_event_behind_a_finish_is_no_end_and_does_not_go_through(dialect: str) -> None:
    async def work() -> None:
        told, outcome, blamed = await streamed(dialect, HALF[dialect])
        assert (outcome, blamed) == ("broken", True)
        assert not told.count(HALF[dialect][-1])
        assert b'"error"' in told

    run(work())


@pytest.mark.parametrize("dialect", UNSEEN)
def test_an_error_that_its_client_would_not_see_is_told_as_its_dialect_tells_one(
    dialect: str,
) -> None:
    async def work() -> None:
        *said, end = whole(dialect)
        told, outcome, blamed = await streamed(dialect, (*said, UNSEEN[dialect], end))
        assert (outcome, blamed) == ("broken", True)
        assert told.startswith(b"".join(said))
        assert told.removeprefix(b"".join(said)).startswith(TOLD.get(dialect, b"event: error\n"))
        assert end not in told

    run(work())


def test_an_error_that_googles_sdks_see_only_without_a_label_is_told_so_too() -> None:
    async def work() -> None:
        error = b'{"error":{"code":503,"message":"no memory"}}'
        event = b"data: %b\r\n\r\n" % error
        said = whole("gemini")[:-1]
        told, outcome, blamed = await streamed("gemini", (*said, event))
        assert (outcome, blamed) == ("broken", True)
        assert told == b"".join(said) + event + error + b"\r\n"

    run(work())


@pytest.mark.parametrize("dialect", ["openai", "gemini"])
@pytest.mark.parametrize("end", [b"\n\n", b"\n", b""])
def test_an_error_written_as_it_was_is_told_in_its_own_words(dialect: str, end: bytes) -> None:
    async def work() -> None:
        bare = b'{\n  "error": {\n    "code": 429,\n    "message": "no memory"\n  }\n}'
        told, outcome, blamed = await streamed(dialect, (*whole(dialect)[:2], bare + end))
        assert (outcome, blamed) == ("broken", True)
        assert b"no memory" in told.removeprefix(b"".join(whole(dialect)[:2]))
        assert b"end mark" not in told

    run(work())


def test_a_mark_deep_within_an_event_ends_nothing() -> None:
    scan = Scan("anthropic")
    block = b'{"type":"tool_use","id":"t","name":"n","input":{"type":"message_stop"}}'
    scan.feed(b'data: {"type":"content_block_start","index":0,"content_block":%b}\n\n' % block)
    assert not scan.over


@pytest.mark.parametrize("dialect", MARKS)
def test_where_a_stream_breaks_does_not_matter_its_client_can_read_our_error(dialect: str) -> None:
    first, *others = whole(dialect)
    rest = b"".join(others)
    finish = {"openai": b'"stop"', "gemini": b"finishReason"}.get(dialect)
    for cut in range(rest.index(finish) if finish else rest.rstrip().rfind(b"\n") + 1):
        flow = Alike(HttpProvider("p", dialect=dialect, base_url="http://127.0.0.1:9"), "m")
        assert flow.hold(first)
        told = flow.first + flow.passed(rest[: cut // 2]) + flow.passed(rest[cut // 2 : cut])
        assert not flow.whole
        with pytest.raises(Truncated):
            flow.over()
        assert rest.startswith(told.removeprefix(first))
        reader = dialect_named(dialect).reader()
        reader.feed(told + flow.parting(504, "it broke", "stall_mid_stream"))
        assert isinstance(reader.failure, WireError)
        assert "it broke" in str(reader.failure)


def test_empty_pieces_are_silence() -> None:
    scan = Scan("openai")
    scan.feed(chunk("hi"))
    assert scan.alive
    scan.feed(b'data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":null}]}\n\n')
    assert not scan.alive
