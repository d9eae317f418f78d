"""A client that waits for a stream may be told, in comments, that somebody is still there."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.gateway.desk import (
    HELLO,
    HELLO_STREAM,
    Line,
    Plays,
    Upstream,
    aliases,
    always,
    ask,
    fronted,
    provider,
    says,
    serving,
)
from tests.rig import run
from tests.served import house, listening
from understudy.testing import Fake

STREAM = {**HELLO, "model": "chat", "stream": True}
OFTEN = "[gateway]\nkeepalive = 0.01\n"
COMMENT = b": still waiting\n\n"


async def comments(line: Line) -> None:
    """Two of them, so that it is not just the first."""
    async with asyncio.timeout(30):
        assert [await line.piece() for _ in range(2)] == [COMMENT, COMMENT]


def test_comments_come_until_the_first_content_and_not_after_it() -> None:
    async def work() -> None:
        content = asyncio.Event()
        async with fronted(always((content, *HELLO_STREAM)), OFTEN) as (served, _):
            line = await Line.to(served.address)
            line.send("POST", "/v1/chat/completions", STREAM)
            status, headers = await line.head()
            await comments(line)
            content.set()
            rest = (await line.rest(headers)).replace(COMMENT, b"")
            assert (status, rest) == (200, b"".join(HELLO_STREAM))
            assert served.events("request")[0]["outcome"] == "ok"
            line.close()

    run(work())


def test_a_chain_still_fails_over_behind_the_comments() -> None:
    async def work() -> None:
        opened = asyncio.Event()
        async with (
            Upstream(always((opened,))) as head,
            Upstream(always(HELLO_STREAM)) as tail,
        ):
            text = OFTEN + provider("a", head.url) + provider("b", tail.url)
            async with serving(text + aliases(chat="a/m, b/m")) as served:
                line = await Line.to(served.address)
                line.send("POST", "/v1/chat/completions", STREAM)
                status, headers = await line.head()
                await comments(line)
                opened.set()
                rest = (await line.rest(headers)).replace(COMMENT, b"")
                assert (status, rest) == (200, b"".join(HELLO_STREAM))
                line.close()

    run(work())


def test_when_all_fail_after_a_comment_the_stream_says_so_and_has_no_end_mark() -> None:
    async def work() -> None:
        async def late(_: object) -> Plays:
            await opened.wait()
            return says(503, "closed for today")

        opened = asyncio.Event()
        async with fronted(late, OFTEN) as (served, _):
            line = await Line.to(served.address)
            line.send("POST", "/v1/chat/completions", STREAM)
            status, headers = await line.head()
            await comments(line)
            opened.set()
            rest = (await line.rest(headers)).replace(COMMENT, b"")
            told = json.loads(rest.removeprefix(b"data: "))
            assert status == 200
            assert "closed for today" in told["error"]["message"]
            assert b"[DONE]" not in rest
            (line_told,) = served.events("request")
            assert (line_told["status"], line_told["outcome"]) == (200, "failed")
            line.close()

    run(work())


def test_without_the_option_an_error_before_content_keeps_its_status() -> None:
    async def work() -> None:
        async with fronted(lambda _: says(503)) as (served, _):
            heard = await served.ask("POST", "/v1/chat/completions", STREAM)
            assert heard.status == 503

    run(work())


@pytest.mark.parametrize(
    "path",
    [
        "/api/chat",
        "/v1beta/models/chat:streamGenerateContent",
        "/v1beta/models/chat:streamGenerateContent?alt=sse",
    ],
)
def test_where_a_stream_has_no_room_for_comments_there_are_none(path: str) -> None:
    async def work() -> None:
        content = asyncio.Event()
        async with fronted(always((content, *HELLO_STREAM)), OFTEN) as (served, _):
            asked = {"contents": [{"parts": [{"text": "hi"}]}]} if "beta" in path else STREAM
            asyncio.get_running_loop().call_later(0.05, content.set)  # five comments later
            heard = await served.ask("POST", path, asked)
            assert heard.status == 200
            assert COMMENT not in heard.body

    run(work())


@pytest.mark.parametrize("name", ["a\r\nx-evil: 1", "a\nb", "a\u2028b", "ä", "a\x00"])
def test_no_name_of_a_model_can_forge_a_header(name: str) -> None:
    async def work() -> None:
        async with fronted(always()) as (served, _):
            heard = await served.chat(f"p/{name}")
            assert heard.status == 200
            assert "x-evil" not in heard.headers
            assert heard.headers["x-understudy-target"].isascii()
            assert heard.headers["x-understudy-target"].isprintable()

    run(work())


@pytest.mark.parametrize("stream", [False, True])
def test_answers_we_write_ourselves_are_dated(stream: bool) -> None:
    async def work() -> None:
        async with listening(house(Fake("p"))) as address:
            body = {**HELLO, "model": "p/m", "stream": stream}
            heard = await ask(address, "POST", "/v1/chat/completions", body)
            told = json.loads(heard.body.removeprefix(b"data: ").partition(b"\n\n")[0])
            assert told["created"] > 1_700_000_000

    run(work())
