"""`ask`: the answer goes to stdout, the story to stderr, and a failure is told in one line."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

import understudy
from tests.cli.stage import aside, call, closed_port, dsn, whole_gateway
from tests.gateway.desk import Upstream, always, answer, provider
from tests.rig import run
from tests.served import house, listening
from understudy.testing import Chunks, Fake


def test_the_answer_is_data_and_the_story_is_beside_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake = Fake("p").script("a", "good evening")
    with aside(listening(house(fake))) as address, closed_port() as port:
        env = {"LLM_UP": dsn(address), "LLM_DOWN": f"llama-swap://127.0.0.1:{port}"}
        said = call(capsys, "ask", "down/x, up/p/a", "hello", env=env)
    assert (said.code, said.out) == (0, "good evening\n")
    story = [line.split()[:2] for line in said.err.splitlines()]
    assert story == [
        ["target", "result"],
        ["down/x", "transient"],
        ["down/x", "transient"],
        ["up/p/a", "ok"],
    ]
    assert f"127.0.0.1:{port} refused the connection, benched for 5 s  advance" in said.err


@pytest.mark.parametrize("flags", [(), ("--no-stream",)])
def test_system_and_prompt_reach_the_target(
    capsys: pytest.CaptureFixture[str], flags: tuple[str, ...]
) -> None:
    fake = Fake("p")
    with aside(listening(house(fake))) as address:
        env = {"LLM_UP": dsn(address)}
        call(capsys, "ask", "up/p/a", "hello", "--system", "be brief", *flags, env=env)
    ((_, request),) = fake.calls
    assert [(m.role, m.text) for m in request.messages] == [
        ("system", "be brief"),
        ("user", "hello"),
    ]


def test_a_dash_reads_the_prompt_from_stdin(capsys: pytest.CaptureFixture[str]) -> None:
    fake = Fake("p")
    before, sys.stdin = sys.stdin, io.StringIO("a long question\nof two lines")
    try:
        with aside(listening(house(fake))) as address:
            call(capsys, "ask", "up/p/a", "-", env={"LLM_UP": dsn(address)})
    finally:
        sys.stdin = before
    assert fake.calls[0][1].messages[0].text == "a long question\nof two lines"


@pytest.mark.parametrize("flags", [(), ("--no-stream",)])
def test_when_nobody_can_answer_the_code_is_one_and_every_reason_is_told(
    capsys: pytest.CaptureFixture[str], flags: tuple[str, ...]
) -> None:
    fake = Fake("p").script("a", 503, 503).script("b", 429)
    with aside(listening(house(fake))) as address:
        said = call(capsys, "ask", "up/p/a, up/p/b", "hi", *flags, env={"LLM_UP": dsn(address)})
    assert (said.code, said.out) == (1, "")
    last = said.err.splitlines()[-1]
    assert last.startswith("error: no target could answer: up/p/a: ")
    assert "up/p/b: " in last


def test_a_stop_is_told_with_its_story(capsys: pytest.CaptureFixture[str]) -> None:
    said = call(capsys, "ask", "openai/gpt-5.5, ollama/x", "hello")
    assert (said.code, said.out) == (1, "")
    assert "openai/gpt-5.5  auth" in said.err
    assert "set OPENAI_API_KEY" in said.err.splitlines()[-1]


def test_a_broken_stream_ends_its_line_and_is_a_failure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake = Fake("p").script("a", Chunks("half an an", RuntimeError("cut")))
    with aside(listening(house(fake))) as address:
        said = call(capsys, "ask", "up/p/a, up/p/b", "hi", env={"LLM_UP": dsn(address)})
    assert (said.code, said.out) == (1, "half an an\n")
    assert said.err.splitlines()[-1].startswith("error: failover[up/")


@pytest.mark.parametrize("flags", [(), ("--no-stream",)])
def test_json_holds_answer_and_story(
    capsys: pytest.CaptureFixture[str], flags: tuple[str, ...]
) -> None:
    fake = Fake("p").script("a", "hello")
    with aside(listening(house(fake))) as address:
        said = call(capsys, "ask", "--json", "up/p/a", "hi", *flags, env={"LLM_UP": dsn(address)})
    told = json.loads(said.out)
    assert (told["text"], told["model"], told["error"]) == ("hello", "up/p/a", None)
    assert [a["outcome"] for a in told["attempts"]] == ["ok"]
    assert said.err == ""


def test_json_of_a_failure_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    with closed_port() as port:
        env = {"LLM_DOWN": f"llama-swap://127.0.0.1:{port}"}
        said = call(capsys, "ask", "--json", "down/x", "hi", env=env)
    told = json.loads(said.out)
    assert said.code == 1
    assert (told["text"], told["error"]["kind"]) == (None, "exhausted")
    assert [a["fault"] for a in told["attempts"]] == ["transient", "transient"]


def test_an_attempt_has_the_fields_it_has_in_the_gateways_own_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with aside(whole_gateway()) as address:
        said = call(capsys, "ask", "--json", "up/steady", "hi", env={"LLM_UP": dsn(address)})
        (ours,) = json.loads(said.out)["attempts"]
        theirs = json.loads(fetched(f"{address}/understudy/api/attempts"))
    assert list(ours) == list(theirs["requests"][0]["attempts"][0])


def fetched(url: str) -> bytes:
    from urllib.request import urlopen

    with urlopen(url) as answer:
        body: bytes = answer.read()
    return body


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["ask", "p/a"], "the following arguments are required: prompt"),
        (["ask", "ollama/a", "  "], "the prompt is empty"),
        (["ask", "ollama/a", "hi", "--timeout", "soon"], "'soon' is no time; write 90s"),
        (["ask", "ollama/a", "hi", "--config", "/no/such"], "/no/such: No such file"),
    ],
)
def test_a_mistake_is_one_line(
    capsys: pytest.CaptureFixture[str], argv: list[str], said: str
) -> None:
    told = call(capsys, *argv)
    assert (told.code, told.out) == (2, "")
    assert said in told.err.splitlines()[0]


def test_bytes_that_are_no_text_cost_neither_the_prompt_nor_the_answer(tmp_path: Path) -> None:
    """A diff of an old file is piped in; the answer goes where not every sign can be written."""
    argv = [sys.executable, "-m", "understudy.cli", "ask", "p/m", "-", "--no-stream"]

    async def work() -> tuple[bytes, object]:
        async with Upstream(always(answer("fixed \u2713"))) as up:
            file = tmp_path / "understudy.toml"
            file.write_text(provider("p", up.url))
            source = str(Path(understudy.__file__).parents[1])
            env = {"PYTHONPATH": source, "PYTHONIOENCODING": "ascii:strict"}
            process = await asyncio.create_subprocess_exec(
                *argv, "--config", str(file), stdin=PIPE, stdout=PIPE, stderr=PIPE, env=env
            )
            out, _ = await process.communicate(b"- caf\xe9\n")
            [asked] = up.asked
            return out, asked.json["messages"]

    out, messages = run(work())
    assert out == b"fixed \\u2713\n"
    assert messages == [{"role": "user", "content": "- caf\ufffd\n"}]
