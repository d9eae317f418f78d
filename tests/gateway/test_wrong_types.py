"""What is wrong with a request is the caller's fault, whoever happens to be up (G6, R12)."""

from __future__ import annotations

import json

import pytest

from tests.gateway.desk import (
    HELLO,
    Asked,
    Upstream,
    aliases,
    always,
    answer,
    chunk,
    provider,
    serving,
)
from tests.rig import run
from understudy.dialects.table import dialect_named
from understudy.messages.response import Response

CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
GEMINI = "/v1beta/models/chat:generateContent"
SPOKEN = {CHAT: "openai", MESSAGES: "anthropic", RESPONSES: "responses", GEMINI: "gemini"}
PART = {"parts": [{"text": "hi"}]}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (CHAT, {}, "$.messages"),
        (CHAT, {"messages": 5}, "$.messages"),
        (CHAT, {"messages": "hi"}, "$.messages"),
        (CHAT, {"messages": [5]}, "$.messages[0]"),
        (CHAT, {**HELLO, "temperature": "hot"}, "$.temperature"),
        (CHAT, {**HELLO, "tools": 5}, "$.tools"),
        (CHAT, {**HELLO, "max_tokens": "5"}, "$.max_tokens"),
        (CHAT, {**HELLO, "stream": "yes"}, "$.stream"),
        (MESSAGES, {"messages": "hi", "max_tokens": 9}, "$.messages"),
        (MESSAGES, {**HELLO, "max_tokens": "9"}, "$.max_tokens"),
        (RESPONSES, {"input": 5}, "$.input"),
        (RESPONSES, {"input": [5]}, "$.input[0]"),
        (GEMINI, {}, "$.contents"),
        (GEMINI, {"contents": "hi"}, "$.contents"),
        (GEMINI, {"contents": [PART], "tools": "x"}, "$.tools"),
    ],
)
def test_a_field_of_a_wrong_type_is_named_and_no_target_is_asked(
    path: str, body: dict[str, object], field: str
) -> None:
    async def work() -> None:
        async with Upstream(always(answer())) as up:
            text = provider("p", up.url, SPOKEN[path]) + aliases(chat="p/m")
            async with serving(text) as served:
                named = body if path == GEMINI else {"model": "chat", **body}
                heard = await served.ask("POST", path, named)
                assert heard.status == 400
                message = heard.error["message"]
                assert str(message).startswith(f"{field}: ")
                assert up.asked == []

    run(work())


@pytest.mark.parametrize("path", SPOKEN)
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"not JSON", "not JSON"),
        (b'{"model":"chat","messages":[{"content":"\xff"}],"contents":[{}]}', "not UTF-8"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply"),
    ],
    ids=["no JSON", "no text", "too deep"],
)
def test_a_body_that_cannot_be_read_is_a_400_on_every_surface(
    path: str, body: bytes, said: str
) -> None:
    async def work() -> None:
        async with Upstream(always(answer())) as up:
            text = provider("p", up.url, SPOKEN[path]) + aliases(chat="p/m")
            async with serving(text) as served:
                heard = await served.ask("POST", path, body)
                assert heard.status == 400
                assert said in str(heard.error["message"])
                assert up.asked == []

    run(work())


@pytest.mark.parametrize("path", [*SPOKEN, "/api/chat", "/v1/embeddings"])
def test_a_name_too_long_to_be_kept_is_refused_and_stands_in_no_page(path: str) -> None:
    """Metrics, ledger and log hold names: a few of a megabyte would fill a machine."""
    long = "p/" + "m" * 4100

    async def work() -> None:
        async with Upstream(always(answer())) as up, serving(provider("p", up.url)) as served:
            named = path.replace("/chat:", f"/{long}:") if path == GEMINI else path
            heard = await served.ask("POST", named, {**HELLO, "contents": [PART], "model": long})
            assert heard.status == 400
            assert b"4096" in heard.body
            pages = [
                await served.ask("GET", page) for page in ("/metrics", "/understudy/api/attempts")
            ]
            assert not any(long.encode() in page.body for page in pages)
            assert long not in json.dumps(served.lines)
            assert up.asked == []

    run(work())


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_too_long_a_request_may_be_refused_by_saying_nothing(path: str, *, live: bool) -> None:
    """So does Z.ai, with a 200: whoever asks too much must not bench the target for others."""
    full = "model_context_window_exceeded"
    plain = answer("").replace(b'"stop"', b'"%b"' % full.encode())
    body = chunk("", full) + b"data: [DONE]\n\n" if live else plain

    async def work() -> None:
        async with Upstream(always(body)) as up:
            text = provider("p", up.url) + aliases(chat="p/m")
            async with serving(text) as served:
                asked = {"model": "chat", "max_tokens": 9, "stream": live, **HELLO}
                for _ in range(3):
                    heard = await served.ask("POST", path, asked)
                    assert heard.status == 400
                    assert heard.headers["x-understudy-attempts"] == "p/m=context_length"

    run(work())


def test_an_answer_for_later_is_asked_of_nobody() -> None:
    """Each target would begin to work, and all would be benched for having said nothing."""

    async def work() -> None:
        async with Upstream(always(answer())) as up:
            text = provider("p", up.url, "responses") + aliases(chat="p/m")
            async with serving(text) as served:
                body = {"model": "chat", "input": "hi", "background": True}
                heard = await served.ask("POST", RESPONSES, body)
                assert heard.status == 400
                assert str(heard.error["message"]).startswith("$.background: ")
                assert up.asked == []
                await served.ask("POST", RESPONSES, {**body, "stream": True})
                assert len(up.asked) > 0

    run(work())


FILE = {"role": "user", "content": [{"type": "input_file", "file_id": "file_1"}]}


@pytest.mark.parametrize(
    "more",
    [
        {"previous_response_id": "resp_1"},
        {"conversation": {"id": "conv_1"}},
        {"prompt": {"id": "pmpt_1"}},
        {"input": [{"type": "item_reference", "id": "msg_1"}, {"role": "user", "content": "?"}]},
        {"input": [{"type": "compaction", "encrypted_content": "x"}]},
        {"input": [FILE]},
    ],
)
def test_what_another_api_has_kept_is_asked_of_that_one_alone(more: dict[str, object]) -> None:
    """The model would answer without the conversation, and nobody would know."""
    whole = dialect_named("responses").write_response(Response("hi", id="r"), "m")

    async def work() -> None:
        def play(asked: Asked) -> bytes:
            return json.dumps(whole).encode() if "responses" in asked.path else answer()

        async with Upstream(lambda asked: always(play(asked))(asked)) as up:
            text = provider("chats", up.url) + provider("keeps", up.url, "responses")
            async with serving(text + aliases(a="chats/m, keeps/m", b="chats/m")) as served:
                body = {"input": "and then?", **more}
                heard = await served.ask("POST", RESPONSES, {"model": "a", **body})
                assert heard.headers["x-understudy-attempts"] == "chats/m=unsupported, keeps/m=ok"
                [asked] = up.asked
                assert asked.json.items() >= body.items()
                heard = await served.ask("POST", RESPONSES, {"model": "b", **body})
                assert heard.status == 503
                assert " points to what another " in str(heard.error["message"])

    run(work())


def test_a_cache_of_google_s_is_asked_for_at_google_alone() -> None:
    async def work() -> None:
        async with Upstream(always()) as up:
            text = provider("chats", up.url) + aliases(a="chats/m")
            async with serving(text) as served:
                body = {
                    "contents": [{"parts": [{"text": "?"}]}],
                    "cachedContent": "cachedContents/a",
                }
                heard = await served.ask("POST", "/v1beta/models/a:generateContent", body)
                assert heard.status == 503
                assert "cachedContent points to" in str(heard.error["message"])
                assert up.asked == []

    run(work())
