"""The ledger of `understudy status` says who was benched, for how long, and who cleared a key."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.error import HTTPError

import pytest

from tests.cli.stage import aside, call, visit, whole_gateway
from understudy.core.faults import Fault
from understudy.core.health import Bench, Change
from understudy.gateway.admin import TRACKED, News
from understudy.gateway.runtime import Runtime
from understudy.gateway.setup import Setup
from understudy.testing import Fake


def ledger(out: str) -> list[list[str]]:
    """Its lines without the time, the newest first."""
    rows = [line.split() for line in out.splitlines()]
    head = next(n for n, row in enumerate(rows) if row[:2] == ["ago", "ledger"])
    return [row[2:] for row in rows[head + 1 :]]


def test_a_clearing_by_hand_is_told_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    with aside(whole_gateway()) as address:
        at = ("--url", address)
        call(capsys, "bench", "house/piano", "--for", "10m", *at)
        call(capsys, "unbench", "house/piano", *at)
        told = ledger(call(capsys, "status", *at).out)
    assert told[0] == ["clear", "house/piano", "by", "operator"]


@pytest.mark.parametrize(
    ("given", "told"), [("10m", "600 s"), ("1778s", "29 min 38 s"), ("3d", "3 d")]
)
def test_the_length_of_a_bench_can_be_read(
    capsys: pytest.CaptureFixture[str], given: str, told: str
) -> None:
    with aside(whole_gateway()) as address:
        said = call(capsys, "bench", "house/piano", "--for", given, "--url", address)
        [line] = ledger(call(capsys, "status", "--url", address).out)
    assert said.out.endswith(f" left of {told}\n")
    assert " ".join(line) == f"bench house/piano {told} by operator"


@asynccontextmanager
async def shaky() -> AsyncIterator[str]:
    """A gateway whose one target fails once before it answers, and then twice."""
    runtime = Runtime(Setup(None, "127.0.0.1", 0, {}), lambda _: None)
    fake = Fake("shaky").script("m", 503, "hello", 503, 503)
    runtime.gateway.house.registry.register_provider(fake)
    port = await runtime.server.listen("127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await runtime.server.close()


def test_a_success_after_a_single_failure_is_no_news(capsys: pytest.CaptureFixture[str]) -> None:
    with aside(shaky()) as address:
        at = ("--url", address)
        visit(address, "shaky/m")
        quiet = json.loads(call(capsys, "status", "--json", *at).out)
        with pytest.raises(HTTPError):
            visit(address, "shaky/m")
        told = ledger(call(capsys, "status", *at).out)
    assert (quiet["ledger"], quiet["targets"]["shaky/m"]["failed"]) == ([], 1)
    assert [row[:2] for row in told] == [["bench", "shaky/m"]]


def bench(key: str) -> Change:
    return Change("bench", key, Bench(key, 0.0, 5.0, Fault.TRANSIENT))


def clear(key: str, source: str = "success") -> Change:
    return Change("clear", key, source=source)


def test_only_the_end_of_a_bench_is_news_and_what_a_person_orders() -> None:
    news = News()
    story = [clear("p/a"), bench("p/a"), clear("p/a"), clear("p/a"), clear("p/a", "operator")]
    assert [news.has(change) for change in story] == [False, True, True, False, True]
    assert not news.has(clear("p/a", "remote"))


def test_keys_without_end_are_not_remembered_without_end() -> None:
    news = News()
    for n in range(TRACKED + 1):
        news.has(bench(f"p/{n}"))
    assert [news.has(clear("p/0")), news.has(clear(f"p/{TRACKED}"))] == [False, True]
