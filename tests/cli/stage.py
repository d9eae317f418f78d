"""Commands as people run them: in this process, or with a gateway running aside."""

from __future__ import annotations

import io
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from understudy.cli import main
from understudy.commands.screen import Screen
from understudy.gateway.runtime import Runtime
from understudy.gateway.setup import Setup
from understudy.portal import Portal

CONFIG = """
[providers.near]
base_url = "http://127.0.0.1:9/v1"
[providers.near.models.small]
context_window = 4096
max_images = 0
[aliases]
chat = "near/small, near/large"
[policy]
transient_retries = 0
"""


@dataclass(frozen=True)
class Said:
    """What a command left behind."""

    code: int
    out: str
    err: str


class Stdin(io.StringIO):
    """What is piped into a command."""


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        return True


def call(
    capsys: pytest.CaptureFixture[str], *argv: str, env: Mapping[str, str] | None = None
) -> Said:
    code = main(argv, env or {})
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return Said(code, out, err)


def terminal(**env: str) -> tuple[Screen, Terminal, Terminal]:
    out, err = Terminal(), Terminal()
    return Screen(out, err, env), out, err


@contextmanager
def aside(opened: AbstractAsyncContextManager[str]) -> Iterator[str]:
    """The address of something that listens in another thread: commands have their own loops."""
    portal = Portal()
    try:
        yield portal.run(_entered(opened))
    finally:
        portal.run(_left(opened))
        portal.close()


async def _entered(opened: AbstractAsyncContextManager[str]) -> str:
    return await opened.__aenter__()


async def _left(opened: AbstractAsyncContextManager[str]) -> None:
    await opened.__aexit__(None, None, None)


@asynccontextmanager
async def whole_gateway(path: Path | None = None):  # type: ignore[no-untyped-def]
    """Everything `serve` would start: the demo, or a file; without signals."""
    runtime = Runtime(Setup(path, "127.0.0.1", 0, {}), lambda line: None)
    port = await runtime.server.listen("127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await runtime.server.close()


def visit(address: str, model: str = "demo") -> None:
    """Somebody asks; raises HTTPError if nobody answers."""
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "hi"}]}).encode()
    head = {"content-type": "application/json"}
    with urlopen(Request(f"{address}/v1/chat/completions", body, head)) as answer:
        answer.read()


@contextmanager
def closed_port() -> Iterator[int]:
    """A port that refuses: taken, and nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def dsn(address: str) -> str:
    """A gateway's address as a provider that speaks OpenAI's dialect without TLS."""
    return address.replace("http://", "llama-swap://")


def file(tmp_path: Path, text: str, name: str = "understudy.toml") -> str:
    path = tmp_path / name
    path.write_text(text)
    return str(path)
