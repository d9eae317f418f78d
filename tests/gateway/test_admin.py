"""The operators' interface: who may use it, what it shows, what it orders."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest

from tests.gateway.desk import (
    HELLO,
    Heard,
    Served,
    Told,
    Upstream,
    aliases,
    always,
    provider,
    says,
    serving,
)
from tests.rig import run, until
from understudy.core.health import Change
from understudy.gateway.admin import ENTRIES, Board, barred
from understudy.gateway.app import Gateway
from understudy.gateway.build import demo_house
from understudy.gateway.house import House
from understudy.gateway.http import Head, Request
from understudy.gateway.past import BLOCK, MOST, Past
from understudy.observe.record import Opening, Record
from understudy.testing import ManualClock

ADMIN = {"authorization": "Bearer sk-admin"}
MISSING = "send the admin key as Authorization: Bearer"
WRONG = "this admin key is not the gateway's"
API = [
    ("GET", "/understudy/api/health"),
    ("GET", "/understudy/api/plan?model=chat"),
    ("POST", "/understudy/api/plan"),
    ("GET", "/understudy/api/attempts"),
    ("POST", "/understudy/api/bench"),
    ("POST", "/understudy/api/unbench"),
]


def table(told: Told, *path: str) -> Told:
    """A nested object."""
    for step in path:
        found = told[step]
        assert isinstance(found, dict)
        told = found
    return told


def rows(told: Told, name: str) -> list[Told]:
    found = told[name]
    assert isinstance(found, list)
    return found


# -- who may use it


@pytest.mark.parametrize(("method", "path"), API)
@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({}, MISSING),
        ({"authorization": "Bearer sk-client"}, WRONG),
        ({"authorization": "Bearer "}, MISSING),
        ({"authorization": "Basic sk-admin"}, MISSING),
        ({"authorization": "Bearer sk-admin2"}, WRONG),
        ({"authorization": "Bearer sk-admi\xe9"}, WRONG),
        ({"x-api-key": "sk-admin"}, MISSING),
    ],
)
def test_without_the_admin_key_nothing_is_shown_or_done(
    method: str, path: str, headers: dict[str, str], told: str
) -> None:
    async def work() -> tuple[Heard, Heard]:
        text = '[gateway]\nkeys = ["sk-client"]\nadmin_key = "sk-admin"\n'
        async with serving(text + aliases(chat="openai/m")) as served:
            body = {"key": "openai/m", "seconds": 5} if method == "POST" else None
            heard = await served.ask(method, path, body, headers)
            return heard, await served.ask("GET", "/understudy/api/health", None, ADMIN)

    heard, health = run(work())
    assert heard.status == 401
    assert heard.headers["www-authenticate"] == "Bearer"
    assert heard.error["message"] == told
    assert health.json["keys"] == {}


def asked(headers: dict[str, str], peer: str = "127.0.0.1") -> Request:
    raw = {name.encode(): value.encode() for name, value in headers.items()}
    request = Request(Head("GET", b"/understudy/api/health", raw))
    request.peer = peer
    return request


@pytest.mark.parametrize(
    ("headers", "peer", "allowed"),
    [
        ({"host": "127.0.0.1:8080"}, "127.0.0.1", True),
        ({"host": "localhost:8080"}, "::1", True),
        ({"host": "127.0.0.1"}, "10.0.0.9", False),
        ({"host": "127.0.0.1"}, "", False),
        ({"host": "127.0.0.1", "x-forwarded-for": "10.0.0.9"}, "127.0.0.1", False),
        ({"host": "127.0.0.1", "forwarded": "for=10.0.0.9"}, "127.0.0.1", False),
        ({"host": "rebound.example"}, "127.0.0.1", False),
        ({"host": "127.0.0.1:8080", "origin": "http://127.0.0.1:8080"}, "127.0.0.1", True),
        ({"host": "127.0.0.1:8080", "origin": "https://evil.example"}, "127.0.0.1", False),
        ({"host": "127.0.0.1:8080", "origin": "null"}, "127.0.0.1", False),
    ],
)
def test_without_an_admin_key_only_this_machine_may_ask(
    headers: dict[str, str], peer: str, allowed: bool
) -> None:
    house = demo_house(ManualClock())
    assert (barred(asked(headers, peer), house) == "") is allowed


def test_with_an_admin_key_this_machine_needs_it_too_and_others_may_come() -> None:
    house = House(demo_house(ManualClock()).registry, admin_key="sk-admin")
    assert barred(asked({"host": "127.0.0.1"}), house)
    assert barred(asked({**ADMIN, "host": "far.example"}, "10.0.0.9"), house) == ""


# -- what it shows and orders


async def two_targets(served: Served, method: str, name: str, body: object = None) -> Heard:
    return await served.ask(method, f"/understudy/api/{name}", body)


def test_a_bench_is_shown_with_its_reason_and_the_seconds_left() -> None:
    async def work() -> None:
        async with (
            Upstream(lambda _: says(429, retry_after="120")) as down,
            Upstream(always()) as up,
        ):
            text = (
                provider("down", down.url) + provider("up", up.url) + aliases(chat="down/a, up/b")
            )
            async with serving(text) as served:
                await served.chat()
                told = (await two_targets(served, "GET", "health")).json
        assert (told["status"], told["policy"], told["in_flight"]) == ("ready", "availability", 0)
        assert told["aliases"] == {"chat": "down/a, up/b"}
        assert list(table(told, "keys")) == ["down/a"]
        state = table(told, "keys", "down/a")
        assert state["benched"] is True
        assert 100 < float(str(state["seconds_left"])) <= 120
        assert "benched for rate_limit" in str(state["reason"])
        entry = table(state, "bench")
        assert {name: entry[name] for name in ("scope", "fault", "source", "seconds")} == {
            "scope": "target", "fault": "rate_limit", "source": "header", "seconds": 120,
        }  # fmt: skip
        assert float(str(entry["until"])) == pytest.approx(float(str(entry["since"])) + 120)
        [line] = rows(told, "ledger")
        assert (line["kind"], line["key"], line["fault"]) == ("bench", "down/a", "rate_limit")

    run(work())


def test_an_operator_benches_and_clears() -> None:
    async def work() -> None:
        async with Upstream(always()) as up:
            text = provider("p", up.url) + provider("q", up.url) + aliases(chat="p/a, q/b")
            async with serving(text) as served:
                order = {"key": "p/a", "seconds": 60, "why": "being mended"}
                benched = await two_targets(served, "POST", "bench", order)
                chat = await served.chat()
                plan = (await two_targets(served, "GET", "plan?model=chat")).json
                cleared = await two_targets(served, "POST", "unbench", {"key": "p/a"})
                again = await two_targets(served, "POST", "unbench", {"key": "p/a"})
                after = await served.chat()
                health = (await two_targets(served, "GET", "health")).json
        assert benched.status == 200
        reason = str(table(benched.json, "state")["reason"])
        assert reason.startswith("benched by an operator, 60 s left of 60 s: being mended")
        assert chat.headers["x-understudy-attempts"] == "p/a=skipped, q/b=ok"
        assert [row["verdict"] for row in rows(plan, "targets")] == ["skip", "try"]
        assert "being mended" in str(rows(plan, "targets")[0]["reason"])
        assert (cleared.json["cleared"], again.json["cleared"]) == (True, False)
        assert after.headers["x-understudy-target"] == "p/a"
        assert [line["kind"] for line in rows(health, "ledger")] == ["clear", "bench"]

    run(work())


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": "user", "content": [PICTURE]}]},
        {"input": [{"role": "user", "content": [
            {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}]}]},
        {"contents": [{"role": "user", "parts": [
            {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}]}]},
        {"max_tokens": 5, "messages": [{"role": "user", "content": [
            {"type": "image", "source": {
                "type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}]}]},
        {"messages": [{"role": "user", "content": "see", "images": ["iVBORw0KGgo="]}]},
    ],
    ids=["chat", "responses", "gemini", "messages", "ollama"],
)  # fmt: skip
def test_a_plan_of_a_request_tells_who_cannot_take_it_and_shares_its_time(body: Told) -> None:
    async def work() -> None:
        async with Upstream(always()) as up:
            text = provider("p", up.url) + provider("q", up.url) + provider("r", up.url)
            text += '[providers.p.models."blind"]\nmax_images = 0\n'
            text += aliases(chat="p/blind, q/b, r/c")
            async with serving(text) as served:
                question = {"model": "chat", "request": {"model": "x", **body}, "timeout": 30}
                plan = (await two_targets(served, "POST", "plan", question)).json
                longer = {"model": "chat", "timeout": 1e300}
                capped = (await two_targets(served, "POST", "plan", longer)).json
                plain = (await two_targets(served, "GET", "plan?model=chat")).json
        told = [(row["verdict"], row["reason"], row["seconds"]) for row in rows(plan, "targets")]
        assert told == [
            ("skip", "takes no images", None),
            ("try", "healthy, up to 2 attempts", 15),
            ("try", "healthy, up to 2 attempts", 15),
        ]
        assert (plan["head"], plan["worst_attempts"]) == ("q/b", 4)
        assert capped == plain  # the gateway's own timeout holds for everybody

    run(work())


def test_a_credential_can_be_benched_by_its_label() -> None:
    async def work() -> None:
        async with Upstream(always()) as up:
            text = provider("p", up.url).replace(
                'api_key = "k-provider"', 'api_keys = ["k-1", "k-2"]'
            )
            async with serving(text + aliases(chat="p/a")) as served:
                order = {"key": "p#key1", "seconds": 60}
                assert (await two_targets(served, "POST", "bench", order)).status == 200
                await served.chat()
        assert [asked.headers["authorization"] for asked in up.asked] == ["Bearer k-2"]

    run(work())


def test_the_last_requests_are_told_newest_first_with_their_stories() -> None:
    async def work() -> None:
        async with Upstream(lambda _: says(503, "away")) as down, Upstream(always()) as up:
            text = (
                provider("down", down.url) + provider("up", up.url) + aliases(chat="down/a, up/b")
            )
            async with serving(text) as served:
                await served.chat(x_request_id="first")
                await served.chat(x_request_id="second")
                every = (await two_targets(served, "GET", "attempts")).json
                one = (await two_targets(served, "GET", "attempts?limit=1")).json
        assert [row["request_id"] for row in rows(every, "requests")] == ["second", "first"]
        assert [row["request_id"] for row in rows(one, "requests")] == ["second"]
        assert one["remembered"] == 2
        first = rows(every, "requests")[1]
        assert (first["outcome"], first["target"], first["status"]) == ("ok", "up/b", 200)
        assert (first["input_tokens"], first["output_tokens"]) == (3, 2)
        story = [(a["target"], a["fault"], a["then"], a["next"]) for a in rows(first, "attempts")]
        assert story == [
            ("down/a", "transient", "retry", "down/a"),
            ("down/a", "transient", "advance", "up/b"),
            ("up/b", None, "", ""),
        ]
        assert rows(first, "attempts")[0]["reason"] == "away"

    run(work())


@pytest.mark.parametrize(
    ("method", "name", "body", "field"),
    [
        ("GET", "attempts?limit=0", None, "limit"),
        ("GET", "attempts?limit=10001", None, "limit"),
        ("GET", "attempts?limit=many", None, "limit"),
        ("GET", "attempts?limit=%C2%B2", None, "limit"),
        ("GET", "health?limit=-1", None, "limit"),
        ("GET", "plan", None, "model"),
        ("GET", "plan?model=nobody", None, "model"),
        ("GET", "plan?model=p/", None, "model"),
        ("POST", "plan", {}, "model"),
        ("POST", "plan", {"model": 5}, "model"),
        ("POST", "plan", {"model": "nobody"}, "model"),
        ("POST", "plan", {"model": "p/a", "timeout": 0}, "timeout"),
        ("POST", "plan", {"model": "p/a", "timeout": "5"}, "timeout"),
        ("POST", "plan", {"model": "p/a", "request": {}}, "request"),
        ("POST", "plan", {"model": "p/a", "request": {"messages": 5}}, "request"),
        ("POST", "plan", {"model": "p/a", "requests": {}}, "requests"),
        ("POST", "bench", b"{", "$"),
        ("POST", "bench", [], "$"),
        ("POST", "bench", {"seconds": 5}, "key"),
        ("POST", "bench", {"key": 5, "seconds": 5}, "key"),
        ("POST", "bench", {"key": "chat", "seconds": 5}, "key"),
        ("POST", "bench", {"key": "p/a, p/b", "seconds": 5}, "key"),
        ("POST", "bench", {"key": "typo/a", "seconds": 5}, "key"),
        ("POST", "bench", {"key": "typo#key1", "seconds": 5}, "key"),
        ("POST", "bench", {"key": "p/a"}, "seconds"),
        ("POST", "bench", {"key": "p/a", "seconds": 0}, "seconds"),
        ("POST", "bench", {"key": "p/a", "seconds": -1}, "seconds"),
        ("POST", "bench", {"key": "p/a", "seconds": True}, "seconds"),
        ("POST", "bench", {"key": "p/a", "seconds": "5"}, "seconds"),
        ("POST", "bench", {"key": "p/a", "seconds": 5, "why": 5}, "why"),
        ("POST", "bench", {"key": "p/a", "second": 5}, "second"),
        ("POST", "unbench", {}, "key"),
        ("POST", "unbench", {"key": "p/a", "seconds": 5}, "seconds"),
    ],
)
def test_bad_input_is_a_400_that_names_the_field(
    method: str, name: str, body: object, field: str
) -> None:
    async def work() -> tuple[Heard, Heard]:
        text = provider("p", "http://127.0.0.1:1") + aliases(chat="p/a, p/b")
        async with serving(text) as served:
            heard = await two_targets(served, method, name, body)
            return heard, await two_targets(served, "GET", "health")

    heard, health = run(work())
    assert (heard.status, heard.error["field"]) == (400, field)
    assert str(heard.error["message"]).startswith(f"{field}: ")
    assert health.json["keys"] == {}


def test_seconds_without_measure_are_benched_and_told_as_json() -> None:
    async def work() -> Heard:
        text = provider("p", "http://127.0.0.1:1") + aliases(chat="p/a")
        async with serving(text) as served:
            order = b'{"key": "p/a", "seconds": 1e300}'
            return await two_targets(served, "POST", "bench", order)

    assert table(run(work()).json, "state")["benched"] is True


def test_a_bench_without_end_has_no_end_in_json() -> None:
    clock = ManualClock()
    gateway = Gateway(demo_house(clock))
    board = Board(gateway, Past())
    health = gateway.house.registry.health
    health.listen(board.change)
    health.bench("lead/opera", float("inf"))
    told = run(board._health(asked({})))
    state = table(table(told, "keys"), "lead/opera")
    assert (state["seconds_left"], table(state, "bench")["until"]) == (None, None)
    assert "until cleared" in str(state["reason"])


def test_others_are_served_while_the_past_is_told() -> None:
    past = Past()
    board = Board(Gateway(demo_house(ManualClock())), past)
    for n in range(MOST):
        past.finished(Record(Opening(str(n), "openai", "m", False, "", 0.0), 200, "ok", 0.1))

    async def work() -> int:
        told = asyncio.ensure_future(board._attempts(Request(Head("GET", b"/x?limit=10000"))))
        turns: list[bool] = []
        await until(lambda: turns.append(told.done()) or turns[-1])
        return len(turns)

    assert run(work()) > MOST // BLOCK // 3  # a look takes a turn or two


def test_what_is_remembered_is_bounded() -> None:
    past = Past()
    board = Board(Gateway(demo_house(ManualClock())), past)
    for n in range(MOST + 50):
        past.finished(Record(Opening(str(n), "openai", "m", False, "", 0.0), 200, "ok", 0.1))
        board.change(Change("clear", f"p/{n}"))
    told = run(board._attempts(Request(Head("GET", b"/x?limit=10000"))))
    told = json.loads(msgspec.json.encode(told))
    assert (told["remembered"], len(rows(told, "requests"))) == (MOST, MOST)
    assert rows(told, "requests")[0]["request_id"] == str(MOST + 49)
    health = run(board._health(Request(Head("GET", b"/x?limit=1000"))))
    assert len(rows(health, "ledger")) == ENTRIES


def test_the_wrong_method_is_told_the_right_one() -> None:
    async def work() -> Heard:
        async with serving("") as served:
            return await served.ask("GET", "/understudy/api/bench", HELLO)

    heard = run(work())
    assert (heard.status, heard.headers["allow"]) == (405, "POST")
