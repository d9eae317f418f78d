"""A real name server that says nothing, and a gateway that needs it for one of its targets."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.desk import HELLO, Upstream, aliases, always, ask, process, provider
from tests.rig import run

SILENT = "127.0.0.53"
CHAT = "/v1/chat/completions"
OWN_MOUNTS = ["unshare", "--mount", "true"]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[str]:
    """What makes a process believe in a name server that never answers."""
    told = tmp_path / "resolv.conf"
    told.write_text(f"nameserver {SILENT}\noptions timeout:20 attempts:1\n")
    try:
        subprocess.run(OWN_MOUNTS, check=True, capture_output=True)
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind((SILENT, 53))
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs root: mounts of its own, and the port of name servers")
    with server:
        inside = f'mount --bind {told} /etc/resolv.conf && exec "$@"'
        yield f"exec unshare --mount sh -c '{inside}' sh \"$@\""


def test_a_silent_name_server_takes_down_nobody_but_the_target_it_is_needed_for(
    shell: str,
) -> None:
    async def work() -> tuple[set[int], set[int], int]:
        async with Upstream(always()) as up, asyncio.timeout(60):
            text = (
                provider("dead", "http://dead.example", connect_timeout=0.5)
                + provider("well", up.url.replace("127.0.0.1", "localhost"))
                + aliases(chat="dead/m, well/m", other="well/m")
            )
            async with process(text, shell=shell) as running:

                async def asked(model: str) -> int:
                    heard = await ask(running.address, "POST", CHAT, {**HELLO, "model": model})
                    return heard.status

                chats = [asyncio.ensure_future(asked("chat")) for _ in range(20)]
                others = await asyncio.gather(*(asked("other") for _ in range(5)))
                answered = await asyncio.gather(*chats)
                running.signal(signal.SIGTERM)
                code, _ = await running.ended()
                return set(others), set(answered), code

    assert run(work()) == ({200}, {200}, 0)
