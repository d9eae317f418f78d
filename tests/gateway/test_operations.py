"""Running it: probes, what strangers are told, and how it ends."""

from __future__ import annotations

import asyncio
import signal

import pytest

from tests.gateway.desk import (
    DONE,
    HELLO,
    HELLO_STREAM,
    Heard,
    Line,
    Process,
    Upstream,
    aliases,
    always,
    ask,
    fronted,
    process,
    provider,
    serving,
)
from tests.rig import run

STREAM = {**HELLO, "model": "chat", "stream": True}


# -- probes and small routes


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_gateway_is_alive_and_ready_until_it_drains(method: str) -> None:
    async def work() -> list[tuple[int, bytes]]:
        async with serving('[gateway]\nkeys = ["sk-a"]\n') as served:
            heard = [await served.ask(method, path) for path in ("/healthz", "/readyz")]
            served.runtime.gateway.draining = True
            heard += [await served.ask(method, path) for path in ("/healthz", "/readyz")]
            return [(h.status, h.body) for h in heard]

    told = run(work())
    assert [status for status, _ in told] == [200, 200, 200, 503]
    ready = [
        b'{"status":"ok"}',
        b'{"status":"ready"}',
        b'{"status":"ok"}',
        b'{"status":"draining"}',
    ]
    assert [body for _, body in told] == (ready if method == "GET" else [b""] * 4)


def test_head_and_get_share_a_connection_without_confusion() -> None:
    async def work() -> list[int]:
        async with serving("") as served:
            line = await Line.to(served.address)
            statuses = [
                (await line.ask(method, path)).status
                for method, path in [
                    ("HEAD", "/nowhere"),
                    ("GET", "/healthz"),
                    ("HEAD", "/healthz"),
                    ("GET", "/readyz"),
                ]
            ]
            line.close()
            return statuses

    assert run(work()) == [404, 200, 200, 200]


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("GET", "/v1/chat/completions", 405, "POST"),
        ("DELETE", "/v1/embeddings", 405, "POST"),
        ("POST", "/healthz", 405, "GET, HEAD"),
        ("GET", "/nowhere", 404, None),
        ("POST", "/v1/completions", 404, None),
        ("PUT", "/v1beta/models/x:generateContent", 405, "POST"),
        ("POST", "/v1/models", 405, "GET"),
    ],
)
def test_who_knocks_at_the_wrong_door_is_told_the_right_ones(
    method: str, path: str, status: int, allow: str | None
) -> None:
    async def work() -> Heard:
        async with serving("") as served:
            return await served.ask(method, path, {} if method == "POST" else None)

    heard = run(work())
    assert (heard.status, heard.headers.get("allow")) == (status, allow)
    if status == 404:
        assert "/v1/chat/completions" in str(heard.error["message"])


def test_a_bug_of_ours_is_a_500_and_a_line_and_the_gateway_goes_on() -> None:
    async def work() -> None:
        async def broken(*_: object) -> None:
            raise RuntimeError("sk-secret")

        async with serving("") as served:
            served.runtime.gateway.routes["GET", "/broken"] = broken
            heard = await served.ask("GET", "/broken")
            assert (heard.status, heard.error["message"]) == (500, "a fault of ours")
            [line] = served.events("internal_error")
            assert line["kind"] == "RuntimeError"
            assert "test_operations.py" in str(line["where"])
            assert "sk-secret" not in str(served.lines)
            assert (await served.ask("GET", "/healthz")).status == 200

    run(work())


def test_what_never_became_a_request_is_told_too() -> None:
    async def work() -> None:
        async with serving("[gateway]\nmax_body = 1024\n" + aliases(chat="openai/m")) as served:
            heard = await served.ask("POST", "/v1/messages", b"x" * 2000)
            assert (heard.status, heard.json["type"]) == (413, "error")
            [line] = served.events("request")
            assert (line["status"], line["outcome"], line["surface"]) == (
                413, "refused", "anthropic",
            )  # fmt: skip

    run(work())


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Bearer sk-good"},
        {"Authorization": "bearer sk-good"},
        {"x-api-key": "sk-good"},
        {"x-goog-api-key": "sk-good"},
        {"api-key": "sk-good"},
        None,
    ],
)
def test_a_key_is_taken_from_wherever_an_sdk_puts_it(headers: dict[str, str] | None) -> None:
    async def work() -> None:
        async with Upstream(always()) as up:
            text = '[gateway]\nkeys = ["sk-good"]\n' + provider("p", up.url) + aliases(chat="p/m")
            async with serving(text) as served:
                path = "/v1/chat/completions" + ("" if headers else "?key=sk-good")
                heard = await served.ask("POST", path, {**HELLO, "model": "chat"}, headers)
                assert heard.status == 200
                wrong = await served.ask("POST", "/v1/chat/completions?key=sk-bad", {})
                assert wrong.status == 401
            assert "sk-good" not in str([(a.path, a.headers, a.body) for a in up.asked])

    run(work())


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Bearer sk-stale", "x-api-key": "sk-good"},
        {"authorization": "Bearer sk-stale", "x-goog-api-key": "sk-good"},
        {"authorization": "Bearer ", "api-key": "sk-good"},
        {"authorization": "Basic sk-stale", "x-api-key": "sk-stale", "api-key": "sk-good"},
        {"authorization": "Bearer sk-good", "x-api-key": "sk-stale"},
    ],
)
def test_a_right_key_beside_a_stale_one_counts(headers: dict[str, str]) -> None:
    async def work() -> None:
        text = '[gateway]\nkeys = ["sk-good"]\n'
        async with fronted(always(), text) as (served, _):
            for path in ("/v1/chat/completions", "/v1/chat/completions?key=sk-worse"):
                body = {**HELLO, "model": "chat"}
                assert (await served.ask("POST", path, body, headers)).status == 200
            stale = dict.fromkeys(headers, "Bearer sk-stale")
            assert (await served.ask("GET", "/v1/models", None, stale)).status == 401
            assert (await served.ask("GET", "/v1/models?key=sk-good", None, stale)).status == 200

    run(work())


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/v1/chat/completions", "openai"),
        ("/v1/responses", "openai"),
        ("/v1/embeddings", "openai"),
        ("/v1/messages", "anthropic"),
        ("/v1/messages/count_tokens", "anthropic"),
        ("/v1beta/models/chat:generateContent", "gemini"),
    ],
)
def test_a_wrong_key_is_a_401_in_the_callers_dialect(path: str, shape: str) -> None:
    async def work() -> Heard:
        async with serving('[gateway]\nkeys = ["sk-good"]\n') as served:
            return await served.ask("POST", path, {}, {"authorization": "Bearer sk-wrong"})

    heard = run(work())
    assert heard.status == 401
    assert "sk-" not in heard.body.decode()
    marks = {
        "openai": heard.error.get("code") is not None and "type" not in heard.json,
        "anthropic": heard.json.get("type") == "error",
        "gemini": heard.error.get("status") == "UNAUTHENTICATED",
    }
    assert marks[shape]


# -- the process


async def refused(address: str) -> bool:
    try:
        (await Line.to(address)).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:
        pass  # it was in line when the door closed
    return False


async def deaf(running: Process) -> None:
    """Until newcomers are refused; bounded by the test's own timeout."""
    while not await refused(running.address):
        pass


def test_on_sigterm_streams_end_newcomers_are_refused_and_all_is_told() -> None:
    async def work() -> None:
        rest = asyncio.Event()
        pieces = (HELLO_STREAM[0], rest, *HELLO_STREAM[1:])
        async with Upstream(always(pieces)) as up, asyncio.timeout(60):
            text = provider("p", up.url) + aliases(chat="p/m")
            async with process(text) as running:
                line = await Line.to(running.address)
                line.send("POST", "/v1/chat/completions", STREAM)
                status, headers = await line.head()
                first = await line.piece()
                running.signal(signal.SIGTERM)
                await deaf(running)
                rest.set()
                body = first + await line.rest(headers)
                code, lines = await running.ended()
                line.close()
        assert (status, code) == (200, 0)
        assert body.endswith(HELLO_STREAM[-1])
        events = [(told["event"], told.get("outcome")) for told in lines]
        assert events == [("draining", None), ("request", "ok"), ("stopped", None)]
        assert lines[0]["in_flight"] == 1

    run(work())


def test_whoever_balances_load_sees_that_we_are_not_ready_while_all_is_still_served() -> None:
    async def work() -> None:
        async with Upstream(always()) as up, asyncio.timeout(60):
            text = "[gateway]\ndrain_delay = 30\n" + provider("p", up.url)
            async with process(text + aliases(chat="p/m")) as running:
                running.signal(signal.SIGTERM)
                async with asyncio.timeout(20):
                    while (await ask(running.address, "GET", "/readyz")).status == 200:
                        pass
                chat = await ask(
                    running.address, "POST", "/v1/chat/completions", {**HELLO, "model": "chat"}
                )
                assert (chat.status, chat.headers["connection"]) == (200, "close")
                running.signal(signal.SIGTERM)  # no patience: now
                code, _ = await running.ended()
                assert code == 0

    run(work())


def test_a_stream_that_will_not_end_is_ended_when_the_time_is_up_and_told() -> None:
    async def work() -> None:
        pieces = (HELLO_STREAM[0], asyncio.Event())
        async with Upstream(always(pieces)) as up, asyncio.timeout(60):
            text = "[gateway]\ndrain_timeout = 0.05\n" + provider("p", up.url)
            async with process(text + aliases(chat="p/m")) as running:
                line = await Line.to(running.address)
                line.send("POST", "/v1/chat/completions", STREAM)
                await line.head()
                await line.piece()
                running.signal(signal.SIGTERM)
                code, lines = await running.ended()
                last = await line.piece()
                assert b'"error"' in last
                assert (DONE in last, await line.piece()) == (False, b"")
                line.close()
        assert code == 0
        [told] = [told for told in lines if told["event"] == "request"]
        assert (told["status"], told["outcome"]) == (200, "broken")
        assert "the gateway was stopped" in str(told["reason"])

    run(work())


def test_a_second_signal_ends_the_drain() -> None:
    async def work() -> None:
        pieces = (HELLO_STREAM[0], asyncio.Event())
        async with Upstream(always(pieces)) as up, asyncio.timeout(60):
            text = "[gateway]\ndrain_timeout = 3600\n" + provider("p", up.url)
            async with process(text + aliases(chat="p/m")) as running:
                line = await Line.to(running.address)
                line.send("POST", "/v1/chat/completions", STREAM)
                await line.head()
                await line.piece()
                running.signal(signal.SIGINT)
                await deaf(running)
                running.signal(signal.SIGINT)
                code, lines = await running.ended()
                line.close()
        assert code == 0
        assert lines[-1]["event"] == "stopped"

    run(work())
