"""Chains as the contract tells them (C1-C17), script in and story out."""

from __future__ import annotations

import asyncio
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
    user,
)
from understudy.core.budget import RetryBudget
from understudy.testing import HANG, Http, ManualClock, Pause

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


@pytest.mark.parametrize(
    "answer",
    [
        Response(tool_calls=(ToolCall("1", "t"),), finish_reason="tool_calls"),
        Response(finish_reason="content_filter"),
        Response(reasoning="hmm", finish_reason="length"),
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


def test_out_of_credits_keeps_the_credential_out_whichever_target_uses_it() -> None:
    play = Play().script(a=[402])
    play.ask("p/a, q/x")
    play.clock.advance(1_000_000)
    play.p.calls.clear()
    play.ask("p/z, q/x")
    assert (play.called, play.told) == ([], ["p/z=skipped", "q/x=ok"])
    assert "until cleared" in play.story[0].reason
    play.health.unbench("p#default")
    play.ask("p/z, q/x")
    assert play.told == ["p/z=ok"]


def test_the_gateways_policy_looks_at_an_empty_account_again_after_half_an_hour() -> None:
    play = Play(AVAILABILITY).script(a=[402])
    play.ask("p/a, q/x")
    play.clock.advance(1799)
    play.ask("p/a, q/x")
    assert play.told == ["p/a=skipped", "q/x=ok"]
    play.clock.advance(1)
    play.ask("p/a, q/x")
    assert play.told == ["p/a=ok"]


@pytest.mark.parametrize("status", [401, 429])
def test_several_credentials_are_tried_before_the_next_target(status: int) -> None:
    play = Play(credentials=("one", "two")).script(a=[status, "hi"])
    assert play.ask() == "hi"
    assert play.p.used == ["one", "two"]
    assert [a.then for a in play.story] == ["rotate", ""]


def test_a_bad_credential_is_passed_over_next_time() -> None:
    play = Play(credentials=("one", "two")).script(a=[401, "hi", "again"])
    play.ask()
    play.ask()
    assert play.p.used == ["one", "two", "two"]


def test_a_lone_bad_key_stays_loud_when_the_policy_stops_on_it() -> None:
    play = Play().script(a=[401, 401])
    assert [play.ask(), play.ask()] == ["stopped: auth", "stopped: auth"]


def test_a_lone_bad_key_is_skipped_when_the_policy_advances() -> None:
    play = Play(AVAILABILITY).script(a=[401])
    play.ask()
    play.ask()
    assert play.told == ["p/a=skipped", "p/b=ok"]


def test_a_rate_limited_credential_is_out_for_that_target_only() -> None:
    play = Play(credentials=("one", "two"))
    play.script(a=[Http(429, headers={"retry-after": "30"}), "hi"])
    play.ask()
    play.ask("p/z")
    assert play.p.used == ["one", "two", "one"]


def test_a_deadline_is_shared_so_that_the_last_target_still_has_time() -> None:
    play = Play().script(a=[HANG], b=["hi"])
    assert play.ask(timeout=10) == "hi"
    assert play.told == ["p/a=stall_pre_first_byte", "p/b=ok"]
    assert play.clock() == 5
    assert play.health.snapshot() == {}  # the caller's own deadline blames nobody


def test_a_target_that_takes_more_than_its_share_is_cut_off() -> None:
    play = Play().script(a=[Pause(9), 503])
    assert play.ask(timeout=12) == "hello from p/b"
    assert play.told == ["p/a=stall_pre_first_byte", "p/b=ok"]
    assert play.clock() == 6


def test_no_attempt_starts_after_the_deadline() -> None:
    play = Play().script(a=[Pause(3), 503], b=[Pause(4.5), 503])
    assert play.ask(timeout=4) == "exhausted"
    assert play.told == ["p/a=stall_pre_first_byte", "p/b=stall_pre_first_byte"]
    assert play.clock() == 4


def test_when_time_is_up_the_rest_is_named_as_not_tried() -> None:
    play = Play().script(a=[HANG])
    with pytest.raises(ChainExhausted, match="no time left"):
        run(play.registry.parse("p/a").generate("hi", timeout=3))
    assert play.clock() == 3


def test_a_silent_target_is_a_stall_and_is_counted() -> None:
    play = Play().script(a=[HANG])
    assert play.ask() == "hello from p/b"
    assert play.told == ["p/a=stall_pre_first_byte", "p/b=ok"]
    assert play.clock() == 120
    assert play.health.snapshot()["p/a"].failures == 1


def test_if_all_are_benched_and_one_returns_soon_it_is_waited_for() -> None:
    play = Play(replace(FAIL_FAST, max_wait=2.0))
    play.health.bench("p/a", 60)
    play.health.bench("p/b", 1.5)

    async def scene() -> str:
        asking = asyncio.ensure_future(play.asked())
        await until(lambda: play.clock.waiting)
        play.clock.advance(1.5)
        return await asking

    assert run(scene()) == "hello from p/b"
    assert play.told == ["p/a=skipped", "p/b=ok"]


def test_nobody_waits_longer_than_allowed() -> None:
    play = Play(replace(FAIL_FAST, max_wait=2.0))
    play.health.bench("p/a", 2.5)
    assert play.ask("p/a") == "exhausted"
    assert play.clock() == 0


def test_when_the_budget_is_spent_retries_stop_and_advancing_does_not() -> None:
    policy = replace(FAIL_FAST, budget_ratio=0.0, budget_rate=2.0)
    play = Play(policy, Cooldown(threshold=99)).script(a=[503] * 9)
    calls = []
    for _ in range(4):
        assert play.ask() == "hello from p/b"
        calls.append(len(play.told) - 1)
    assert calls == [2, 2, 1, 1]


def test_the_budget_refills_with_time_and_traffic() -> None:
    clock = ManualClock()
    budget = RetryBudget(0.5, 1.0, clock=clock)
    assert [budget.withdraw(), budget.withdraw()] == [True, False]
    budget.deposit()
    budget.deposit()
    assert [budget.withdraw(), budget.withdraw()] == [True, False]
    clock.advance(1000)
    assert budget.left == 10


def test_a_caller_may_replace_the_classifier() -> None:
    from understudy import Registry
    from understudy.testing import Fake

    fake = Fake("p").script("a", 503)
    registry = Registry(env={}, classify=lambda error: Fault.PERMANENT)
    registry.register_provider(fake)
    with pytest.raises(ProviderError) as caught:
        run(registry.parse("p/a, p/b").generate("hi"))
    assert caught.value.fault is Fault.PERMANENT


def test_two_chains_of_one_registry_share_health() -> None:
    play = Play().script(a=[503, 503])
    play.ask("p/a, p/b")
    play.ask("p/a, q/x")
    assert play.told == ["p/a=skipped", "q/x=ok"]


def test_a_probe_admits_one_request_at_a_time() -> None:
    play = Play(cooldown=Cooldown(probe=True)).script(a=[503, 503])
    play.ask()
    play.clock.advance(5)
    play.script(a=[Pause(0), HANG])
    play.p.clock = None

    async def scene() -> str:
        play.p.calls.clear()
        probing = asyncio.ensure_future(play.asked("p/a"))
        await until(lambda: play.called)
        second = await play.asked("p/a, p/b")
        probing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await probing
        return second

    assert run(scene()) == "hello from p/b"
    assert play.ask("p/a") == "hello from p/a"  # the cancelled probe freed its place


def test_each_line_of_the_story_names_who_comes_next() -> None:
    play = Play().script(a=[503, 503])
    play.ask("p/a, p/b")
    assert [(a.then, a.next) for a in play.story] == [
        ("retry", "p/a"),
        ("advance", "p/b"),
        ("", ""),
    ]
