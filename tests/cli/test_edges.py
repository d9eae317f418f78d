"""What a command refuses before it begins, and what is said when it goes wrong all the same."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import understudy
from tests.cli.stage import Stdin, aside, call, file, whole_gateway
from understudy.cli import main
from understudy.commands.parser import seconds

LISTENERS = [("serve",), ("fake", "--script", "p/a: 503"), ("agents", "serve", "m:n")]


@pytest.mark.parametrize("argv", LISTENERS, ids=lambda argv: argv[0])
@pytest.mark.parametrize("port", ["65536", "99999", "-1", "http", "8080.5", "９"])
def test_a_port_that_is_none_is_refused_by_every_verb_that_listens(
    capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], port: str
) -> None:
    said = call(capsys, *argv, f"--port={port}")
    told = f"error: argument --port: {port!r} is no port; give a number from 0 to 65535"
    assert (said.code, said.err.splitlines()[0]) == (2, told)


def test_an_address_that_is_taken_reads_alike_wherever_one_listens(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = [call(capsys, *argv, "--port", port) for argv in LISTENERS[:2]]
    told = f"error: cannot listen on 127.0.0.1:{port}: Address already in use\n"
    assert [(each.code, each.err) for each in said] == [(2, told)] * 2


class Haunted(dict[str, str]):
    """An environment in which a key cannot be looked up: a mistake that nobody foresaw."""

    def get(self, name: str, default: object = None) -> str:  # type: ignore[override]
        if name.endswith("_API_KEY"):
            raise KeyError(f"no {name}\n  here")
        return super().get(name, "")


def test_a_bug_is_one_line_that_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    said = call(capsys, "models", env=Haunted(HOME="/"))
    assert (said.code, said.out) == (1, "")
    error, blank, hint = said.err.splitlines()
    assert (error, blank) == ("error: KeyError: 'no OPENAI_API_KEY\\n here'", "")
    assert hint.startswith("hint: this is a bug, please report it; UNDERSTUDY_DEBUG=1 shows where")


def test_a_half_installed_understudy_says_what_is_missing() -> None:
    """Without its site-packages a Python has none of our dependencies."""
    house = Path(understudy.__file__).parents[1]
    code = f"import sys; sys.path.insert(0, {str(house)!r})\n"
    code += "from understudy.cli import main; sys.exit(main(['models']))"
    bare = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(bare, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    told = (
        "error: this Python has no httptools\n\nhint: install all of it: pip install understudy\n"
    )
    assert done.stderr == told


def test_where_a_bug_is_can_be_seen() -> None:
    with pytest.raises(KeyError):
        main(["models"], Haunted(UNDERSTUDY_DEBUG="1"))


@pytest.mark.parametrize("text", ["99999999999999999999d", "36501d", "1" * 400])
def test_a_time_without_measure_is_refused_and_the_longest_named(
    capsys: pytest.CaptureFixture[str], text: str
) -> None:
    with aside(whole_gateway()) as address:
        said = call(capsys, "bench", "house/piano", "--for", text, "--url", address)
        assert json.loads(call(capsys, "status", "--json", "--url", address).out)["keys"] == {}
    assert said.code == 2
    assert said.err.startswith(f"error: argument --for: {text!r} is too long; give at most 36500d")


def test_the_longest_time_is_one() -> None:
    assert seconds("36500d") == 36_500 * 86_400


@pytest.mark.parametrize("text", ["", " \n\t\n"])
def test_nothing_cannot_be_classified(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str
) -> None:
    path = file(tmp_path, text, "paste.txt")
    said = call(capsys, "classify", path)
    assert (said.code, said.out) == (2, "")
    assert said.err.splitlines()[0] == "error: there is nothing to classify"
    assert call(capsys, "classify", path, "--status", "429").code == 0  # a status is something


def test_an_id_comes_back_as_it_went_in(capsys: pytest.CaptureFixture[str]) -> None:
    ids = [1, "1", None, 1.5, {"row": [2]}, True]
    before = sys.stdin
    sys.stdin = Stdin("".join(json.dumps({"id": each, "status": 503}) + "\n" for each in ids))
    try:
        said = call(capsys, "classify", "--jsonl", "-")
    finally:
        sys.stdin = before
    told = [json.loads(line)["id"] for line in said.out.splitlines()]
    assert json.dumps(told) == json.dumps(ids)  # 1 is not True here


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"status": 503}, ["none given", "retry once, then advance to the next target"]),
        ({"status": 402}, ["out until cleared", "out for 30 min"]),
        ({"status": 401}, ["benched for 300 s"]),
        ({"status": 429, "headers": {"retry-after": "1778"}}, ["delay     29 min 38 s\n"]),
        ({"status": 429, "headers": {"retry-after": "7"}}, ["delay     7 s\n"]),
    ],
)
def test_a_verdict_is_told_in_words_and_times_that_people_use(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, row: object, told: list[str]
) -> None:
    said = call(capsys, "classify", file(tmp_path, json.dumps(row), "row.json"))
    assert [words for words in told if words not in said.out] == []
    assert "time(s)" not in said.out


def test_a_target_without_a_key_says_so_in_plan_and_models(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    missing = "no key for provider 'openai'; set OPENAI_API_KEY"
    spec, set_key = "openai/gpt-5.5, ollama/x", {"OPENAI_API_KEY": "k"}
    plan = call(capsys, "plan", spec)
    assert plan.out.splitlines()[0] == f"1. openai/gpt-5.5  try   {missing}"
    assert "healthy" in call(capsys, "plan", spec, env=set_key).out.splitlines()[0]
    models = call(capsys, "models", spec)
    assert models.err == f"openai/gpt-5.5: {missing}\n"
    rows = json.loads(call(capsys, "models", spec, "--json").out)
    assert [row["missing"] for row in rows] == [missing, None]
    assert call(capsys, "models", spec, env=set_key).err == ""
    config = file(tmp_path, "[providers.openai]\n[aliases]\nchat = 'openai/gpt-5.5'\n")
    with aside(whole_gateway(Path(config))) as address:
        live = call(capsys, "plan", "chat", "--url", address)
    assert f"try   {missing}, or api_key, 600 s" in live.out
