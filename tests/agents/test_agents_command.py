"""What stands behind `understudy agents`: serve a registry, route one envelope."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.agents.rig import run, task
from understudy.agents import RemoteRouter, write
from understudy.agents.command import CommandError, load, route, serve

SOURCE = """
from understudy.agents import AgentRegistry, AgentResponse, ErrorInfo

registry = AgentRegistry()
number = 3

@registry.agent("a", capabilities=["task"])
def a(envelope):
    return AgentResponse.failure(ErrorInfo("RATE_LIMIT", "later"))

@registry.agent("b", capabilities=["task"])
async def b(envelope):
    return AgentResponse.success({"echo": envelope.payload})
"""


@pytest.fixture
def spec(tmp_path: Path) -> str:
    name = f"agents_of_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    load(f"{name}:registry", where=str(tmp_path))
    return f"{name}:registry"


def test_one_envelope_is_routed_and_its_path_printed(tmp_path: Path, spec: str) -> None:
    (tmp_path / "e.json").write_bytes(write(task(payload=[1])))
    lines: list[str] = []
    assert route(str(tmp_path / "e.json"), spec, echo=lines.append)
    assert "3 END a error RATE_LIMIT: later" in lines[0]
    assert lines[1] == "path: a -> b"
    assert json.loads(lines[2])["payload"] == {"echo": [1]}


def test_a_route_that_fails_says_so(tmp_path: Path, spec: str) -> None:
    (tmp_path / "e.json").write_bytes(b'{"intent": {"name": "unknown"}}')
    lines: list[str] = []
    assert not route(str(tmp_path / "e.json"), spec, echo=lines.append)
    assert lines[1] == "path: nobody was asked"


@pytest.mark.parametrize(
    ("body", "problem"),
    [(None, "cannot read"), (b"{}", "intent: object missing"), (b"nonsense", "not JSON")],
)
def test_a_file_that_is_no_envelope_is_named(
    tmp_path: Path, spec: str, body: bytes | None, problem: str
) -> None:
    path = tmp_path / "e.json"
    if body is not None:
        path.write_bytes(body)
    with pytest.raises(CommandError, match=problem):
        route(str(path), spec, echo=print)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ("", "module:name"),
        ("module", "module:name"),
        (":registry", "module:name"),
        ("no_such_module_at_all:registry", "no module named 'no_such_module_at_all'"),
        (".:registry", "module:name"),
        (".near:registry", "module:name"),
        ("json:nothing", "there is nothing"),
        ("json:dumps", "there is function"),
    ],
)
def test_a_registry_that_is_none_is_named(wrong: str, problem: str) -> None:
    with pytest.raises(CommandError, match=problem):
        load(wrong)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("\nraise RuntimeError('out of\\norder')", r"py:2: RuntimeError: out of\norder"),
        ("import no_such_thing", "py:1: ModuleNotFoundError: No module named 'no_such_thing'"),
        ("\n\ndef broken(:", "py:3: SyntaxError"),
    ],
)
def test_a_module_that_cannot_be_imported_is_one_line_with_the_place(
    tmp_path: Path, source: str, said: str
) -> None:
    name = f"broken_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(source)
    with pytest.raises(CommandError) as caught:
        load(f"{name}:registry", where=str(tmp_path))
    assert str(caught.value).startswith(f"module {name!r} cannot be imported: {tmp_path}")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_port_that_does_not_exist_is_said(spec: str) -> None:
    with pytest.raises(CommandError, match=r"cannot listen on 127.0.0.1:99999"):
        serve(spec, "127.0.0.1", 99999, echo=print)


def test_what_an_agent_says_does_not_break_the_lines_or_steer_the_terminal(
    tmp_path: Path, spec: str
) -> None:
    wild = SOURCE.replace('"later"', r'"one\ntwo\x1b[2J"')
    name = f"wild_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(wild)
    load(f"{name}:registry", where=str(tmp_path))
    (tmp_path / "e.json").write_bytes(write(task()))
    lines: list[str] = []
    assert route(str(tmp_path / "e.json"), f"{name}:registry", echo=lines.append)
    assert lines[0].splitlines()[2] == r"3 END a error RATE_LIMIT: one\ntwo\x1b[2J"
    assert len(lines[0].splitlines()) == 8


SERVING = """
import sys
from understudy.agents.command import serve
serve(sys.argv[1], "127.0.0.1", 0, echo=lambda text: print(text, flush=True))
"""


def test_serving_ends_at_a_signal_and_until_then_answers(tmp_path: Path, spec: str) -> None:
    async def play() -> tuple[object, int]:
        source = str(Path(__file__).parents[2] / "src")
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            SERVING,
            spec,
            cwd=tmp_path,
            env={"PYTHONPATH": os.pathsep.join([source, *sys.path])},
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        url = line.removeprefix("agents at ").strip().removesuffix("/route")
        router = RemoteRouter(url)
        response = await router.route(task(payload="hi"))
        await router.aclose()
        process.send_signal(signal.SIGTERM)
        return response.payload, await process.wait()

    assert run(play()) == ({"echo": "hi"}, 0)
