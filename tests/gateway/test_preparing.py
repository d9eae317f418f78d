"""Requests that take long to make: large ones, and pictures that have to be changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from threading import Event

import pytest

from tests.gateway.desk import (
    Heard,
    Line,
    Plays,
    Served,
    Told,
    Upstream,
    aliases,
    always,
    answer,
    provider,
    serving,
)
from tests.rig import run, until
from understudy.core.errors import ProviderError
from understudy.core.faults import Fault
from understudy.dialects.anthropic import Anthropic
from understudy.dialects.json_access import Json
from understudy.messages.request import Request
from understudy.providers.http import HttpProvider

CHAT = "/v1/chat/completions"
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PICTURE: Told = {
    "role": "user",
    "content": [
        {"type": "text", "text": "what is this"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
    ],
}
LONG: Told = {"role": "user", "content": "word " * 100_000}
ANSWER = (
    b'{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"a dot"}],'
    b'"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}'
)


@dataclass
class Slow(Anthropic):
    """Takes as long to write a request as it is told to; or fails at it."""

    begun: Event = field(default_factory=Event)
    go_on: Event = field(default_factory=Event)
    error: Exception | None = None

    def write_request(self, request: Request, model: str, stream: bool) -> dict[str, Json]:
        self.begun.set()
        assert self.go_on.wait(10)
        if self.error is not None:
            raise self.error
        return super().write_request(request, model, stream)


@dataclass
class Scene:
    served: Served
    slow: Slow
    claude: Upstream
    second: Upstream

    async def ask(self, message: Told, **headers: str) -> Heard:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        body = {"model": "chat", "messages": [message]}
        return await self.served.ask("POST", CHAT, body, named)

    def held_against(self) -> dict[str, object]:
        return dict(self.served.runtime.gateway.house.registry.health.snapshot())


@asynccontextmanager
async def scene(error: Exception | None = None) -> AsyncIterator[Scene]:
    """A target that writes slowly, and one behind it to which bytes are relayed."""
    async with Upstream(always(ANSWER)) as claude, Upstream(lambda _: Plays(200, answer())) as two:
        text = (
            provider("claude", claude.url, "anthropic")
            + provider("second", two.url)
            + aliases(chat="claude/m, second/m")
        )
        async with serving(text) as served, asyncio.timeout(30):
            found = served.runtime.gateway.house.registry.providers["claude"]
            assert isinstance(found, HttpProvider)
            slow = Slow(error=error)
            found.dialect = slow
            try:
                yield Scene(served, slow, claude, two)
            finally:
                slow.go_on.set()


@pytest.mark.parametrize("message", [PICTURE, LONG], ids=["picture", "long"])
def test_while_a_request_is_being_made_others_are_answered(message: Told) -> None:
    async def work() -> None:
        async with scene() as on:
            asked = asyncio.ensure_future(on.ask(message))
            await until(on.slow.begun.is_set)
            for _ in range(3):
                assert (await on.served.ask("GET", "/healthz")).status == 200
            assert not asked.done()
            on.slow.go_on.set()
            heard = await asked
            assert heard.headers["x-understudy-attempts"] == "claude/m=ok"
            assert heard.json["choices"][0]["message"]["content"] == "a dot"  # type: ignore[index]

    run(work())


def test_a_client_that_leaves_meanwhile_costs_no_call_and_blames_nobody() -> None:
    async def work() -> None:
        async with scene() as on:
            line = await Line.to(on.served.address)
            line.send("POST", CHAT, {"model": "chat", "messages": [PICTURE]})
            await until(on.slow.begun.is_set)
            line.close()
            await until(lambda: on.served.events("request"))
            on.slow.go_on.set()
            assert (await on.served.ask("GET", "/healthz")).status == 200
            [told] = on.served.events("request")
            assert (told["status"], told["outcome"]) == (499, "left")
            assert (on.claude.asked, on.second.asked, on.held_against()) == ([], [], {})

    run(work())


def test_when_the_requests_own_time_is_up_meanwhile_no_target_is_to_blame() -> None:
    async def work() -> None:
        async with scene() as on:
            heard = await on.ask(PICTURE, x_understudy_timeout="0.2")
            assert heard.headers["x-understudy-attempts"].startswith(
                "claude/m=stall_pre_first_byte, second/m="
            )
            assert on.claude.asked == []
            assert on.held_against() == {}

    run(work())


def test_what_cannot_be_made_for_one_target_goes_to_the_next() -> None:
    async def work() -> None:
        wrong = ProviderError(Fault.UNSUPPORTED, message="no such picture", billing="not_sent")
        async with scene(wrong) as on:
            on.slow.go_on.set()
            heard = await on.ask(PICTURE)
            told = "claude/m=unsupported, second/m=ok"
            assert (heard.status, heard.headers["x-understudy-attempts"]) == (200, told)
            assert (len(on.claude.asked), len(on.second.asked)) == (0, 1)

    run(work())


def test_large_bodies_of_the_same_dialect_still_arrive_as_they_were_sent() -> None:
    async def work() -> None:
        async with scene(ProviderError(Fault.UNSUPPORTED, message="no")) as on:
            on.slow.go_on.set()
            assert (await on.ask(LONG)).status == 200
            [asked] = on.second.asked
            assert asked.json == {"model": "m", "messages": [LONG]}

    run(work())


def test_a_request_changed_for_its_target_has_its_answer_as_it_came() -> None:
    """Signatures of thinking, above all: they are in no neutral type."""
    events = (
        b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","content":[],'
        b'"role":"assistant","usage":{"input_tokens":1,"output_tokens":1}},"more":1}\n\n',
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":'
        b'{"type":"signature_delta","signature":"bound"}}\n\n',
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":'
        b'{"type":"text_delta","text":"hi"},"more":2}\n\n',
        b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    )
    picture = {"type": "image", "source": {
        "type": "base64", "media_type": "image/png", "data": PIXEL,
    }}  # fmt: skip

    async def work() -> None:
        async with Upstream(always(events)) as up:
            text = provider("p", up.url, "anthropic")
            text += '[providers.p.models.m]\nimage_types = ["image/jpeg"]\n' + aliases(chat="p/m")
            async with serving(text) as served:
                body = {"model": "chat", "max_tokens": 9, "stream": True, "messages": [
                    {"role": "user", "content": [picture]},
                ]}  # fmt: skip
                heard = await served.ask("POST", "/v1/messages", body)
                assert b"image/jpeg" in up.asked[0].body
                assert heard.body == b"".join(events)

    run(work())
