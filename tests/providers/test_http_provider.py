"""A provider over HTTP: credentials on the wire, secrets kept, failures told (C13, E7, T9)."""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path
from urllib.parse import quote

import pytest
import trustme

from tests.rig import run, until
from tests.served import provider
from tests.transport.rig import Server, Step, close, hang, request, reset
from understudy import (
    AVAILABILITY,
    ChainExhausted,
    HttpProvider,
    Model,
    ProviderError,
    Registry,
    Request,
    Response,
)
from understudy.providers.base import Call
from understudy.providers.credentials import Credential, Secrets, credentials, redact
from understudy.providers.dsn import DSN
from understudy.providers.http import Settings, joined
from understudy.providers.pool import Pool
from understudy.testing import Fake, told

CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}\n\n'
BLANK = b'data: {"choices":[{"index":0,"delta":{"content":"\\n\\n"}}]}\n\n'
SSE = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def whole(body: object, status: int = 200) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    kind = "content-type: application/json"
    return f"HTTP/1.1 {status} X\r\n{kind}\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data


def answer(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    return whole({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def chain(up: HttpProvider, **more: object) -> Registry:
    registry = Registry(env={}, policy=AVAILABILITY, **more)  # type: ignore[arg-type]
    registry.register_provider(up)
    registry.register_provider(Fake("spare").script("x", *["spare"] * 9))
    return registry


def keys_seen(server: Server) -> list[str]:
    lines = [r.split(b"\r\n") for peer in server.peers for r in peer.requests]
    return [
        line.partition(b": ")[2].decode()
        for head in lines
        for line in head
        if line.lower().startswith(b"authorization")
    ]


def test_a_refused_key_is_followed_by_the_next_one_on_the_wire() -> None:
    async def scene() -> tuple[list[str], list[str]]:
        refused = whole({"error": {"message": "Incorrect API key provided"}}, 401)
        async with Server([request, refused, request, answer("hi"), request, answer("hi")]) as up:
            many = HttpProvider(
                "up", base_url=f"{up.origin}/v1", api_keys=["first-key", "second-key"]
            )
            model = chain(many).parse("up/m, spare/x")
            reply = await model.generate("hello")
            await model.generate("hello")
            await many.aclose()
            return told(reply.attempts), keys_seen(up)

    story, keys = run(scene())
    assert story == ["up/m=auth", "up/m=ok"]
    assert keys == ["Bearer first-key", "Bearer second-key", "Bearer second-key"]


def test_a_key_that_no_header_can_hold_is_followed_by_the_next_one() -> None:
    async def scene() -> tuple[list[str], str, list[str]]:
        async with Server([request, answer("hi")]) as up:
            pasted = "first-key\u200b"  # as it comes out of some web pages
            many = HttpProvider("up", base_url=f"{up.origin}/v1", api_keys=[pasted, "second-key"])
            reply = await chain(many).parse("up/m, spare/x").generate("hello")
            await many.aclose()
            return told(reply.attempts), reply.attempts[0].reason, keys_seen(up)

    story, reason, keys = run(scene())
    assert story == ["up/m=auth", "up/m=ok"]
    assert reason == "key 'key1' holds a character that no header can; copy it anew"
    assert keys == ["Bearer second-key"]


def test_a_key_that_was_missing_is_found_once_its_variable_is_set() -> None:
    async def scene() -> tuple[str, list[str]]:
        async with Server([request, answer("hi")]) as up:
            env = {"AZURE_OPENAI_ENDPOINT": str(up.origin)}
            registry = Registry(env=env)
            model = registry.parse("azure/m")
            with pytest.raises(ProviderError, match="set AZURE_OPENAI_API_KEY") as caught:
                await model.generate("hello")
            assert (caught.value.fault, caught.value.status_code) == ("auth", 401)
            env["AZURE_OPENAI_API_KEY"] = "s3cr3t-key"
            reply = await model.generate("hello")
            assert "s3cr3t" not in repr(registry.providers)
            await registry.aclose()
            return reply.text, up.peers[0].requests[0].decode().split("\r\n")

    text, lines = run(scene())
    assert text == "hi"
    assert "api-key: s3cr3t-key" in lines


def test_a_key_quoted_back_to_us_is_shown_nowhere() -> None:
    secret = "sk-live-0123456789abcdefghij"

    async def scene() -> ProviderError:
        said = {"error": {"message": f"Incorrect API key provided: {secret}. Try another"}}
        async with Server([request, whole(said, 401)]) as up:
            lone = HttpProvider("up", base_url=f"{up.origin}/v1", api_key=secret)
            with pytest.raises(ChainExhausted) as caught:
                await chain(lone).parse("up/m").generate("hello")
            await lone.aclose()
            shown = f"{caught.value}{caught.value.attempts}{lone!r}{lone.settings!r}"
            assert secret not in shown
            (error,) = caught.value.exceptions
            assert isinstance(error, ProviderError)
            return error

    error = run(scene())
    assert "[redacted]" in error.message
    assert secret.encode() not in error.body


def test_credentials_show_label_and_fingerprint_only() -> None:
    one, two = credentials(["aaaa-secret", "bbbb-secret"])
    assert (one.label, two.label) == ("key1", "key2")
    assert "secret" not in f"{one}{one!r}"
    assert one.fingerprint != two.fingerprint
    assert credentials([]) == (Credential("default", ""),)


@pytest.mark.parametrize(
    "text",
    [
        "bad key sk-proj-abcdefghijklmnopqrstuvwxyz",
        "Bearer abcdefghijklmnop1234",
        "AIzaSyA-0123456789abcdefghij",
    ],
)
def test_what_looks_like_a_key_is_cleared_even_if_it_is_not_ours(text: str) -> None:
    assert "[redacted]" in redact(text)


@pytest.mark.parametrize(
    ("base", "path", "whole"),
    [
        ("", "/v1/messages", "/v1/messages"),
        ("/v1", "/v1/messages", "/v1/messages"),
        ("/a/v1beta", "/v1beta/models/m:x", "/a/v1beta/models/m:x"),
        ("/api", "/api/chat", "/api/chat"),
        ("/v1", "/chat/completions", "/v1/chat/completions"),
    ],
)
def test_a_base_url_may_hold_the_first_step_of_its_dialect_s_paths(
    base: str, path: str, whole: str
) -> None:
    assert joined(base, path) == whole


def test_a_caller_who_leaves_a_stream_closes_the_upstream_connection() -> None:
    async def scene() -> int:
        async with Server([request, SSE + chunk(CHUNK), hang]) as server:
            up = provider("openai", str(server.origin))
            async with chain(up).parse("up/m").stream("hello") as events:
                async for _ in events:
                    break
            await asyncio.wait_for(server.peers[0].gone.wait(), 5)
            await up.aclose()
            return len(asyncio.all_tasks())

    assert run(scene()) <= 2  # this one, and the server's own


def test_a_cancelled_plain_call_closes_the_upstream_connection() -> None:
    async def scene() -> None:
        async with Server([request, hang]) as server:
            up = provider("openai", str(server.origin))
            asking = asyncio.ensure_future(chain(up).parse("up/m").generate("hello"))
            await asyncio.wait_for(_requested(server), 5)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await asyncio.wait_for(server.peers[0].gone.wait(), 5)
            await up.aclose()

    run(scene())


async def _watched(model: Model) -> None:
    async with model.stream("hello") as events:
        async for _ in events:
            pass


async def _requested(server: Server) -> None:
    """Until the first request has arrived; sockets need real turns of the loop."""
    loop = asyncio.get_running_loop()
    while not (server.peers and server.peers[0].requests):
        turn = asyncio.Event()
        loop.call_later(0.001, turn.set)
        await turn.wait()
    await until(lambda: server.peers[0].requests)


def test_a_stream_that_breaks_after_content_is_a_broken_stream() -> None:
    async def scene() -> str:
        async with Server([request, SSE + chunk(CHUNK), reset]) as server:
            up = provider("openai", str(server.origin))
            with pytest.raises(ProviderError) as caught:
                await _watched(chain(up).parse("up/m, spare/x"))
            await up.aclose()
            return str(caught.value.fault)

    assert run(scene()) == "stall_mid_stream"


@pytest.mark.parametrize(
    "end", [(reset,), (b"0\r\n\r\n", close)], ids=["broken", "without an end mark"]
)
def test_a_stream_of_which_only_blanks_have_come_fails_over(end: tuple[Step, ...]) -> None:
    async def scene() -> list[str]:
        async with Server([request, SSE + chunk(BLANK), *end]) as server:
            up = provider("openai", str(server.origin))
            model = chain(up).parse("up/m, spare/x")
            async with model.stream("hello") as events:
                told = [event async for event in events]
            await up.aclose()
            assert isinstance(told[-1], Response)
            return [attempt.word for attempt in told[-1].attempts]

    assert run(scene()) == ["transient", "transient", "ok"]


@pytest.mark.parametrize(
    ("script", "fault", "billing"),
    [
        ([close], "transient", "maybe_billed"),
        ([request, reset], "transient", "maybe_billed"),
        ([request, whole(b"oops", 503)], "transient", "refused"),
        ([request, whole(b"<html>", 200)], "transient", "maybe_billed"),
        (
            [request, whole({"error": {"code": "insufficient_quota"}})],
            "out_of_credits",
            "maybe_billed",
        ),
    ],
)
def test_each_failure_says_what_may_be_billed(script, fault, billing) -> None:  # type: ignore[no-untyped-def]
    async def scene() -> ProviderError:
        async with Server(script) as server:
            up = provider("openai", str(server.origin))
            with pytest.raises(ProviderError) as caught:
                await up.generate(Call("m", Request.of("hi")))
            await up.aclose()
            return caught.value

    error = run(scene())
    assert (str(error.fault), error.billing) == (fault, billing)


def test_an_environment_provider_works_end_to_end_over_tls(tmp_path: Path) -> None:
    """`LLM_M5=foreman://token@host` speaks TLS, verifies it, and sends its token as Bearer."""
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    said = {"model": "q", "message": {"role": "assistant", "content": "hi"}, "done": True}

    async def scene() -> tuple[str, list[str]]:
        async with Server([request, whole(said)], host="localhost", tls=context) as server:
            env = {"LLM_M5": f"foreman://tok-en@localhost:{server.origin.port}"}

            def build(name: str, dsn: DSN) -> HttpProvider:
                settings = Settings(transport=Pool(ca_file=str(bundle)))
                url = f"https://{dsn.host}"
                return HttpProvider(
                    name, dialect="ollama", base_url=url, api_key=dsn.token, settings=settings
                )

            registry = Registry(env={})
            registry.register_scheme("foreman", build)
            assert registry.load_env(env) == []
            reply = await registry.parse("m5/qwen3:30b").generate("hello")
            return reply.text, keys_seen(server)

    assert run(scene()) == ("hi", ["Bearer tok-en"])


@pytest.mark.parametrize(
    "key", ["sk-ab+cd/ef==", 'q"uo\\te-key', "schlüssel-/x", "k\U0001f511y-12"]
)
def test_a_key_is_found_however_it_is_written(key: str) -> None:
    written = json.dumps(key)[1:-1]
    forms = [
        key,
        written,
        json.dumps(key, ensure_ascii=False)[1:-1],
        written.replace("/", "\\/"),
        "".join(c if c.isalnum() and c.isascii() else json_number(c) for c in key),
        quote(key, safe=""),
        quote(key, safe="").lower() if key.islower() else quote(key),
    ]
    secrets = Secrets(["another", key])
    for form in forms:
        assert secrets.out_of(f"<{form}>") == "<[redacted]>"
        assert secrets.out_of_bytes(f"<{form}>".encode()) == b"<[redacted]>"


def json_number(char: str) -> str:
    data = char.encode("utf-16-be")
    return "".join(f"\\u{data[at : at + 2].hex().upper()}" for at in range(0, len(data), 2))
