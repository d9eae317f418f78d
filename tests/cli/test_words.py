"""A skip is told in the same words by plan, story, error, answer, log line and status."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.cli.stage import aside, call, whole_gateway
from understudy.core.errors import ChainExhausted
from understudy.core.faults import Fault
from understudy.core.health import Bench
from understudy.core.words import in_seconds, nearest
from understudy.gateway.refusals import of_error
from understudy.observe.lines import LogLines
from understudy.observe.record import Opening, Record
from understudy.registry import Registry
from understudy.testing import Fake, ManualClock


def benched(bench: Bench) -> tuple[Registry, ChainExhausted]:
    """A registry whose one target is benched so, and what asking it raises."""
    registry = Registry(env={}, clock=ManualClock(10.0))
    registry.register_provider(Fake("p"))
    registry.health.hold(bench)
    with pytest.raises(ChainExhausted) as raised:
        asyncio.run(registry.parse("p/a").generate("hi"))
    return registry, raised.value


@pytest.mark.parametrize(
    "bench",
    [
        Bench("p/a", 8.0, 13.0, Fault.TRANSIENT),
        Bench("p/a", 8.0, 68.0, Fault.RATE_LIMIT, source="header"),
        Bench("p/a", 8.0, float("inf"), Fault.OUT_OF_CREDITS),
        Bench("p/a", 8.0, 608.0, source="operator", why="a deploy"),
        Bench("p/a", 8.0, 13.0, Fault.TRANSIENT, source="remote"),
    ],
    ids=lambda bench: f"{bench.source} {bench.fault}",
)
def test_everybody_says_why_in_the_same_words(bench: Bench) -> None:
    sentence = bench.sentence(10.0)
    registry, error = benched(bench)
    assert registry.health.snapshot()["p/a"].reason == sentence
    assert registry.parse("p/a").plan().lines[0].reason == sentence
    assert [a.reason for a in error.attempts] == [f"skipped, {sentence}"]
    assert f"skipped, {sentence}" in str(error)
    assert f"skipped, {sentence}" in of_error(error, "openai").message
    lines: list[bytes] = []
    opening = Opening("r1", "openai", "p/a", False, "", 0.0)
    reason = of_error(error, "openai").message
    record = Record(opening, 503, "failed", 0.1, error.attempts, reason=reason)
    LogLines(lines.append, lambda: 0.0, access=False).finished(record)
    assert [json.loads(line)["error_snippet"] for line in lines] == [reason]


def test_status_and_plan_of_a_gateway_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    with aside(whole_gateway()) as address:
        at = ("--url", address, "--json")
        bench = json.loads(call(capsys, "bench", "house/piano", "--for", "1h", *at).out)
        status = json.loads(call(capsys, "status", *at).out)
        plan = json.loads(call(capsys, "plan", "house/piano", *at).out)
    told = [
        bench["state"]["reason"],
        status["keys"]["house/piano"]["reason"],
        plan["targets"][0]["reason"],
    ]
    # Time goes on between the three: the rest is the same.
    assert {words.split(",")[0] for words in told} == {"benched by an operator"}


@pytest.mark.parametrize("clock", [65159.646, 571.907, 2545.561, 64229.794])
@pytest.mark.parametrize(
    ("given", "told"), [(600.0, "600 s"), (1800.0, "30 min"), (86_400.0, "1 d")]
)
def test_a_length_is_told_as_it_was_ordered_whatever_the_clock(
    clock: float, given: float, told: str
) -> None:
    assert in_seconds(clock + given - clock) == told


def test_what_was_meant_is_asked_whatever_its_capitals_and_never_of_a_novel() -> None:
    assert nearest("OPNAI", ["ollama", "OpenAI"]) == "OpenAI"
    assert nearest("x" * 81, ["x" * 80]) == nearest("zzz", ["ollama"]) == nearest("", []) == ""
