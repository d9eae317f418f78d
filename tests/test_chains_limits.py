"""Chains with several keys, little time and small budgets (C9-C17)."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.rig import Play, run, until
from understudy import (
    AVAILABILITY,
    FAIL_FAST,
    ChainExhausted,
    Cooldown,
    Fault,
    ProviderError,
    Registry,
)
from understudy.core.budget import RetryBudget
from understudy.testing import HANG, Fake, Http, ManualClock, Pause


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


def test_the_gateways_policy_benches_for_the_current_cooldown_if_no_delay_is_named() -> None:
    play = Play(AVAILABILITY).script(a=[429, 429])
    play.ask("p/a, q/x")
    assert [a.benched for a in play.story] == [5.0, 0.0]
    play.clock.advance(5)
    play.ask("p/a, q/x")
    assert [a.benched for a in play.story] == [10.0, 0.0]


class Slow(ManualClock):
    """Time goes on between any two looks at it, as on a busy machine."""

    def __call__(self) -> float:
        self.advance(0.25)
        return super().__call__()


@pytest.mark.parametrize(
    ("answers", "seconds"), [([503, 503], 5.0), ([Http(429, headers={"retry-after": "7"})], 7.0)]
)
def test_a_bench_is_told_at_its_whole_length_though_the_telling_takes_a_while(
    answers: list[Http | int], seconds: float
) -> None:
    registry = Registry(env={}, clock=Slow())
    registry.register_provider(Fake("p").script("a", *answers))
    with pytest.raises(ChainExhausted) as failed:
        registry.parse("p/a").generate_sync("x")
    assert failed.value.attempts[-1].benched == seconds


@pytest.mark.parametrize(
    ("headers", "credentials", "entry"),
    [
        ({}, ("default",), ("p/a", "target", "rule", 5.0)),
        ({"retry-after": "7"}, ("default",), ("p/a", "target", "header", 7.0)),
        ({"retry-after": "7"}, ("one", "two"), ("p/a#one", "credential", "header", 7.0)),
    ],
)
def test_the_ledger_says_who_sits_out_for_how_long_and_who_decided_that(
    headers: dict[str, str], credentials: tuple[str, ...], entry: tuple[str, str, str, float]
) -> None:
    play = Play(AVAILABILITY, credentials=credentials)
    play.script(a=[Http(429, "", headers), "hi"])
    play.ask("p/a, q/x")
    [state] = play.health.snapshot().values()
    bench = state.bench
    assert bench is not None
    assert (bench.key, bench.scope, bench.source, bench.until - bench.since) == entry


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
