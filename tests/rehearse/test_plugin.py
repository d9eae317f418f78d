"""The pytest plugin, in a pytest of its own."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

GOOD = """
    import asyncio
    import pytest
    from understudy import Cooldown

    @pytest.mark.understudy("p/a: 503 503; p/b: 'hello'")
    def test_two_failures_bench_the_head(understudy):
        assert understudy.ask("hi").text == "hello"
        understudy.story.expect("p/a=transient, p/a=transient, p/b=ok")
        assert understudy.story.tries("p/a") == 2
        assert understudy.story.served == "p/b"
        assert not understudy.registry.health.available("p/a")

    @pytest.mark.understudy("p/a: hang 'back'; q/b: 'stand-in'", cooldown=Cooldown(threshold=1))
    def test_silence_takes_no_time_and_the_clock_is_ours(understudy):
        assert asyncio.run(understudy.model.generate("hi")).text == "stand-in"
        assert understudy.clock() == 120.0
        understudy.clock.advance(5)
        assert understudy.ask().text == "back"
        assert [call[0] for call in understudy.fakes["p"].calls] == ["a", "a"]

    @pytest.mark.understudy("p/a: 401; p/b: 'hello'", policy="availability")
    def test_the_policy_can_be_chosen(understudy):
        assert understudy.ask().text == "hello"

    def test_without_a_script_there_is_an_empty_registry(understudy):
        assert understudy.story == []
"""
BAD = """
    import pytest

    @pytest.mark.understudy("p/a: 503; p/b: 'hello'")
    def test_it_was_not_like_that(understudy):
        understudy.ask()
        understudy.story.expect("p/a=transient, p/b=ok")

    @pytest.mark.understudy("p/a: resett")
    def test_a_script_that_cannot_be_read(understudy): ...

    @pytest.mark.understudy("a: 503")
    def test_a_target_that_is_none(understudy): ...

    @pytest.mark.understudy("p/a: 503 ...")
    def test_for_ever(understudy): ...

    @pytest.mark.understudy("p/a: 503", policy="brave")
    def test_a_policy_that_is_none(understudy): ...
"""
LOAD = ("-p", "understudy.rehearse.plugin", "--strict-markers", "-p", "no:cacheprovider")


def test_scripts_become_fakes_and_stories_can_be_asserted(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(GOOD)
    pytester.runpytest_inprocess(*LOAD).assert_outcomes(passed=4)


def test_what_is_wrong_is_said_in_the_words_of_the_story(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(BAD)
    result = pytester.runpytest_inprocess(*LOAD)
    result.assert_outcomes(failed=1, errors=4)
    result.stdout.fnmatch_lines_random(
        [
            "*AssertionError: attempt 2 was p/a=ok, expected p/b=ok",
            "*story:    p/a=transient, p/a=ok",
            "*column 6: unknown outcome 'resett'*",
            "*'a' is no target; write provider/model",
            "*'...' is for servers; say how often with '[*]3'",
            "*unknown policy 'brave'; known: availability, deterministic, fail_fast",
        ]
    )
