"""What operators do at a running gateway, and what they are told when it is not there."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.cli.stage import Terminal, aside, call, closed_port, visit, whole_gateway
from tests.gateway.desk import Upstream, always
from tests.served import house, listening
from understudy.commands.orders import sentence
from understudy.commands.parser import Unreachable
from understudy.commands.remote import Desk, Told
from understudy.commands.screen import Screen
from understudy.commands.status import Counts, Look, headline, look, show, status, word
from understudy.testing import Fake

KEYED = """
[gateway]
admin_key = "boss-key"
[providers.a]
base_url = "http://127.0.0.1:9"
[aliases]
chat = "a/x"
"""


def test_the_status_tells_who_is_benched_why_and_what_was_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with aside(whole_gateway()) as address:
        visit(address)
        said = call(capsys, "status", "--url", address)
    head, _, *rows = said.out.splitlines()
    assert head == (
        "ready, policy availability, 0 in flight, 1 request, 1 failover, 0 failed; 1 benched"
    )
    assert rows[1].startswith("lead/opera  benched  benched for transient, ")
    cells = [row.split() for row in rows]
    assert ["lead/opera", "0", "2", "0", "1"] in cells
    assert ["understudy/aria", "1", "0", "0", "0"] in cells
    assert cells[-1][2:] == ["bench", "lead/opera", "5", "s", "transient", "by", "rule"]


def test_who_sits_out_now_comes_before_those_who_failed_once() -> None:
    def marked(**state: object) -> Told:
        return {"benched": False, "probing": False, "bench": {}, "reason": "why", **state}

    keys = {
        "a/once": marked(bench=None),
        "b/over": marked(),
        "c/asked": marked(probing=True),
        "d/out": marked(benched=True),
    }
    health: Told = {"status": "ready", "policy": "p", "in_flight": 0, "keys": keys, "ledger": []}
    out = io.StringIO()
    show(Look(health, Counts()), None, Screen(out, out))
    table = out.getvalue().splitlines()[-4:]
    assert [row.split()[:2] for row in table] == [
        ["d/out", "benched"],
        ["c/asked", "probing"],
        ["b/over", "unproven"],
        ["a/once", "counting"],
    ]


def test_the_url_may_come_from_the_environment(capsys: pytest.CaptureFixture[str]) -> None:
    with aside(whole_gateway()) as address:
        said = call(capsys, "status", "--json", env={"UNDERSTUDY_URL": f"{address}/understudy/"})
    told = json.loads(said.out)
    assert (said.code, told["status"], told["keys"], told["targets"]) == (0, "ready", {}, {})
    assert told["requests_per_second"] is None


def test_a_bench_shows_in_plan_and_status_with_its_reason_until_it_is_lifted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with aside(whole_gateway()) as address:
        at = ("--url", address)
        said = call(capsys, "bench", "house/piano", "--for", "10m", "--why", "a deploy", *at)
        told = "benched by an operator, 600 s left of 600 s: a deploy"
        assert said.out == f"house/piano: {told}\n"
        plan = call(capsys, "plan", "demo", *at)
        assert f"3. house/piano      skip  {told}" in plan.out
        assert told in call(capsys, "status", *at).out
        assert call(capsys, "unbench", "house/piano", *at).out == "house/piano: cleared\n"
        again = call(capsys, "unbench", "house/piano", *at)
        assert again.out == "house/piano: nothing was held against it\n"
        assert "house/piano      try" in call(capsys, "plan", "demo", *at).out


def test_a_gateway_plans_a_request_within_its_own_time(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked = tmp_path / "request.json"
    asked.write_text(json.dumps({"model": "x", "messages": [{"role": "user", "content": "hi"}]}))
    with aside(whole_gateway()) as address:
        call(capsys, "bench", "lead/opera", "--for", "10m", "--why", "a deploy", "--url", address)
        live = ("--request", str(asked), "--timeout", "1m", "--url", address)
        said = call(capsys, "plan", "demo", *live)
        asked.write_text("{}")
        wrong = call(capsys, "plan", "demo", *live)
    assert said.out.splitlines()[1:] == [
        "2. understudy/aria  try   healthy, up to 2 attempts, 30 s",
        "3. house/piano      try   healthy, up to 2 attempts, 30 s",
        "policy availability, at worst 4 attempts",
    ]
    assert "skip  benched by an operator" in said.out.splitlines()[0]
    assert wrong.code == 2
    assert "request: the request has none of contents, input, messages" in wrong.err


def test_orders_answer_in_json_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    with aside(whole_gateway()) as address:
        at = ("--url", address, "--json")
        benched = json.loads(call(capsys, "bench", "house/piano", "--for", "1h", *at).out)
        cleared = json.loads(call(capsys, "unbench", "house/piano", *at).out)
        plan = json.loads(call(capsys, "plan", "steady", *at).out)
    assert benched["state"]["bench"]["seconds"] == 3600
    assert cleared == {"key": "house/piano", "cleared": True}
    assert plan["head"] == "understudy/aria"


def test_nobody_to_call_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    with aside(whole_gateway()) as address:
        for key in ("understudy/aria", "house/piano"):
            call(capsys, "bench", key, "--for", "10m", "--url", address)
        said = call(capsys, "plan", "steady", "--url", address)
    assert said.code == 1
    assert said.out.splitlines()[-1] == "nobody would be called"


@pytest.mark.parametrize(
    ("flags", "env", "refused"),
    [
        ((), {}, "send the admin key as Authorization: Bearer"),
        (("--admin-key", "wrong"), {}, "this admin key is not the gateway's"),
        (("--admin-key", "boss-key"), {}, ""),
        ((), {"UNDERSTUDY_ADMIN": "boss-key"}, ""),
    ],
)
def test_the_admin_key_comes_from_a_flag_or_the_environment(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    flags: tuple[str, ...],
    env: dict[str, str],
    refused: str,
) -> None:
    file = tmp_path / "understudy.toml"
    file.write_text(KEYED)
    with aside(whole_gateway(file)) as address:
        said = call(capsys, "status", "--url", address, *flags, env=env)
    assert said.code == (2 if refused else 0)
    assert said.err.partition("\n")[0] == (
        f"error: the gateway refuses us: {refused}" if refused else ""
    )
    assert "wrong" not in said.err


@pytest.mark.parametrize(
    "argv",
    [("status",), ("plan", "a/x"), ("bench", "a/x", "--for", "1m"), ("unbench", "a/x")],
    ids=lambda argv: argv[0],
)
def test_a_gateway_that_is_not_there_is_one_line_and_code_three(
    capsys: pytest.CaptureFixture[str], argv: tuple[str, ...]
) -> None:
    with closed_port() as port:
        said = call(capsys, *argv, "--url", f"http://127.0.0.1:{port}")
    why = f"127.0.0.1:{port} refused the connection"
    assert (said.code, said.out) == (3, "")
    assert said.err.splitlines()[0] == f"error: no gateway at http://127.0.0.1:{port}: {why}"


def test_something_else_that_answers_is_no_gateway(capsys: pytest.CaptureFixture[str]) -> None:
    with aside(listening(house(Fake("p")))) as address:  # surfaces, but nothing for operators
        said = call(capsys, "status", "--url", address)
    assert said.code == 3
    assert "is no gateway of ours (status 404)" in said.err


@asynccontextmanager
async def polite() -> AsyncIterator[str]:
    """Some model servers say 200 and an object whatever the path."""
    async with Upstream(always(b'{"error": "Unexpected endpoint or method."}')) as up:
        yield up.url.removesuffix("/v1")


@pytest.mark.parametrize(
    "argv",
    [("status",), ("plan", "a/x"), ("bench", "a/x", "--for", "1m"), ("unbench", "a/x")],
    ids=lambda argv: argv[0],
)
def test_whoever_says_yes_to_everything_is_no_gateway_and_no_bug_of_ours(
    capsys: pytest.CaptureFixture[str], argv: tuple[str, ...]
) -> None:
    with aside(polite()) as address:
        said = call(capsys, *argv, "--url", address)
    assert said.code == 3
    assert "is no gateway of ours (status 200)" in said.err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["bench", "nobody/x", "--for", "1m"],
         "key: unknown provider 'nobody'; known here: house, lead, understudy"),
        (["bench", "opnai/x", "--for", "1m"],
         "key: unknown provider 'opnai'; did you mean 'openai'?"),
        (["bench", "huose#default", "--for", "1m"],
         "key: unknown provider 'huose'; did you mean 'house'?"),
        (["bench", "lead/x, nobody/y", "--for", "1m"],
         "key: name one provider/model, not 'lead/x, nobody/y'"),
        (["bench", "demo", "--for", "1m"], "key: name one provider/model, not 'demo'"),
        (["plan", "thinking"], "model: unknown alias 'thinking'"),
        (["bench", "a/x"], "the following arguments are required: --for"),
        (["bench", "a/x", "--for", "0s"], "'0s' is no time"),
        (["plan", "a/x", "--config", "c"], "--config cannot be given with --url"),
        (["plan", "demo", "--request", "/dev/null"], "the request is no JSON"),
        (["status", "--watch", "--fail-if-benched"], "--fail-if-benched cannot be given with"),
    ],
)  # fmt: skip
def test_what_the_gateway_or_the_parser_refuses_is_wrong_input(
    capsys: pytest.CaptureFixture[str], argv: list[str], said: str
) -> None:
    with aside(whole_gateway()) as address:
        told = call(capsys, *argv, "--url", address)
    assert (told.code, told.out) == (2, "")
    assert said in told.err.splitlines()[0]


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "http://", "http://u:p@h", "ftp://h"])
def test_an_address_that_is_none_is_wrong_usage(
    capsys: pytest.CaptureFixture[str], url: str
) -> None:
    said = call(capsys, "status", "--url", url)
    assert said.code == 2
    assert "http://127.0.0.1:8080" in said.err
    assert said.err.startswith(f"error: {url.replace('u:p', '…')!r}: a base URL ")
    assert ":p@" not in said.err


def test_a_script_may_ask_whether_anybody_is_benched(capsys: pytest.CaptureFixture[str]) -> None:
    with aside(whole_gateway()) as address:
        asked = ("status", "--url", address, "--fail-if-benched", "--json")
        before = call(capsys, *asked)
        call(capsys, "bench", "house/piano", "--for", "10m", "--url", address)
        after = call(capsys, *asked)
        plain = call(capsys, "status", "--url", address)
    assert [said.code for said in (before, after, plain)] == [0, 1, 0]
    assert list(json.loads(after.out)["keys"]) == ["house/piano"]


def test_watching_tells_rates_between_two_looks() -> None:
    async def story() -> str:
        async with whole_gateway() as address:
            desk = Desk(address, None, {})
            before = await look(desk)
            await asyncio.to_thread(visit, address)
            after = await look(desk)
            return headline(_at(after, before.counts.at + 2.0), before)

    assert "1 request (0.5 a second)" in asyncio.run(story())


def _at(look: Look, at: float) -> Look:
    counts = look.counts
    return Look(look.health, Counts(at, counts.requests, counts.attempts, counts.failovers))


class Enough(Exception):
    """The third page was turned."""


class Pages(Terminal):
    """A terminal whose user interrupts at the third page."""

    def write(self, text: str) -> int:
        if text.startswith("\x1b[H") and self.getvalue().count("\x1b[H") == 2:
            raise Enough
        return super().write(text)


def test_watching_goes_on_until_interrupted() -> None:
    out = Pages()
    with aside(whole_gateway()) as address:
        desk = Desk(address, None, {})
        with pytest.raises(Enough):
            status(desk, Screen(out, out), as_json=False, every=0.001)
    _, *pages = out.getvalue().split("\x1b[H\x1b[2J")
    assert [page.split(",")[0] for page in pages] == ["ready", "ready"]


class Flaky(Desk):
    """A gateway that is away at the second look."""

    looks = 0

    async def ask(self, path: str, *, has: str) -> Told:
        self.looks += 1
        if self.looks == 2:
            raise Unreachable("no gateway at home")
        return await super().ask(path, has=has)


@pytest.mark.parametrize("as_json", [False, True])
def test_a_gateway_that_goes_away_while_watched_is_told_and_comes_back(as_json: bool) -> None:
    out = Pages()
    lines = Until("ready", times=2)
    screen = Screen(lines if as_json else out, out)
    with aside(whole_gateway()) as address:
        desk = Flaky(address, None, {})
        with pytest.raises(Enough):
            status(desk, screen, as_json=as_json, every=0.001)
    if as_json:
        assert [json.loads(line).get("error") for line in lines.getvalue().splitlines()] == [
            None,
            "no gateway at home",
        ]
    else:
        assert out.getvalue().split("\x1b[H\x1b[2J")[2] == "error: no gateway at home\n"


class Until(io.StringIO):
    """A pipe whose reader has enough when a word comes for the last time."""

    def __init__(self, word: str, times: int) -> None:
        super().__init__()
        self.word, self.times = word, times

    def write(self, text: str) -> int:
        self.times -= self.word in text
        if not self.times:
            raise Enough
        return super().write(text)


def test_metrics_are_read_with_quotes_and_strangers_in_them() -> None:
    text = "\n".join([
        "# HELP understudy_attempts_total Attempts.",
        'understudy_attempts_total{target="p/\\"a\\", b",fault="ok"} 3',
        'understudy_attempts_total{target="p/x",fault="rate_limit"} 2',
        'understudy_requests_total{surface="openai",status="200",outcome="ok"} 4',
        'understudy_requests_total{surface="openai",status="503",outcome="failed"} 1',
        'understudy_failovers_total{target="p/x"} 2',
        'process_cpu_seconds_total 7',
        "not a sample at all",
    ])  # fmt: skip
    counts = Counts.read(text, 0.0)
    assert counts.requests == {"ok": 4, "failed": 1}
    assert counts.targets == ['p/\\"a\\", b', "p/x"]
    assert counts.of("p/x") == {"ok": 0, "failed": 2, "skipped": 0, "failovers": 2}


@pytest.mark.parametrize(
    ("benched", "probing", "bench", "told"),
    [
        (True, False, {}, "benched"),
        (False, True, {}, "probing"),
        (False, False, {}, "unproven"),
        (False, False, None, "counting"),
    ],
)
def test_the_state_of_a_key_is_one_word(
    benched: bool, probing: bool, bench: object, told: str
) -> None:
    assert word({"benched": benched, "probing": probing, "bench": bench}) == told


def test_an_order_without_a_state_is_still_a_sentence() -> None:
    assert sentence({"key": "a/x", "state": None}) == "a/x: nothing was held against it"
