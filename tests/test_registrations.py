"""What is registered wrongly is told at once, names its place, and harms nobody else."""

from __future__ import annotations

import asyncio
import traceback

import pytest

from tests.served import house as house_of
from tests.served import listening
from understudy import AliasCycle, HttpProvider, InvalidDSN, ProviderError, Registry
from understudy.providers.base import Provider
from understudy.providers.dsn import DSN
from understudy.testing import Fake


def registry(**env: str) -> Registry:
    return Registry(env=env)


def asked(reg: Registry, spec: str) -> str:
    """What came of it, in words."""
    try:
        return asyncio.run(reg.parse(spec).generate("hi")).text
    except ProviderError as error:
        return str(error)


# -- DSNs -------------------------------------------------------------------------------------


def test_a_builder_that_breaks_costs_its_own_entry_and_no_other() -> None:
    reg = registry()

    def build(_: str, dsn: DSN) -> Provider:
        raise RuntimeError(f"cannot use {dsn.token}")

    reg.register_scheme("custom", build)
    problems = reg.load_env({"LLM_A": "custom://s3cret@host", "LLM_B": "foreman://host"})
    assert [str(problem) for problem in problems] == [
        "invalid DSN in LLM_A: cannot use [redacted]"
    ]
    assert reg.parse("b/x").targets == ("b/x",)
    with pytest.raises(InvalidDSN, match="LLM_A"):
        reg.parse("a/x")


@pytest.mark.parametrize("built", [None, 5, "x", object()])
def test_a_builder_must_give_a_provider(built: Provider) -> None:
    reg = registry()
    reg.register_scheme("custom", lambda name, dsn: built)
    (problem,) = reg.load_env({"LLM_A": "custom://host"})
    assert "LLM_A: no provider" in str(problem)


def test_a_scheme_may_be_registered_after_its_entries_were_read() -> None:
    reg = registry()
    assert len(reg.load_env({"LLM_X": "Custom://h"})) == 1
    reg.register_scheme("Custom", lambda name, dsn: Fake(name))
    assert asked(reg, "x/m") == "hello from x/m"


@pytest.mark.parametrize("text", ["foreman://h:99999", "openai://h:99999", "foreman://a b"])
def test_whatever_is_wrong_its_variable_is_named(text: str) -> None:
    (problem,) = registry().load_env({"LLM_X": text})
    assert str(problem).startswith("invalid DSN in LLM_X: ")


def test_a_problem_is_told_anew_each_time() -> None:
    reg = registry(LLM_X="bad")
    lengths = []
    for _ in range(3):
        with pytest.raises(InvalidDSN) as caught:
            reg.parse("x/m")
        lengths.append(len(traceback.extract_tb(caught.value.__traceback__)))
    assert len(set(lengths)) == 1


def test_a_dsn_without_a_token_says_where_the_token_goes() -> None:
    reg = registry(LLM_X="openai://127.0.0.1:9", OPENAI_API_KEY="sk-of-another-address")
    said = asked(reg, "x/m")
    assert "status=401" in said
    assert "set a token: LLM_X=openai://token@host" in said


def test_a_second_at_sign_fails_the_call_and_shows_in_no_repr() -> None:
    reg = registry(LLM_X="foreman://to@ken@host")
    assert "only one @ may stand in its DSN" in asked(reg, "x/m")
    assert "ken" not in repr(reg.providers["x"])


@pytest.mark.parametrize("key", ["", " ", "\n"])
def test_a_blank_key_is_none(key: str) -> None:
    assert "set OPENAI_API_KEY" in asked(registry(OPENAI_API_KEY=key), "openai/m")


def test_a_line_break_behind_a_key_is_no_part_of_it() -> None:
    async def scene() -> str:
        async with listening(house_of(Fake("p"))) as address:
            up = HttpProvider("up", base_url=f"{address}/v1", api_key="sk-from-a-file\n")
            reg = registry()
            reg.register_provider(up)
            reply = await reg.parse("up/p/m").generate("hi")
            await reg.aclose()
            return reply.text

    assert asyncio.run(scene()) == "hello from p/m"


# -- types ------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [None, 5, ["p/a"], b"p/a"])
def test_a_spec_is_text(spec: str) -> None:
    with pytest.raises(TypeError, match="a spec is text"):
        registry().parse(spec)


@pytest.mark.parametrize("spec", [None, ["p/a"]])
def test_so_is_what_an_alias_stands_for(spec: str) -> None:
    with pytest.raises(TypeError, match="alias 'x' needs a spec as text"):
        registry().register_alias("x", spec)


@pytest.mark.parametrize("given", [None, 5, object()])
def test_what_cannot_generate_is_no_provider(given: Provider) -> None:
    with pytest.raises(TypeError, match="no provider"):
        registry().register_provider("p", given)
    with pytest.raises(TypeError, match="no provider"):
        registry().register_provider(given)


def test_a_resolver_gives_text_or_nothing() -> None:
    reg = registry()
    reg.register_resolver(lambda name: ["p/a"])  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match="a resolver must give text or None for 'x'"):
        reg.parse("x")


def test_a_resolver_that_never_ends_is_ended() -> None:
    reg = registry()
    reg.register_resolver(lambda name: str(int(name) + 1))
    with pytest.raises(AliasCycle, match="aliases without end in '0': 0 -> 1 -> 2"):
        reg.parse("0")


# -- the scripted provider --------------------------------------------------------------------


@pytest.mark.parametrize("outcome", [None, 3.5, b"x", [503]])
def test_what_cannot_be_played_cannot_be_scripted(outcome: object) -> None:
    with pytest.raises(TypeError, match="cannot script"):
        Fake("p").script("m", outcome)  # type: ignore[arg-type]


@pytest.mark.parametrize("outcome", [asyncio.CancelledError(), asyncio.CancelledError])
def test_a_scripted_cancellation_is_a_blip_while_the_caller_lives(outcome: object) -> None:
    reg = registry()
    reg.register_provider(Fake("p").script("m", outcome, "again"))  # type: ignore[arg-type]
    assert asked(reg, "p/m") == "again"


def test_a_class_of_errors_is_raised_as_one() -> None:
    reg = registry()
    reg.register_provider(Fake("p").script("m", ConnectionResetError, "again"))
    assert asked(reg, "p/m") == "again"
