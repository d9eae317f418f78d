"""What would happen now, and why: the plan is the walk foretold."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tests.rig import Play
from understudy import AVAILABILITY, Capabilities, Tool, user
from understudy.messages.request import Request


def verdicts(play: Play, spec: str = "p/a, p/b", **more: object) -> list[str]:
    plan = play.registry.parse(spec).plan(**more)  # type: ignore[arg-type]
    return [f"{line.target} {line.verdict}: {line.reason}" for line in plan.lines]


def test_healthy_targets_would_be_tried_in_order() -> None:
    assert verdicts(Play()) == [
        "p/a try: healthy, up to 2 attempts",
        "p/b try: healthy, up to 2 attempts",
    ]


def test_a_benched_target_is_a_skip_with_the_reason_the_error_would_give() -> None:
    play = Play().script(a=[503, 503])
    play.ask()
    play.clock.advance(1)
    foretold = verdicts(play)[0]
    play.ask()
    assert foretold == "p/a skip: benched for transient, 4 s left of 5 s"
    assert play.story[0].reason == "skipped, benched for transient, 4 s left of 5 s"


def test_an_empty_account_is_a_skip_for_every_target_that_uses_it() -> None:
    play = Play().script(a=[402])
    play.ask("p/a, q/x")
    assert verdicts(play, "p/z, q/x")[0].startswith(
        "p/z skip: credential default benched for out_of_credits, until cleared"
    )


def test_a_refused_key_that_is_asked_again_is_not_called_healthy() -> None:
    play = Play().script(a=[401])
    assert play.ask() == "stopped: auth"
    assert verdicts(play) == [
        "p/a try: credential default benched for auth, 300 s left of 300 s, yet asked again, "
        "up to 2 attempts",
        "p/b try: healthy, up to 2 attempts",
    ]


def test_a_request_that_a_target_cannot_take_is_a_skip() -> None:
    play = Play()
    play.p.describe("a", Capabilities(tools=False))
    request = Request(messages=(user("hi"),), tools=(Tool("t"),))
    assert verdicts(play, prompt=request)[0] == "p/a skip: takes no tools"


def test_shares_of_a_deadline_are_told() -> None:
    plan = Play().registry.parse("p/a, p/b, p/c").plan(timeout=30)
    assert [line.seconds for line in plan.lines] == [10, 10, 10]


def test_worst_case_counts_credentials_and_retries() -> None:
    play = Play(credentials=("one", "two", "three"))
    plan = play.registry.parse("p/a, q/b").plan()
    assert (plan.worst_attempts, plan.bound, plan.head) == (6, 6, "p/a")
    play.health.bench("p/a", 9)
    plan = play.registry.parse("p/a, q/b").plan()
    assert (plan.worst_attempts, plan.bound, plan.head) == (2, 6, "q/b")


def test_a_plan_explains_itself_and_is_json() -> None:
    play = Play(AVAILABILITY)
    play.health.bench("p/b", 60, why="deploy")
    plan = play.registry.parse("p/a, p/b").plan(timeout=8)
    assert str(plan) == (
        "1. p/a  try   healthy, up to 2 attempts, 8 s\n"
        "2. p/b  skip  benched by an operator, 60 s left of 60 s: deploy\n"
        "policy availability, at worst 2 attempts"
    )
    assert json.loads(json.dumps(plan.to_dict()))["targets"][1]["verdict"] == "skip"


def test_nobody_left_is_said_so() -> None:
    play = Play()
    play.health.bench("p/a", 60)
    assert str(play.registry.parse("p/a").plan()).endswith("nobody would be called")


@given(st.lists(st.sampled_from([503, 429, 402, 400, ""]), max_size=6), st.integers(0, 20))
def test_what_is_foretold_is_what_happens(outcomes: list[int | str], wait: int) -> None:
    """The first target the plan would try is the first the next request calls."""
    play = Play().script(a=list(outcomes))
    for _ in range(2):
        play.ask("p/a, q/b")
    play.clock.advance(wait)
    head = play.registry.parse("p/a, q/b").plan().head
    play.ask("p/a, q/b")
    called = [a.target for a in play.story if a.n]
    assert (called or [""])[0] == head
