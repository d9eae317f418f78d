"""A real Redis on a port of its own, to be killed, paused and started again."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

PROGRAM = shutil.which("redis-server") or shutil.which("valkey-server") or ""
needs_redis = pytest.mark.skipif(not PROGRAM, reason="needs: apt-get install redis-server")


class Server:
    """Runs in a folder that is thrown away; remembers nothing when it is killed."""

    def __init__(self, folder: str, *options: str, tls: bool = False) -> None:
        self.port = free_port()
        port = ["--port", "0", "--tls-port"] if tls else ["--port"]
        plain = ["--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly", "no"]
        self._command = [PROGRAM, *port, str(self.port), *plain, *options]
        self._process: asyncio.subprocess.Process

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdout=asyncio.subprocess.DEVNULL
        )
        await eventually(self._answers)

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    async def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    async def order(self, *words: str | int) -> object:
        """A command, from somebody who has nothing to do with us."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        parts = [str(word).encode() for word in words]
        lines = [b"$%d\r\n%b\r\n" % (len(part), part) for part in parts]
        writer.write(b"*%d\r\n" % len(parts) + b"".join(lines))
        answer = await reader.readuntil(b"\r\n")
        writer.close()
        assert not answer.startswith(b"-"), answer
        return answer


@asynccontextmanager
async def redis(*options: str, tls: bool = False) -> AsyncIterator[Server]:
    with tempfile.TemporaryDirectory(dir=Path("/tmp")) as folder:
        server = Server(folder, *options, tls=tls)
        await server.start()
        try:
            yield server
        finally:
            await server.kill()


async def eventually(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Look every few milliseconds; for what other processes do in their own time."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(seconds):
        while not condition():
            turn = asyncio.Event()
            loop.call_later(0.005, turn.set)
            await turn.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
