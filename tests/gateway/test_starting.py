"""How a gateway starts, what it prints then, and what keeps it from starting."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gateway.desk import (
    ROOT,
    ask,
    serving,
)
from tests.gateway.test_operations import refused
from tests.rig import run
from understudy.commands.serve import greeting
from understudy.gateway.build import demo_house
from understudy.gateway.setup import Opened, Setup, open_house
from understudy.testing import ManualClock


def cli(
    *arguments: str, env: dict[str, str] | None = None, typed: str = ""
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "understudy.cli", "serve", *arguments],
        input=typed,
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": os.defpath, **(env or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_bad_file_is_refused_in_one_line_without_its_secrets(tmp_path: Path) -> None:
    path = tmp_path / "understudy.toml"
    path.write_text('[gateway]\nkyes = ["sk-secret"]\n[aliases]\nx = "nobody"\n')
    done = cli("--config", str(path))
    assert done.returncode == 2
    assert done.stdout == ""
    assert "gateway.kyes: unknown key; did you mean 'keys'?" in done.stderr
    assert "sk-secret" not in done.stderr


def test_a_pipe_is_refused_for_what_it_holds_is_gone_when_it_is_read_again() -> None:
    typed = '[gateway]\nkeys = ["sk-client"]\n'
    done = cli("--config", "/dev/stdin", "--host", "0.0.0.0", "--port", "0", typed=typed)
    assert done.returncode == 2
    assert done.stderr.startswith("error: /dev/stdin: is a pipe, which can be read only once\n")


def test_an_address_that_is_taken_is_told_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = cli("--port", str(port))
    assert done.returncode == 2
    assert done.stderr == f"error: cannot listen on 127.0.0.1:{port}: Address already in use\n"


@pytest.mark.parametrize("closed", ["<&- >&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_whoever_closed_our_streams_gets_a_gateway_all_the_same(
    closed: str, tmp_path: Path
) -> None:
    """A client's socket would get a stream's number, which event loops do not bear."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

    async def work() -> tuple[list[int], int]:
        serve = f"exec {sys.executable} -m understudy.cli serve --port {port} {closed}"
        environment = {"PYTHONPATH": str(ROOT / "src"), "PATH": os.defpath}
        running = await asyncio.create_subprocess_shell(serve, env=environment, cwd=tmp_path)
        async with asyncio.timeout(60):
            while await refused(f"http://127.0.0.1:{port}"):
                pass
            statuses = [
                (await ask(f"http://127.0.0.1:{port}", "GET", "/healthz")).status for _ in "ab"
            ]
            running.terminate()
            return statuses, await running.wait()

    assert run(work()) == ([200, 200], 0)


def test_without_keys_the_world_is_not_listened_to() -> None:
    done = cli("--host", "0.0.0.0", "--port", "0")
    assert done.returncode == 2
    assert "gateway.keys: are needed to listen on 0.0.0.0" in done.stderr


def test_the_greeting_has_a_line_to_try_and_no_key() -> None:
    house = demo_house(ManualClock())
    said = greeting("http://127.0.0.1:1", Opened(house, "127.0.0.1", 1, "demo"), {})
    assert "curl -si http://127.0.0.1:1/v1/chat/completions" in said
    assert '"model": "demo"' in said


@pytest.mark.parametrize(
    ("env", "model"),
    [
        ({"ANTHROPIC_API_KEY": "sk-planted"}, "anthropic/MODEL"),
        ({"ANTHROPIC_API_KEY": "sk-planted", "OPENAI_API_KEY": "sk-planted"}, "openai/gpt-5.5"),
        ({"LLM_BOX": "ollama://sk-planted@box"}, "box/MODEL"),
    ],
)
def test_the_line_to_try_asks_somebody_who_is_there(env: dict[str, str], model: str) -> None:
    opened = open_house(Setup(env=env, port=0))
    said = greeting("http://127.0.0.1:1", opened, env)
    assert f'"model": "{model}"' in said
    assert "sk-planted" not in said


def test_a_dsn_that_cannot_be_read_is_told_at_the_start_and_a_foreign_variable_is_not() -> None:
    env = {"LLM_BOX": "ollma://sk-planted@box", "LLM_TIMEOUT": "30"}
    said = greeting("http://127.0.0.1:1", open_house(Setup(env=env, port=0)), env)
    [told] = [line for line in said.splitlines() if line.startswith("not used: ")]
    assert told.startswith("not used: unknown scheme 'ollma' in LLM_BOX; known: ")
    assert "sk-planted" not in said


def test_a_dsn_that_a_bad_proxy_stands_before_is_told_at_the_start() -> None:
    env = {"LLM_BOX": "openai://k@box", "HTTPS_PROXY": "socks5://u:sk-planted@h"}
    said = greeting("http://127.0.0.1:1", open_house(Setup(env=env, port=0)), env)
    assert "\nnot used: invalid DSN in LLM_BOX: HTTPS_PROXY must be http://" in said
    assert "sk-planted" not in said


def test_a_gateway_without_a_file_has_nothing_to_reload() -> None:
    async def work() -> None:
        async with serving("") as served:
            served.runtime.setup = Setup()  # as if there had been none
            served.runtime.reload()
            [line] = served.events("reload_refused")
            assert line["reason"] == "there is no file to reload"

    run(work())
