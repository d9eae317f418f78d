"""Log lines: what is told of a failover, of its end, and of every request (contract G3)."""

from __future__ import annotations

import json

import pytest

from tests.gateway.desk import (
    HELLO,
    HELLO_STREAM,
    Heard,
    Plays,
    Served,
    Told,
    Upstream,
    aliases,
    always,
    answer,
    fronted,
    in_turn,
    never,
    provider,
    says,
    serving,
)
from tests.rig import run
from understudy.core.faults import Fault
from understudy.core.target import Attempt
from understudy.observe.lines import TOGETHER, LogLines
from understudy.observe.record import Opening, Record

ONCE = "[policy]\ntransient_retries = 0\n"


def told(served: Served) -> tuple[int, int, int]:
    names = ("failover", "failover_recovered", "failover_abort")
    found = [len(served.events(name)) for name in names]
    return found[0], found[1], found[2]


@pytest.mark.parametrize("stream", [False, True])
def test_stall_503_success_is_two_failovers_one_recovery_and_no_abort(stream: bool) -> None:
    async def work() -> tuple[list[Told], tuple[int, int, int]]:
        good = always(HELLO_STREAM) if stream else always()
        async with (
            Upstream(never) as dead,
            Upstream(lambda _: says(503, "overloaded")) as down,
            Upstream(good) as up,
        ):
            text = (
                ONCE
                + provider("dead", dead.url, response_timeout=0.05, first_byte_timeout=0.05)
                + provider("down", down.url)
                + provider("up", up.url)
                + aliases(chat="dead/a, down/b/c, up/d")
            )
            async with serving(text) as served:
                body = {**HELLO, "model": "chat", "stream": stream}
                given = {"x-request-id": "mine-1"}
                heard = await served.ask("POST", "/v1/chat/completions", body, given)
                assert (heard.status, heard.headers["x-request-id"]) == (200, "mine-1")
                return served.lines, told(served)

    lines, counts = run(work())
    assert counts == (2, 1, 0)
    stall, refused, recovered, request = lines
    flag = {"stream": True} if stream else {}
    assert stall | {"at": 0, "latency_ms": 0, "error_snippet": ""} == {
        "event": "failover", "level": "warning", "at": 0, "request_id": "mine-1",
        "provider": "dead", "model": "a", "attempt": 1, "error_class": "stall_pre_first_byte",
        "http_status": None, "then": "advance", "next_provider": "down", "next_model": "b/c",
        "error_snippet": "", "latency_ms": 0, **flag,
    }  # fmt: skip
    assert "stall (pre_first_byte)" in str(stall["error_snippet"])
    assert refused | {"at": 0, "latency_ms": 0} == {
        "event": "failover", "level": "warning", "at": 0, "request_id": "mine-1",
        "provider": "down", "model": "b/c", "attempt": 2, "error_class": "transient",
        "http_status": 503, "then": "advance", "next_provider": "up", "next_model": "d",
        "error_snippet": "overloaded", "latency_ms": 0, **flag,
    }  # fmt: skip
    assert recovered | {"at": 0} == {
        "event": "failover_recovered", "level": "info", "at": 0, "request_id": "mine-1",
        "recovered_on": "up/d", "attempts": 3, "prev_error_class": "transient", **flag,
    }  # fmt: skip
    assert (request["event"], request["status"], request["outcome"]) == ("request", 200, "ok")
    assert (request["attempts"], request["target"]) == (3, "up/d")


def test_a_retry_that_succeeds_is_a_failover_and_a_recovery() -> None:
    async def work() -> tuple[int, int, int]:
        async with fronted(in_turn(says(503), Plays(200, answer()))) as (served, _):
            assert (await served.chat()).status == 200
            assert [line["then"] for line in served.events("failover")] == ["retry"]
            return told(served)

    assert run(work()) == (1, 1, 0)


@pytest.mark.parametrize(
    ("plays", "counts", "then"),
    [
        (says(400, "bad field"), (0, 0, 1), "stop"),
        (says(503), (1, 0, 1), "exhausted"),
        (says(429, retry_after="30"), (0, 0, 1), "exhausted"),
    ],
)
def test_a_request_that_fails_has_exactly_one_abort(
    plays: Plays, counts: tuple[int, int, int], then: str
) -> None:
    async def work() -> None:
        async with fronted(lambda _: plays) as (served, _):
            heard = await served.chat()
            assert heard.status == plays.status
            assert told(served) == counts
            [abort] = served.events("failover_abort")
            assert (abort["level"], abort["then"]) == ("error", then)
            assert abort["request_id"] == heard.headers["x-request-id"]

    run(work())


def test_a_chain_that_is_benched_whole_aborts_without_a_single_failover() -> None:
    async def work() -> None:
        async with Upstream(lambda _: says(503)) as up:
            text = "[policy]\nmax_wait = 0\n" + provider("p", up.url) + aliases(chat="p/m")
            async with serving(text) as served:
                await served.chat()
                before = told(served)
                await served.chat()
                assert (before, told(served)) == ((1, 0, 1), (1, 0, 2))
                assert len(up.asked) == 2

    run(work())


def test_a_request_that_is_wrong_in_itself_is_no_failover() -> None:
    written: list[bytes] = []
    lines = LogLines(written.append, lambda: 1.0)
    opening = Opening("r", "openai", "chat", False, "", 0.0)
    lines.finished(Record(opening, 400, "failed", 0.1, reason="$.messages: expected an array"))
    [line] = map(json.loads, written)
    assert (line["event"], line["reason"]) == ("request", "$.messages: expected an array")


def test_attempts_are_numbered_from_one_and_a_skip_is_none() -> None:
    async def work() -> None:
        async with Upstream(lambda _: says(503)) as up:
            text = ONCE + provider("p", up.url) + aliases(chat="p/a, p/b, p/c")
            async with serving(text) as served:
                served.runtime.gateway.house.registry.health.bench("p/a", 60)
                await served.chat()
                [moved], [over] = (served.events(f"failover{x}") for x in ("", "_abort"))
                assert (moved["model"], moved["attempt"], moved["next_model"]) == ("b", 1, "c")
                assert (over["model"], over["attempt"], over["next_model"]) == ("c", 2, "")

    run(work())


def test_a_chain_whose_last_target_is_passed_over_aborts_once() -> None:
    async def work() -> None:
        async with Upstream(lambda _: says(503, "away")) as up:
            text = ONCE + provider("p", up.url) + aliases(chat="p/a, p/b")
            async with serving(text) as served:
                served.runtime.gateway.house.registry.health.bench("p/b", 60, "mending")
                await served.chat()
                assert told(served) == (1, 0, 1)
                [over] = served.events("failover_abort")
                assert (over["model"], over["then"], over["http_status"]) == (
                    "b", "exhausted", 503,
                )  # fmt: skip
                assert "mending" in str(over["error_snippet"])

    run(work())


def test_a_stream_that_breaks_after_content_aborts() -> None:
    async def work() -> None:
        async with fronted(always(HELLO_STREAM[:1])) as (served, _):
            body = {**HELLO, "model": "chat", "stream": True}
            heard = await served.ask("POST", "/v1/chat/completions", body)
            assert b"[DONE]" not in heard.body
            assert told(served) == (0, 0, 1)
            [request] = served.events("request")
            assert (request["status"], request["outcome"]) == (200, "broken")

    run(work())


def test_a_snippet_is_cut_at_200_characters() -> None:
    async def work() -> None:
        async with fronted(lambda _: says(500, "é" * 1000)) as (served, _):
            await served.chat("p/" + "m" * 500)
            for line in served.lines:
                texts = [v for v in line.values() if isinstance(v, str)]
                assert max(map(len, texts)) <= 200
            assert served.events("failover")[0]["error_snippet"] == "é" * 200

    run(work())


@pytest.mark.parametrize("given", ["", "x" * 129, "smörgås"])
def test_an_id_that_is_no_id_is_replaced(given: str) -> None:
    async def work() -> Heard:
        async with serving(aliases(chat="openai/m")) as served:
            line = {"x-request-id": given.encode("utf-8").decode("latin-1")} if given else {}
            return await served.ask("POST", "/v1/chat/completions", {}, line)

    heard = run(work())
    assert heard.status == 400
    assert heard.headers["x-request-id"] not in ("", given)


def test_every_request_has_its_line_also_those_we_refuse() -> None:
    async def work() -> list[tuple[object, object, object]]:
        text = '[gateway]\nkeys = ["sk-a"]\n' + aliases(chat="openai/m")
        async with serving(text) as served:
            key = {"authorization": "Bearer sk-a"}
            await served.chat()
            await served.chat("nobody", **key)
            await served.ask("POST", "/v1/chat/completions", b"{", key)
            await served.ask("POST", "/v1/nothing", {}, key)
            await served.ask("GET", "/favicon.ico")
            await served.ask("GET", "/v1/chat/completions")
            return [(x["status"], x["outcome"], x["key"]) for x in served.events("request")]

    assert run(work()) == [
        (401, "refused", ""),
        (400, "refused", "client1"),
        (400, "refused", "client1"),
        (404, "refused", "client1"),
        (404, "refused", ""),
        (405, "refused", ""),
    ]


def test_the_access_log_may_be_turned_off_and_failovers_are_still_told() -> None:
    async def work() -> None:
        async with Upstream(lambda _: says(503)) as up:
            text = "[gateway]\naccess_log = false\n" + provider("p", up.url) + aliases(chat="p/m")
            async with serving(text) as served:
                await served.chat()
                assert served.events("request") == []
                assert told(served) == (1, 0, 1)

    run(work())


def test_a_bench_and_its_end_are_told_in_the_words_of_the_ledger() -> None:
    async def work() -> None:
        async with Upstream(lambda _: says(503)) as up:
            text = provider("p", up.url) + aliases(chat="p/m")
            async with serving(text) as served:
                health = served.runtime.gateway.house.registry.health
                await served.chat()
                (line,) = served.events("benched")
                assert (line["level"], line["key"], line["source"]) == ("warning", "p/m", "rule")
                assert line["reason"] == "benched for transient, 5 s left of 5 s"
                heard = await served.chat()
                reasons = served.events("request")[1]["reasons"]
                assert isinstance(reasons, dict)
                assert reasons["p/m"] in str(heard.error["message"])
                health.unbench("p/m")
                health.unbench("p/m")
                assert [line["key"] for line in served.events("cleared")] == ["p/m"]

    run(work())


def test_a_reader_that_fails_spoils_no_answer_and_is_told_of() -> None:
    class Bad:
        def attempt(self, opening: Opening, attempt: Attempt, number: int) -> None:
            raise RuntimeError("sk-secret in an attempt")

        def finished(self, record: Record) -> None:
            raise ValueError("sk-secret at the end")

    async def work() -> None:
        answers = iter([says(503)])
        async with fronted(lambda peer: next(answers, None) or always()(peer)) as (served, _):
            gateway = served.runtime.gateway
            gateway.told_to(*gateway.readers, Bad())
            assert (await served.chat()).status == 200
            bugs = served.events("internal_error")
            assert [line["kind"] for line in bugs] == ["RuntimeError", "ValueError"]
            assert "sk-secret" not in str(served.lines)

    run(work())


def test_a_bench_without_end_is_told_in_words() -> None:
    written: list[bytes] = []
    lines = LogLines(written.append, lambda: 1.0)
    opening = Opening("r", "openai", "chat", False, "", 0.0)
    fault = Fault.OUT_OF_CREDITS
    lines.attempt(opening, Attempt("p/m", "failed", fault, benched=float("inf")), 1)
    lines.attempt(opening, Attempt("p/m", "failed", fault, benched=2.5), 1)
    told = [json.loads(line)["benched_s"] for line in written]
    assert told == ["until cleared", 2.5]


def test_lines_are_gathered_and_written_together() -> None:
    written: list[bytes] = []
    due: list[object] = []
    lines = LogLines(written.append, lambda: 1.0, later=due.append)
    for n in range(5000):
        lines.note("counted", n=n, padding="x" * 200)
    assert len(written) == 1  # the first megabyte did not wait
    assert TOGETHER <= len(written[0]) < TOGETHER + 1000
    lines.flush()
    lines.flush()
    assert len(written) == 2
    told = [json.loads(line)["n"] for line in b"".join(written).splitlines()]
    assert told == list(range(5000))
    assert len(due) == 2


def test_a_line_that_cannot_be_written_leaves_no_trace_and_keeps_nobody_back() -> None:
    written: list[bytes] = []
    due: list[object] = []
    lines = LogLines(written.append, lambda: 1.0, later=due.append)
    with pytest.raises(UnicodeEncodeError):
        lines.note("odd", padding="x" * 5000, text="\ud800")
    lines.note("well")
    assert len(due) == 1
    lines.flush()
    assert [json.loads(line)["event"] for line in b"".join(written).splitlines()] == ["well"]
