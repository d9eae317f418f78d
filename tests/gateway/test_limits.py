"""What one key may ask for: at once, and requests and tokens per second."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.desk import (
    DONE,
    HELLO,
    Asked,
    Heard,
    Plays,
    Upstream,
    aliases,
    always,
    answer,
    chunk,
    fronted,
    never,
    provider,
    serving,
)
from tests.rig import run, until
from understudy.gateway.limits import Allowance, Gate, Turned
from understudy.messages.response import Usage
from understudy.testing import ManualClock


def test_a_second_is_worth_its_rate_and_then_one_waits() -> None:
    clock = ManualClock()
    gate = Gate(Allowance(rate=2.0), clock)
    assert [gate.enter() for _ in range(2)] == [None, None]
    turned = gate.enter()
    assert turned == Turned("this key may ask 2 times a second", 0.5)
    clock.advance(0.5)
    assert gate.enter() is None
    assert gate.enter() is not None


def test_a_rate_below_one_still_lets_somebody_in() -> None:
    clock = ManualClock()
    gate = Gate(Allowance(rate=0.1), clock)
    assert gate.enter() is None
    turned = gate.enter()
    assert turned is not None
    assert turned.seconds == pytest.approx(10.0)


def test_a_place_is_free_again_when_somebody_leaves() -> None:
    gate = Gate(Allowance(concurrent=1), ManualClock())
    assert gate.enter() is None
    assert gate.enter() is not None
    gate.leave()
    assert gate.enter() is None


def test_being_turned_away_for_the_crowd_costs_no_token() -> None:
    gate = Gate(Allowance(concurrent=1, rate=2.0), ManualClock())
    assert gate.enter() is None
    assert gate.enter() is not None
    gate.leave()
    assert gate.enter() is None


@given(st.lists(st.floats(0, 3), max_size=60), st.floats(0.1, 20))
def test_never_more_than_the_rate_and_one_seconds_worth(pauses: list[float], rate: float) -> None:
    clock = ManualClock()
    gate = Gate(Allowance(rate=rate), clock)
    entered = 0
    for pause in pauses:
        clock.advance(pause)
        entered += gate.enter() is None
    assert entered <= max(1.0, rate) + rate * sum(pauses) + 1e-6


def test_tokens_are_charged_when_they_are_known_and_have_to_be_paid_off() -> None:
    clock = ManualClock()
    gate = Gate(Allowance(token_rate=100.0), clock)
    assert [gate.enter(), gate.enter()] == [None, None]
    gate.leave(Usage(200, 99))
    assert gate.enter() == Turned("this key may use 100 tokens a second", 2.0)
    gate.leave(Usage(100, 0))
    clock.advance(2.0)
    assert gate.enter() == Turned("this key may use 100 tokens a second", 1.0)
    clock.advance(1.0)
    assert gate.enter() is None


def test_an_answer_that_tells_no_usage_costs_its_key_nothing() -> None:
    gate = Gate(Allowance(token_rate=1.0), ManualClock())
    assert gate.enter() is None
    gate.leave()
    assert gate.enter() is None


def test_who_is_turned_away_for_tokens_has_not_used_up_a_request() -> None:
    clock = ManualClock()
    gate = Gate(Allowance(rate=1.0, token_rate=10.0), clock)
    gate.leave(Usage(100, 0))
    clock.advance(9.0)
    assert gate.enter() is not None
    clock.advance(1.0)
    assert gate.enter() is None


@given(st.lists(st.tuples(st.floats(0, 3), st.integers(0, 500)), max_size=60), st.floats(1, 200))
def test_over_time_never_more_tokens_than_the_rate_and_the_last_answer(
    answers: list[tuple[float, int]], rate: float
) -> None:
    clock = ManualClock()
    gate = Gate(Allowance(token_rate=rate), clock)
    used = passed = 0.0
    for pause, tokens in answers:
        clock.advance(pause)
        passed += pause
        if gate.enter() is None:
            assert used <= rate + rate * passed - 1 + 1e-6
            used += tokens
            gate.leave(Usage(tokens, 0))


@pytest.mark.parametrize("stream", [False, True])
def test_tokens_of_an_answer_keep_its_key_out_and_no_other(stream: bool) -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 21}
    last = b'data: {"id": "c", "choices": [], "usage": %b}\n\n' % json.dumps(usage).encode()
    body = (chunk("he"), chunk("", "stop"), last, DONE) if stream else answer(tokens=(30, 21))

    async def work() -> None:
        limits = '[gateway]\nkeys = ["sk-a", "sk-b"]\ntoken_rate = 1\n'
        async with fronted(always(body), limits) as (served, up):
            asked = {"model": "chat", "stream": stream, **HELLO}
            for key in ("sk-a", "sk-b"):
                given = {"authorization": f"Bearer {key}"}
                first = await served.ask("POST", "/v1/chat/completions", asked, given)
                again = await served.ask("POST", "/v1/chat/completions", asked, given)
                assert (first.status, again.status) == (200, 429)
                assert 49 <= int(again.headers["retry-after"]) <= 51
                assert "may use 1 tokens a second" in str(again.error["message"])
            assert len(up.asked) == 2

    run(work())


DIALECTS = {
    "openai": ("/v1/chat/completions", {"model": "chat", **HELLO}),
    "responses": ("/v1/responses", {"model": "chat", "input": "hello"}),
    "anthropic": ("/v1/messages", {"model": "chat", "max_tokens": 5, **HELLO}),
    "gemini": (
        "/v1beta/models/chat:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]},
    ),
    "embeddings": ("/v1/embeddings", {"model": "chat", "input": "a"}),
}


@pytest.mark.parametrize("surface", DIALECTS)
def test_one_too_many_is_a_429_in_the_callers_dialect(surface: str) -> None:
    path, body = DIALECTS[surface]

    async def work() -> tuple[Heard, Heard, list[object]]:
        async with Upstream(always()) as up:
            text = "[gateway]\nrate = 0.001\n" + provider("p", up.url) + aliases(chat="p/m")
            async with serving(text) as served:
                first = await served.ask("POST", path, body)
                second = await served.ask("POST", path, body)
                return first, second, [x["outcome"] for x in served.events("request")]

    first, second, outcomes = run(work())
    assert first.status != 429
    assert (second.status, second.headers["retry-after"]) == (429, "1000")
    assert "this key may ask 0.001 times a second" in str(second.error["message"])
    assert second.json.get("type") == ("error" if surface == "anthropic" else None)
    assert second.error.get("status") == ("RESOURCE_EXHAUSTED" if surface == "gemini" else None)
    assert outcomes[1] == "refused"


def test_concurrency_is_per_key_and_ends_with_the_request() -> None:
    async def work() -> None:
        go = asyncio.Event()

        async def slow(_: Asked) -> Plays:
            await go.wait()
            return Plays(200, answer())

        async with Upstream(slow) as up:
            text = (
                '[gateway]\nkeys = ["sk-a", "sk-b"]\nmax_concurrent = 1\n'
                + provider("p", up.url)
                + aliases(chat="p/m")
            )
            async with serving(text) as served:
                running = asyncio.ensure_future(served.chat(authorization="Bearer sk-a"))
                await until(lambda: up.asked)
                refused = await served.chat(authorization="Bearer sk-a")
                other = asyncio.ensure_future(served.chat(authorization="Bearer sk-b"))
                await until(lambda: len(up.asked) == 2)
                go.set()
                statuses = [(await running).status, refused.status, (await other).status]
                again = await served.chat(authorization="Bearer sk-a")
        assert statuses == [200, 429, 200]
        assert refused.headers["retry-after"] == "1"
        assert again.status == 200

    run(work())


def test_a_client_that_leaves_gives_its_place_back() -> None:
    async def work() -> None:
        async with Upstream(never) as up:
            text = "[gateway]\nmax_concurrent = 1\n" + provider("p", up.url) + aliases(chat="p/m")
            async with serving(text) as served:
                leaving = asyncio.ensure_future(served.chat())
                await until(lambda: up.asked)
                leaving.cancel()
                gate = served.runtime.gateway.house.gates[""]
                await until(lambda: gate.inside == 0)
                await until(lambda: served.events("request"))
                assert [line["outcome"] for line in served.events("request")] == ["left"]

    run(work())


@pytest.mark.parametrize(("ours", "wish"), [(600, "0.05"), (0.05, "600"), (0.05, "1e9")])
def test_a_client_may_shorten_its_time_and_never_lengthen_it(ours: float, wish: str) -> None:
    async def work() -> Heard:
        async with Upstream(never) as up:
            text = f"[gateway]\ntimeout = {ours}\n" + provider("p", up.url) + aliases(chat="p/m")
            async with serving(text) as served:
                return await served.chat(x_understudy_timeout=wish)

    heard = run(work())
    assert heard.headers["x-understudy-attempts"] == "p/m=stall_pre_first_byte"
    said = re.search(r"no time left after ([\d.]+) s", str(heard.error["message"]))
    assert said is not None
    assert float(said[1]) <= 0.05


@pytest.mark.parametrize("wish", ["0", "-1", "nan", "inf", "soon"])
def test_a_time_that_is_none_is_a_400(wish: str) -> None:
    async def work() -> Heard:
        async with serving(aliases(chat="openai/m")) as served:
            return await served.chat(x_understudy_timeout=wish)

    heard = run(work())
    assert heard.status == 400
    assert "x-understudy-timeout" in str(heard.error["message"])
