"""Chains as the contract tells them (C1-C17), script in and story out."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

import pytest

from tests.rig import Play, run, until
from understudy import (
    AVAILABILITY,
    FAIL_FAST,
    Capabilities,
    ChainExhausted,
    Cooldown,
    Fault,
    ProviderError,
    Request,
    Response,
    ToolCall,
    Usage,
    user,
)
from understudy.messages.parts import Reasoning
from understudy.testing import HANG, Http, Pause

TRANSIENT_TWICE = ["p/a=transient", "p/a=transient", "p/b=ok"]


def test_the_head_answers_and_nobody_else_is_called() -> None:
    play = Play().script(a=["hi"])
    assert (play.ask(), play.told, play.called) == ("hi", ["p/a=ok"], ["a"])


def test_one_blip_is_retried_on_the_same_target_and_leaves_no_trace() -> None:
    play = Play().script(a=[503, "hi"])
    assert (play.ask(), play.told) == ("hi", ["p/a=transient", "p/a=ok"])
    assert play.health.snapshot() == {}


def test_the_second_failure_benches_the_target_and_the_chain_moves_on() -> None:
    play = Play().script(a=[503, 503], b=["hi"])
    assert (play.ask(), play.told) == ("hi", TRANSIENT_TWICE)
    assert not play.health.available("p/a")


def test_a_benched_target_is_skipped_recorded_and_not_called() -> None:
    play = Play().script(a=[503, 503])
    play.ask()
    play.p.calls.clear()
    play.ask()
    assert (play.told, play.called) == (["p/a=skipped", "p/b=ok"], ["b"])


def test_after_the_cooldown_the_head_is_tried_first_again() -> None:
    play = Play().script(a=[503, 503])
    play.ask()
    play.clock.advance(5)
    play.ask()
    assert play.told == ["p/a=ok"]


@pytest.mark.parametrize(
    ("retries", "threshold", "calls"),
    [(5, 2, 2), (0, 2, 1), (-1, 2, 1), (1, 5, 2), (3, 9, 4), (1, 1, 1)],
)
def test_retries_stop_once_benched(retries: int, threshold: int, calls: int) -> None:
    policy = replace(FAIL_FAST, transient_retries=retries)
    play = Play(policy, Cooldown(threshold=threshold)).script(a=[503] * 9)
    assert play.ask() == "hello from p/b"
    assert play.called.count("a") == calls
    assert play.health.available("p/a") == (calls < threshold)


def test_counts_go_on_across_requests() -> None:
    play = Play(replace(FAIL_FAST, transient_retries=0)).script(a=[503, 503, "back"])
    play.ask()
    assert play.health.available("p/a")
    play.ask()
    assert not play.health.available("p/a")


ROWS = [
    # fault, scripted, policy -> story, and whether the target is marked
    ("transient", 503, FAIL_FAST, TRANSIENT_TWICE, True),
    ("unknown", 418, FAIL_FAST, ["p/a=unknown", "p/a=unknown", "p/b=ok"], True),
    ("rate limit", 429, FAIL_FAST, ["p/a=rate_limit", "p/a=rate_limit", "p/b=ok"], True),
    ("auth stops", 401, FAIL_FAST, ["p/a=auth"], False),
    ("no credits", 402, FAIL_FAST, ["p/a=out_of_credits", "p/b=skipped"], False),
    ("bad request", 400, FAIL_FAST, ["p/a=permanent"], False),
    ("rate limit", 429, AVAILABILITY, ["p/a=rate_limit", "p/b=ok"], True),
    ("auth advances", 401, AVAILABILITY, ["p/a=auth", "p/b=ok"], False),
    ("bad request", 400, AVAILABILITY, ["p/a=permanent"], False),
    ("empty", "", FAIL_FAST, ["p/a=empty_content", "p/b=ok"], True),
    ("blank", " \n ", FAIL_FAST, ["p/a=empty_content", "p/b=ok"], True),
    (
        "no such model",
        Http(404, '{"error":{"code":"model_not_found","message":"The model x does not exist"}}'),
        FAIL_FAST,
        ["p/a=model_not_found", "p/b=ok"],
        False,
    ),
    (
        "unsupported",
        ProviderError(Fault.UNSUPPORTED),
        FAIL_FAST,
        ["p/a=unsupported", "p/b=ok"],
        False,
    ),
    (
        "foreign error",
        RuntimeError("x"),
        FAIL_FAST,
        ["p/a=unknown", "p/a=unknown", "p/b=ok"],
        True,
    ),
    ("refused", ConnectionRefusedError(), FAIL_FAST, TRANSIENT_TWICE, True),
]


@pytest.mark.parametrize(("name", "outcome", "policy", "story", "marked"), ROWS)
def test_the_table_decides_every_fault(name, outcome, policy, story, marked) -> None:  # type: ignore[no-untyped-def]
    play = Play(policy).script(a=[outcome] * 2)
    play.ask()
    assert play.told == story, name
    assert ("p/a" in play.health.snapshot()) == marked


@pytest.mark.parametrize("outcome", [503, 401, 400, ""])
def test_a_chain_of_one_follows_the_same_rules(outcome: int | str) -> None:
    alone, many = Play().script(a=[outcome] * 2), Play().script(a=[outcome] * 2)
    alone.ask("p/a")
    many.ask("p/a, p/b")
    assert alone.told == [line for line in many.told if line.startswith("p/a")]


def test_advance_on_permanent_turns_stops_into_advances() -> None:
    for outcome in (401, 400):
        play = Play(replace(FAIL_FAST, advance_on_permanent=True)).script(a=[outcome])
        assert play.ask() == "hello from p/b"


def test_a_rate_limit_with_a_delay_benches_for_it_and_advances_at_once() -> None:
    play = Play().script(a=[Http(429, headers={"Retry-After": "7"})])
    play.ask()
    assert play.told == ["p/a=rate_limit", "p/b=ok"]
    bench = play.health.standing("p/a")
    assert (bench.until, bench.source) == (7, "header")


@pytest.mark.parametrize("nothing", [0.0, -1.0, math.nan])
def test_a_delay_of_no_time_is_none_whoever_told_it(nothing: float) -> None:
    limited = ProviderError(Fault.RATE_LIMIT, "p/a", 429, nothing)
    play = Play().script(a=[limited, "hi"])
    assert (play.ask(), play.told) == ("hi", ["p/a=rate_limit", "p/a=ok"])
    assert play.health.snapshot() == {}


def test_a_providers_delay_is_capped_by_the_policy() -> None:
    play = Play().script(a=[Http(429, headers={"Retry-After": "86400"})])
    play.ask()
    assert play.health.standing("p/a").until == 300


def test_exhaustion_names_every_target_and_why_skips_included() -> None:
    play = Play().script(a=[503, 503], b=[RuntimeError("boom"), RuntimeError("boom")])
    play.health.bench("q/c", 60, why="deploy")
    with pytest.raises(ChainExhausted) as caught:
        run(play.registry.parse("p/a, p/b, q/c").generate("hi"))
    error = caught.value
    text = str(error)
    assert all(word in text for word in ("p/a: transient (503)", "p/b: unknown: boom", "deploy"))
    assert [e.target for e in error.exceptions] == ["p/a", "p/b", "q/c"]
    assert error.retry_after == 5
    assert len(error.attempts) == 5


def test_except_star_finds_each_cause() -> None:
    play = Play().script(a=[RuntimeError("boom")] * 2, b=[ConnectionResetError()] * 2)
    found = []
    try:
        run(play.registry.parse("p/a, p/b").generate("hi"))
    except* RuntimeError as group:
        found += [e.target for e in group.exceptions]
    except* ConnectionError as group:
        found += [e.target for e in group.exceptions]
    assert found == ["p/a", "p/b"]


def test_all_benched_calls_nobody() -> None:
    play = Play()
    play.health.bench("p/a", 9)
    play.health.bench("p/b", 4)
    with pytest.raises(ChainExhausted) as caught:
        run(play.registry.parse("p/a, p/b").generate("hi"))
    assert (caught.value.retry_after, play.called) == (4, [])


def test_a_stop_is_the_error_itself() -> None:
    play = Play().script(a=[400])
    with pytest.raises(ProviderError) as caught:
        run(play.registry.parse("p/a, p/b").generate("hi"))
    assert not isinstance(caught.value, ChainExhausted)
    assert str(caught.value).startswith("failover[p/permanent]: status=400")
    assert (caught.value.target, play.called) == ("p/a", ["a"])


def test_wrapping_happens_once_and_keeps_the_cause() -> None:
    cause = RuntimeError("boom")
    play = Play(replace(FAIL_FAST, transient_retries=0)).script(a=[cause])
    with pytest.raises(ChainExhausted) as caught:
        run(play.registry.parse("p/a").generate("hi"))
    (error,) = caught.value.exceptions
    assert error.__cause__ is cause
    assert str(error) == "failover[p/unknown]: status=0: boom"


def test_the_same_error_object_raised_twice_is_told_of_each_target() -> None:
    shared = ProviderError(Fault.TRANSIENT, message="down")
    play = Play(replace(FAIL_FAST, transient_retries=0)).script(a=[shared], b=[shared])
    with pytest.raises(ChainExhausted) as caught:
        run(play.registry.parse("p/a, p/b").generate("hi"))
    assert [e.target for e in caught.value.exceptions] == ["p/a", "p/b"]


async def cancelled_during(play: Play, spec: str) -> None:
    task = asyncio.ensure_future(play.asked(spec))
    await until(lambda: play.called)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_cancellation_during_an_attempt_ends_the_chain_and_marks_nobody() -> None:
    play = Play().script(a=[Pause(0), HANG])
    play.p.clock = None
    run(cancelled_during(play, "p/a, p/b"))
    assert (play.called, play.told) == (["a"], ["p/a=cancelled"])
    assert play.story[0].fault is Fault.CLIENT_DISCONNECT
    assert play.health.snapshot() == {}


def test_our_own_cancellation_of_an_attempt_is_transient() -> None:
    class Suicidal:
        name = "s"
        calls = 0

        async def generate(self, call: object) -> Response:
            self.calls += 1
            raise asyncio.CancelledError

        def stream(self, call: object):  # type: ignore[no-untyped-def]
            raise NotImplementedError

    play = Play()
    play.registry.register_provider(Suicidal())  # type: ignore[arg-type]
    assert play.ask("s/x, p/b") == "hello from p/b"
    assert play.told == ["s/x=transient", "s/x=transient", "p/b=ok"]


def test_the_reply_names_who_served_and_the_request_is_unchanged() -> None:
    play = Play().script(a=[503, 503])
    request = Request(messages=(user("hello"),))
    before = repr(request)
    reply = run(play.registry.parse("p/a, p/b").generate(request, temperature=0.1))
    assert reply.model == "p/b"
    assert repr(request) == before
    assert play.p.calls[-1][1].temperature == 0.1


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(TypeError, match=r"unknown request option .*temprature"):
        run(Play().registry.parse("p/a").generate("hi", temprature=1))


def test_capabilities_are_the_heads_and_each_attempt_is_fitted_to_its_target() -> None:
    play = Play()
    play.p.describe("a", Capabilities(tools=False)).describe("b", Capabilities(context_window=9))
    model = play.registry.parse("p/b, p/a")
    assert model.capabilities.context_window == 9
    from understudy import Tool

    reply = run(play.registry.parse("p/a, p/b").generate("hi", tools=(Tool("t"),)))
    assert [f"{a.target}={a.word}" for a in reply.attempts] == ["p/a=unsupported", "p/b=ok"]
    assert play.called == ["b"]


OVERFLOW = Http(400, '{"error":{"code":"context_length_exceeded","message":"too long"}}')


@pytest.mark.parametrize(
    ("windows", "story"),
    [
        ({"a": 8, "b": 4, "c": 32}, ["p/a=context_length", "p/b=skipped", "p/c=ok"]),
        ({"a": 8, "b": 8, "c": 4}, ["p/a=context_length"]),
        ({"a": 8, "b": None, "c": 9}, ["p/a=context_length", "p/b=skipped", "p/c=ok"]),
        ({"a": None, "b": 99, "c": 99}, ["p/a=context_length"]),
    ],
)
def test_an_overflow_goes_only_to_known_larger_windows(
    windows: dict[str, int | None], story: list[str]
) -> None:
    play = Play().script(a=[OVERFLOW])
    for model, window in windows.items():
        play.p.describe(model, Capabilities(context_window=window))
    play.ask("p/a, p/b, p/c")
    assert play.told == story
    assert play.health.snapshot() == {}


def test_overflow_with_no_larger_window_is_that_error_at_once() -> None:
    play = Play().script(a=[OVERFLOW])
    assert play.ask("p/a, p/b") == "stopped: context_length"


def test_nothing_in_answer_to_too_long_a_request_is_an_overflow() -> None:  # Z.ai
    full = Response(finish_reason="length", finish_raw="model_context_window_exceeded")
    play = Play().script(a=[full, full, replace(full, text="as far as it")])
    assert play.ask("p/a, p/b") == "stopped: context_length"
    assert play.ask("p/a, p/b") == "stopped: context_length"
    assert play.health.snapshot() == {}
    assert play.ask("p/a, p/b") == "as far as it"


@pytest.mark.parametrize(
    "answer",
    [
        Response(tool_calls=(ToolCall("1", "t"),), finish_reason="tool_calls"),
        Response(finish_reason="content_filter"),
        Response(reasoning="hmm", finish_reason="length"),
        Response(parts=(Reasoning(data="hidden"),), finish_reason="length"),
        Response(usage=Usage(3, 64, reasoning=64), finish_reason="length"),
        Response(refusal="I cannot help with that"),
    ],
)
def test_answers_that_only_look_empty_are_answers(answer: Response) -> None:
    play = Play().script(a=[answer])
    play.ask()
    assert play.told == ["p/a=ok"]


@pytest.mark.parametrize("answer", [Response(), Response(reasoning="hmm"), Response(text="\n")])
def test_empty_answers_are_never_returned_nor_retried(answer: Response) -> None:
    play = Play().script(a=[answer])
    assert play.ask() == "hello from p/b"
    assert play.told == ["p/a=empty_content", "p/b=ok"]


def test_empties_over_two_requests_bench_the_target() -> None:
    play = Play().script(a=["", ""])
    play.ask()
    play.ask()
    assert not play.health.available("p/a")
