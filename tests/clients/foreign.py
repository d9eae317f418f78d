"""Clients that are programs of their own: other languages, or packages too heavy to import here.

Each is given addresses on stdin and answers with its findings as JSON, all checks in one run. What
a program needs and is not there is fetched if that is quick; else its clients are skipped, and the
reason says what to do.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.clients.cuts import ENDINGS, breaking_off
from tests.clients.rig import CALLS, KEY, Backstage, Scene, Setting, staged
from tests.clients.speakers import Errors
from understudy import Response, Usage
from understudy.testing import Chunks

HERE = Path(__file__).parent
PIECES = ("Grüezi, ", "世界", " 🎭!")
PATIENCE = 100  # seconds
WRONG = "sk-wrong-0123456789"
OTHER = {"openai": "anthropic", "responses": "gemini", "anthropic": "openai"}


@dataclass(frozen=True)
class Foreign:
    """One client, the dialect it speaks, and its errors."""

    name: str
    dialect: str
    errors: Errors

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


@dataclass(frozen=True)
class Program:
    """How it is started, and the clients it speaks for. `command` skips when it cannot run."""

    command: Callable[[], list[str]]
    clients: tuple[Foreign, ...]


def _langchain() -> list[str]:
    pytest.importorskip("langchain_openai")
    return [sys.executable, str(HERE / "foreign_langchain.py")]


def _litellm() -> list[str]:
    """Too large to be fetched by a test, and of no use while it is being fetched."""
    place = HERE.parents[1] / ".judges" / "litellm"
    if not (place / ".ready").exists():
        pytest.skip("LiteLLM has no environment here; `make judges` makes one")
    return [str(place / "bin" / "python"), str(HERE / "lite" / "program.py")]


def _node(script: str) -> Callable[[], list[str]]:
    def command() -> list[str]:
        node = shutil.which("node")
        if node is None:
            pytest.skip("node is not installed")
        _node_modules()
        return [node, str(HERE / "node" / script)]

    return command


def _node_modules() -> None:
    """What the lock file says, unless it is there already."""
    place = HERE / "node"
    wanted, there = place / "package-lock.json", place / "node_modules" / ".package-lock.json"
    if there.exists() and there.stat().st_mtime >= wanted.stat().st_mtime:
        return
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    quick = ["--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=0"]
    try:
        subprocess.run(
            [npm, "ci", *quick], cwd=place, capture_output=True, text=True, timeout=90, check=True
        )
    except subprocess.SubprocessError as error:
        pytest.skip(f"npm cannot install the packages: {error}")
    there.touch()


JAVASCRIPT = Errors("AuthenticationError", "InternalServerError", "RateLimitError", "APIError")
AI_SDK = Errors("APICallError", "APICallError", "APICallError", "Object")
LANGCHAIN = Errors(
    "OpenAIAuthenticationError", "OpenAIAPIError", "OpenAIRateLimitError", "APIError"
)
LITELLM = Errors(
    "AuthenticationError", "ServiceUnavailableError", "RateLimitError", "MidStreamFallbackError"
)
CLAUDE = replace(LITELLM, exhausted="InternalServerError")

PROGRAMS = (
    Program(
        _node("openai.mjs"),
        (
            Foreign("openai-node", "openai", JAVASCRIPT),
            Foreign("openai-node responses", "responses", JAVASCRIPT),
        ),
    ),
    Program(_node("ai-sdk.mjs"), (Foreign("ai-sdk", "openai", AI_SDK),)),
    Program(
        _langchain,
        (
            Foreign("langchain", "openai", LANGCHAIN),
            Foreign("langchain responses", "responses", LANGCHAIN),
        ),
    ),
    Program(
        _litellm,
        (
            Foreign("litellm", "openai", LITELLM),
            Foreign("litellm anthropic", "anthropic", CLAUDE),
        ),
    ),
)


def _told_by(command: list[str], asked: str) -> str:
    """What a program prints; a hung one is asked for its last words."""
    try:
        done = subprocess.run(
            command, input=asked, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired as error:
        last = (error.stderr or b"").decode("utf-8", "replace")
        pytest.fail(f"{command} said nothing within {PATIENCE} s: {last[-4000:]}")
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@dataclass
class Heard:
    """What a client found, and what the gateways behind it saw."""

    told: dict[str, Any]
    scenes: dict[str, Scene]


def _scripted(scene: Scene) -> None:
    calling = Response("let me see", tool_calls=CALLS, finish_reason="tool_calls")
    text = Response("".join(PIECES), usage=Usage(7, 5))
    place = '{"city":"Bern","people":134000}'
    scene.fake.script("x", text, Chunks(*PIECES), calling, calling, place)


def _scenes(backstage: Backstage, client: Foreign, stack: ExitStack) -> dict[str, Scene]:
    same, other = client.dialect, OTHER[client.dialect]
    settings = {
        "relayed": Setting(same, "refused"),
        "translated": Setting(other, "503"),
        "exhausted": Setting(same, "503"),
        "limited": Setting(same, "429"),
        "cut": Setting(same, "refused", breaking_off(same, ENDINGS["a dead socket"])),
    }
    scenes = {name: stack.enter_context(staged(backstage, s)) for name, s in settings.items()}
    for name in ("relayed", "translated"):
        _scripted(scenes[name])
    scenes["exhausted"].fake.script("x", *[503] * 9)
    scenes["limited"].fake.script("x", *[429] * 9)
    return scenes


class Troupe:
    """Runs each program once, when somebody first asks what one of its clients found."""

    def __init__(self, backstage: Backstage, stack: ExitStack) -> None:
        self._backstage = backstage
        self._stack = stack
        self._heard: dict[str, Heard] = {}

    def heard(self, client: Foreign) -> Heard:
        if client.name not in self._heard:
            (program,) = [p for p in PROGRAMS if client in p.clients]
            self._heard |= self._run(program)
        return self._heard[client.name]

    def _run(self, program: Program) -> dict[str, Heard]:
        command = program.command()
        scenes = {c.name: _scenes(self._backstage, c, self._stack) for c in program.clients}
        asked = {
            name: {"key": KEY, "wrong": WRONG, **{at: s.address for at, s in found.items()}}
            for name, found in scenes.items()
        }
        told = json.loads(_told_by(command, json.dumps(asked)))
        return {name: Heard(told[name], scenes[name]) for name in scenes}
