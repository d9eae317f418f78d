# ruff: noqa: E501 - tables: rows are read across
"""The scoreboard: its judge can say wrong, its client reads the wire, its page is whole."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from tests.rig import run
from understudy.gateway.config import read_config
from understudy.rehearse.catalogue import CATALOGUE
from understudy.rehearse.phrases import voice
from understudy.rehearse.wire import HANG, Drip

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "bench"))  # scripts that stand beside each other, not a package

from scoreboard_client import Door, Heard, asked, read  # noqa: E402
from scoreboard_judge import (  # noqa: E402
    BY_ADDRESS,
    CHECKS,
    LARGE,
    TAIL,
    Case,
    Ought,
    Seen,
    cases,
    controls,
    judged,
)
from scoreboard_page import Score, cell, figures, summary  # noqa: E402
from scoreboard_products import (  # noqa: E402
    Stage,
    litellm_config,
    our_config,
    portkey_config,
)
from scoreboard_stage import Ports, upstreams  # noqa: E402

OWN = "hello from m"
HALF = OWN[:6]
FROM_TAIL = Seen(200, TAIL, "stop", whole=True, head=1, tail=1)
FROM_HEAD = Seen(200, OWN, "stop", whole=True)
REFUSED = Seen(400, error="temperature must be at most 2")
BROKEN = Seen(200, HALF, error="broke off")


def case(fault: str, *, stream: bool = False, dialect: str = "openai", name: str = "m") -> Case:
    return Case(CATALOGUE[fault], dialect, stream, name)


# fmt: off
RIGHT = [
    (case("503-page"), FROM_TAIL, "tail"),
    (case("503-page"), replace(FROM_TAIL, head=2), "tail"),
    (case("refused"), replace(FROM_TAIL, head=None), "tail"),
    (case("silence", stream=True), FROM_TAIL, "tail"),
    (case("401"), FROM_TAIL, "tail"),
    (case("400"), REFUSED, "status 400"),
    (case("overflow-llamacpp", stream=True), replace(REFUSED, status=500), "status 500"),
    (case("wrong-type"), FROM_HEAD, "head"),
    (case("filtered"), Seen(200, "", "content_filter", whole=True), "no text"),
    (case("duplicate-event", stream=True), replace(FROM_HEAD, text=HALF + OWN), "head"),
    (case("cut-mid-stream", stream=True), BROKEN, "part of the head, error event"),
    (case("cut-mid-stream", stream=True), FROM_TAIL, "tail"),
]
WRONG = [
    # answered by the tail, but not as it should be
    (case("400"), FROM_TAIL, "tail"),
    (case("503-page"), replace(FROM_TAIL, tail=2), "tail"),
    (case("503-page"), replace(FROM_TAIL, head=0), "tail"),
    (case("silence"), replace(FROM_TAIL, head=3), "tail, head asked 3 times"),
    (case("429-seconds"), replace(FROM_TAIL, head=2), "tail, head asked 2 times"),
    (case("503-page"), replace(FROM_TAIL, ended=False), "not ended, tail"),
    (case("503-page"), replace(FROM_TAIL, cut=True), "tail, connection cut"),
    (case("503-page", stream=True), replace(FROM_TAIL, whole=False), "tail, no end mark, no error"),
    (case("503-page", stream=True), replace(FROM_TAIL, finish=""), "tail"),
    (case("503-page", stream=True), replace(FROM_TAIL, error="no"), "tail, error, end mark"),
    (case("503-page", stream=True), replace(FROM_TAIL, text=TAIL[:9]), "part of the tail, ended as complete"),
    # not answered at all
    (case("503-page"), Seen(503, error="busy"), "status 503"),
    (case("silence"), Seen(0, ended=False), "not ended, no answer"),
    (case("reset-before-headers"), Seen(0, cut=True), "no answer"),
    # what is no answer, passed off as one
    (case("blank"), Seen(200, " \n", "stop", whole=True), "blank, ended as complete"),
    (case("empty-200", stream=True), Seen(200, "", "stop", whole=True), "no text, ended as complete"),
    (case("html-200"), Seen(200, garbled=True), "no text, unreadable bytes"),
    (case("drip"), FROM_HEAD, "head"),
    (case("error-first", stream=True), Seen(200, error="busy"), "no text, error event"),
    # broken off
    (case("cut-mid-stream", stream=True), Seen(200, HALF), "part of the head, no end mark, no error"),
    (case("cut-mid-stream", stream=True), Seen(200, HALF, cut=True), "part of the head, connection cut"),
    (case("cut-mid-stream", stream=True), Seen(200, HALF, "stop", whole=True), "part of the head, ended as complete"),
    (case("cut-mid-stream", stream=True), replace(BROKEN, whole=True), "part of the head, error, end mark"),
    (case("cut-mid-stream", stream=True), replace(BROKEN, finish="stop"), "part of the head, error event"),
    (case("cut-mid-stream", stream=True), replace(BROKEN, text=OWN), "head, error event"),
    (case("cut-mid-stream", stream=True), replace(BROKEN, text=""), "no text, error event"),
    (case("cut-mid-stream", stream=True), replace(BROKEN, tail=1), "part of the head, error event"),
    (case("cut-mid-stream", stream=True), replace(BROKEN, garbled=True), "part of the head, error event, unreadable bytes"),
    (case("cut-mid-stream", stream=True), replace(FROM_TAIL, text=HALF + TAIL), "head and tail mixed, ended as complete"),
    # refusals and answers of the head's own
    (case("400"), replace(REFUSED, status=502), "status 502"),
    (case("400"), replace(REFUSED, error=""), "status 400"),
    (case("400"), replace(REFUSED, head=2), "status 400, head asked 2 times"),
    (case("400"), replace(REFUSED, tail=1), "status 400"),
    (case("wrong-type"), FROM_TAIL, "tail"),
    (case("wrong-type"), replace(FROM_HEAD, head=2), "head, head asked 2 times"),
    (case("wrong-type"), replace(FROM_HEAD, text="hi"), "other text, ended as complete"),
    (case("filtered"), Seen(200, "", "stop", whole=True), "no text"),
]
# fmt: on


@pytest.mark.parametrize(("asked_for", "seen", "words"), RIGHT)
def test_the_judge_knows_what_is_right(asked_for: Case, seen: Seen, words: str) -> None:
    verdict = judged(asked_for, seen)
    assert (verdict.right, verdict.seen_right, verdict.words) == (True, True, words)


@pytest.mark.parametrize(("asked_for", "seen", "words"), WRONG)
def test_the_judge_knows_what_is_wrong(asked_for: Case, seen: Seen, words: str) -> None:
    verdict = judged(asked_for, seen)
    assert (verdict.right, verdict.words) == (False, words)


def test_asking_too_often_is_told_apart_from_a_wrong_answer() -> None:
    assert judged(case("silence"), replace(FROM_TAIL, head=3)).seen_right
    assert not judged(case("400"), FROM_TAIL).seen_right


def test_every_fault_is_a_case_and_every_outcome_has_a_check() -> None:
    every = cases()
    assert {each.fault.name for each in every} == set(CATALOGUE)
    assert {each.ought for each in every} == set(Ought) == set(CHECKS)
    assert len({each.name for each in every}) == len(every)


# The client


def heard(body: bytes, status: int = 200) -> Heard:
    return Heard(status, bytearray(body))


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
def test_the_client_reads_whole_answers(dialect: str) -> None:
    said = voice(dialect, "m", OWN)
    streamed = read(case("500", stream=True, dialect=dialect), heard(b"".join(said.stream())), 1.0)
    plain = read(case("500", dialect=dialect), heard(said.phrases()["answer"]), 1.0)
    for seen in (streamed, plain):
        assert (seen.text, seen.whole, seen.error, seen.garbled) == (OWN, True, "", False)
        assert seen.finish in ("stop", "end_turn")


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
def test_the_client_sees_errors_missing_ends_and_what_it_cannot_read(dialect: str) -> None:
    stream, plain = case("500", stream=True, dialect=dialect), case("500", dialect=dialect)
    said = voice(dialect, "m", OWN).phrases()
    cut = read(stream, heard(said["content"] + said["comment"]), 1.0)
    assert (cut.text, cut.whole, cut.finish, cut.garbled) == (HALF, False, "", False)
    error = read(stream, heard(said["content"] + said["error"]), 1.0)
    assert (error.text, "overloaded" in error.error, error.whole) == (HALF, True, False)
    assert read(stream, heard(said["bad event"]), 1.0).garbled
    assert read(stream, heard(said["answer"]), 1.0).garbled
    assert read(plain, heard(b"<html>"), 1.0).garbled
    assert "overloaded" in read(plain, heard(said["error body"]), 1.0).error
    assert read(plain, heard(b"busy", 503), 1.0).error == "busy"


def quick(each: Case) -> bool:
    """Shown at once, and not by an address."""
    steps = each.fault.steps(stream=each.stream) or (HANG,)
    slow = any(step is HANG or isinstance(step, Drip) for step in steps)
    return not slow and each.fault.name not in (*LARGE, *BY_ADDRESS)


def test_a_product_that_does_nothing_is_right_only_where_nothing_is_to_be_done() -> None:
    """Clients that ask the heads themselves: every fault that calls for a tail is marked wrong."""
    shown = [each for each in cases() if quick(each)]

    async def scene() -> list[tuple[Case, Seen]]:
        ports = Ports.kept(shown)
        async with upstreams(shown, ports) as everybody, aiohttp.ClientSession() as session:

            async def one(each: Case) -> tuple[Case, Seen]:
                port = int(everybody.heads[each.name].address.rpartition(":")[2])
                seen = await asked(session, Door(port, each.name), each)
                return each, everybody.counted(each, seen)

            return list(await asyncio.gather(*map(one, shown)))

    found = run(scene())
    right = {(each.fault.name, each.ought) for each, seen in found if judged(each, seen).right}
    assert {seen.head for _, seen in found} == {1}
    assert {seen.tail for _, seen in found} == {0}
    passed_on = {
        (each.fault.name, each.ought) for each in shown if each.ought in (Ought.OWN, Ought.TOLD)
    }
    translated = {("plain-for-stream", Ought.OWN)}  # no client of a stream can read it
    assert right == passed_on - translated | {("error-mid-stream", Ought.BROKEN)}


# Products and page


def test_our_configuration_names_a_chain_for_every_case() -> None:
    every = [*controls(), *cases()]
    heads = {each.name: f"http://127.0.0.1:{9000 + n}" for n, each in enumerate(every)}
    stage = Stage(Path(), every, heads, "http://127.0.0.1:8999", 3.0)
    assert set(read_config(our_config(stage, 8080), {}).aliases) == set(heads)
    listed = litellm_config(stage)["router_settings"]
    assert listed == {"fallbacks": [{name: [f"{name}-tail"]} for name in heads]}
    first = portkey_config(stage, every[0])
    assert [t["custom_host"] for t in first["targets"]] == [  # type: ignore[attr-defined]
        "http://127.0.0.1:9000/v1", "http://127.0.0.1:8999/v1",
    ]  # fmt: skip


def test_a_summary_counts_what_is_right_by_form_and_by_what_was_expected() -> None:
    tired = replace(FROM_TAIL, head=3, seconds=9.04)
    told = (("500", FROM_TAIL), ("silence", tired), ("400", FROM_TAIL))
    seen = [(case(fault, name=fault), each) for fault, each in told]
    score = Score("p", "Product", "1.0", "as shipped", seen)
    assert {row[0]: row[1] for row in summary([score])} == {
        "OpenAI chat completions, plain": "1 of 3",
        "expected: the tail's whole answer": "1 of 2",
        "expected: the head's refusal, no call of the tail": "0 of 1",
        "all": "1 of 3",
        "all, the number of calls aside": "2 of 3",
        "all, the number of calls aside, and refusals": "2 of 2",
    }
    assert cell(*seen[1]) == "✗ tail, head asked 3 times; 9.0 s; 3+1"
    page = figures(["Left out: other: no npm"], [score])
    assert "| `500` | the tail's whole answer | ✓ tail; 0.00 s; 1+1 |" in page
    assert "- Left out: other: no npm" in page


def test_the_page_has_a_row_for_every_fault_of_the_catalogue() -> None:
    page = (ROOT / "docs/scoreboard.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `")}
    assert rows == set(CATALOGUE)
