"""Planted secrets: upstreams quote them, clients send them wrong; nothing we emit may hold one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.gateway.desk import (
    HELLO,
    Asked,
    Heard,
    Line,
    Plays,
    Served,
    Upstream,
    aliases,
    chunk,
    provider,
    serving,
)
from tests.rig import run
from understudy.commands.check import check, render
from understudy.core.errors import ChainExhausted, ProviderError
from understudy.gateway.runtime import Runtime
from understudy.gateway.setup import Setup

CLIENT = "client-planted-7f3a9c51e2"
ADMIN = "admin-planted-b81d04f6aa"
FIRST = "plain.provider.secret.0c9e77"  # looks like no vendor's key
SECOND = "sk-planted-5d2e8b1f90a7c3e4"
HEADER = "header-planted-44d1c0ffee"
WRONG = "wrong-planted-93ab20cd11"
PLANTED = (CLIENT, ADMIN, FIRST, SECOND, HEADER, WRONG)


def key_of(asked: Asked) -> str:
    """The credential this request came with."""
    bearer = asked.headers.get("authorization", "").removeprefix("Bearer ")
    return bearer or asked.headers.get("x-api-key", "") or asked.headers.get("x-goog-api-key", "")


def quoting(kind: str, status: int, asked: Asked) -> Plays:
    """An upstream that is indiscreet: it quotes the key it was given."""
    key = key_of(asked)
    said = f"Incorrect API key provided: {key}. See your account."
    error = {"message": said, "type": "invalid_request_error", "param": key, "code": None}
    data = json.dumps({"error": error}).encode()
    bodies: dict[str, bytes | tuple[bytes, ...]] = {
        "json": data,
        "text": said.encode(),
        "html": f"<html><h1>{said}</h1>{'x' * 300}{key}</html>".encode(),
        "claude": json.dumps({"type": "error", "error": {"type": "x", "message": said}}).encode(),
        "nested": json.dumps(
            {"error": {"message": "no", "metadata": {"raw": {"k": key}}}}
        ).encode(),
        "event": (b"data: " + data + b"\n\n",),
        "late": (chunk("he"), b"data: " + data + b"\n\n"),
    }
    headers = {"x-echo": key, "www-authenticate": f'Bearer realm="{key}"'}
    return Plays(status, bodies[kind], headers)


CONFIG = f"""
[gateway]
keys = ["{CLIENT}"]
admin_key = "{ADMIN}"
"""


def configured(url: str) -> str:
    first = provider("one", url, key=FIRST) + f'headers = {{ "x-org" = "{HEADER}" }}\n'
    return (
        CONFIG
        + first
        + provider("two", url, "anthropic", key=SECOND)
        + aliases(chat="one/a, two/b", solo="one/a", claude="two/b")
    )


CHAT: dict[str, object] = dict(HELLO)
SURFACES: list[tuple[str, dict[str, object]]] = [
    ("/v1/chat/completions", CHAT),
    ("/v1/chat/completions", {**HELLO, "stream": True}),
    ("/v1/responses", {"input": "hello"}),
    ("/v1/messages", {**HELLO, "max_tokens": 9}),
    ("/v1/messages", {**HELLO, "max_tokens": 9, "stream": True}),
    ("/v1/embeddings", {"input": "hello"}),
    ("/v1/messages/count_tokens", CHAT),
]


async def everything(served: Served) -> list[Heard]:
    """Ask for all there is, with the right keys and with wrong ones."""
    client = {"authorization": f"Bearer {CLIENT}", "x-request-id": "r-1"}
    admin = {"authorization": f"Bearer {ADMIN}"}
    wrong = {"authorization": f"Bearer {WRONG}", "x-api-key": WRONG, "x-goog-api-key": WRONG}
    heard = []
    for path, body in SURFACES:
        for model in ("chat", "solo", "claude"):
            heard.append(await served.ask("POST", path, {**body, "model": model}, client))
        heard.append(await served.ask("POST", path, {**body, "model": "chat"}, wrong))
    gemini = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}
    path = "/v1beta/models/chat:generateContent"
    heard.append(await served.ask("POST", f"{path}?key={CLIENT}", gemini))
    heard.append(await served.ask("POST", f"{path}?key={WRONG}", gemini))
    heard.append(await served.ask("GET", f"/nowhere?key={CLIENT}"))
    heard.append(await served.ask("POST", f"/nowhere?key={CLIENT}", {}))
    for place in ("/v1/models", "/metrics", "/understudy/", "/healthz", "/readyz"):
        heard.append(await served.ask("GET", place, None, client))
    for name in ("health", "attempts", "plan?model=chat", "plan?model=nobody"):
        for headers in (admin, wrong, client):
            heard.append(await served.ask("GET", f"/understudy/api/{name}", None, headers))
    order = {"key": "one/a", "seconds": 1}
    heard.append(await served.ask("POST", "/understudy/api/bench", order, admin))
    heard.append(await served.ask("POST", "/understudy/api/unbench", {"key": "one/a"}, wrong))
    return heard


def leaks(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    return [
        (where, secret) for where, text in texts.items() for secret in PLANTED if secret in text
    ]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 503, 200])
@pytest.mark.parametrize("kind", ["json", "text", "html", "claude", "nested", "event"])
def test_nothing_emitted_holds_a_planted_secret(kind: str, status: int) -> None:
    async def work() -> None:
        async with (
            Upstream(lambda asked: quoting(kind, status, asked)) as up,
            serving(configured(up.url)) as served,
        ):
            heard = await everything(served)
            served.path.write_text(configured(up.url).replace("[gateway]", "[gatwey]"))
            served.runtime.reload()
            texts = {
                "answers": "\n".join(f"{h.status} {h.headers} {h.body!r}" for h in heard),
                "logs": "\n".join(map(str, served.lines)),
                "objects": shown(served.runtime),
            }
        sent = {key_of(asked) for asked in up.asked}
        assert sent == {FIRST, SECOND}  # they were quoted back, then
        assert any(a.headers.get("x-org") == HEADER for a in up.asked)
        assert all(CLIENT not in str((a.path, a.headers, a.body)) for a in up.asked)
        assert len(texts["logs"]) > 500
        assert leaks(texts) == []

    run(work())


def shown(runtime: Runtime) -> str:
    """What a debugger, a careless log line or a traceback would show."""
    house = runtime.gateway.house
    things = [
        runtime.setup, runtime.opened, house, house.recipes, house.keys, house.gates,
        house.registry.providers, list(house.registry.health.snapshot().items()),
        house.cast("chat"),
    ]  # fmt: skip
    return "\n".join(map(repr, things))


def test_the_librarys_own_errors_hold_none_either() -> None:
    async def work() -> str:
        async with (
            Upstream(lambda asked: quoting("json", 400, asked)) as up,
            serving(configured(up.url)) as served,
        ):
            registry = served.runtime.gateway.house.registry
            said = []
            for model in ("solo", "claude"):
                try:
                    await registry.parse(model).generate("hello")
                except (ProviderError, ChainExhausted) as error:
                    said += [str(error), repr(error), repr(error.__cause__), repr(vars(error))]
            return "\n".join(said)

    said = run(work())
    assert "[redacted]" in said
    assert leaks({"errors": said}) == []


def test_a_file_with_secrets_is_checked_without_telling_them(tmp_path: Path) -> None:
    path = tmp_path / "understudy.toml"
    path.write_text(configured("http://far.example") + "[helth]\n", encoding="utf-8")
    findings = check(path, {})
    assert findings
    told = render(findings) + str([finding.to_dict() for finding in findings])
    assert leaks({"check": told}) == []


def test_an_error_event_after_content_is_passed_on_and_not_into_our_own_output() -> None:
    """Relayed bytes are the upstream's own; our logs, metrics and interface are ours."""

    async def work() -> dict[str, str]:
        async with (
            Upstream(lambda asked: quoting("late", 200, asked)) as up,
            serving(configured(up.url)) as served,
        ):
            line = await Line.to(served.address)
            headers = {"authorization": f"Bearer {CLIENT}"}
            body = {**HELLO, "model": "solo", "stream": True}
            await line.ask("POST", "/v1/chat/completions", body, headers)
            line.close()
            admin = {"authorization": f"Bearer {ADMIN}"}
            told = await served.ask("GET", "/understudy/api/attempts", None, admin)
            assert "broken" in str(served.lines)
            return {"logs": str(served.lines), "attempts": told.body.decode()}

    assert leaks(run(work())) == []


def test_a_variable_that_fills_a_key_is_never_quoted_when_it_is_bad() -> None:
    bad = "bad planted\nkey"

    async def work() -> str:
        text = '[gateway]\nkeys = ["${KEY}"]\nport = "${KEY}"\n[providers."${KEY}"]\n'
        try:
            async with serving(text, {"KEY": bad}):
                raise AssertionError("it should not start")
        except ValueError as error:
            return str(error) + repr(error) + repr(Setup(env={"KEY": bad}))

    said = run(work())
    assert "gateway.keys" in said
    assert "planted" not in said
