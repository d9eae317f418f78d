"""A whole gateway in the test's event loop, its upstreams on loopback, and a client of bytes.

An upstream answers as its function says; a gateway is a `Runtime` with a real file, so logs,
metrics, admin interface and reload are those of the process. Nothing here sleeps.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from understudy.gateway.runtime import Runtime
from understudy.gateway.setup import Setup

ROOT = Path(__file__).parents[2]
HELLO = {"messages": [{"role": "user", "content": "hello"}]}
Told = dict[str, object]


@dataclass
class Asked:
    """One request as a server or a test sees it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Told:
        found: Told = json.loads(self.body)
        return found


@dataclass
class Heard:
    """One answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Told:
        found: Told = json.loads(self.body)
        return found

    @property
    def error(self) -> Told:
        """The object all dialects put their errors in."""
        found = self.json["error"]
        assert isinstance(found, dict)
        return found


@dataclass
class Plays:
    """What an upstream answers; `body` may be pieces, and waits between them.

    A piece that is None breaks the connection off there.
    """

    status: int = 200
    body: bytes | tuple[bytes | asyncio.Event | None, ...] = b""
    headers: dict[str, str] = field(default_factory=dict)


Play = Callable[[Asked], Plays | Awaitable[Plays]]


class Upstream:
    """A server that answers every request as `play` says, and remembers it."""

    def __init__(self, play: Play) -> None:
        self.play = play
        self.asked: list[Asked] = []
        self.connections = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[object]] = set()

    @property
    def open(self) -> int:
        return len(self._writers)

    async def __aenter__(self) -> Upstream:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks)
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            while True:
                asked = await read_request(reader)
                self.asked.append(asked)
                played = self.play(asked)
                await self._answer(played if isinstance(played, Plays) else await played, writer)
        except (OSError, EOFError, asyncio.CancelledError):
            pass  # the client left, or the test is over
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer(self, plays: Plays, writer: asyncio.StreamWriter) -> None:
        pieces = (plays.body,) if isinstance(plays.body, bytes) else plays.body
        whole = isinstance(plays.body, bytes)
        kind = {"content-type": "application/json" if whole else "text/event-stream"}
        length = {"content-length": str(len(plays.body))} if whole else {}
        framing = {} if whole else {"transfer-encoding": "chunked"}
        lines = {**kind, **length, **framing, **plays.headers}.items()
        head = "".join(f"{name}: {value}\r\n" for name, value in lines)
        writer.write(f"HTTP/1.1 {plays.status} X\r\n{head}\r\n".encode())
        for piece in pieces:
            if piece is None:
                raise EOFError
            if isinstance(piece, asyncio.Event):
                await piece.wait()
            else:
                writer.write(piece if whole else b"%x\r\n%b\r\n" % (len(piece), piece))
                await writer.drain()
        if not whole:
            writer.write(b"0\r\n\r\n")
        await writer.drain()


async def read_request(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = _headers(lines)
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, path, headers, body)


def _headers(lines: list[str]) -> dict[str, str]:
    pairs = (line.partition(":") for line in lines)
    return {name.lower(): value.strip() for name, _, value in pairs}


class Line:
    """A client's connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def to(cls, address: str) -> Line:
        host, _, port = address.removeprefix("http://").rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    async def ask(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Heard:
        self.send(method, path, body, headers)
        status, found = await self.head()
        return Heard(status, found, b"" if method == "HEAD" else await self.rest(found))

    def send(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> None:
        data = body if isinstance(body, bytes) else b"" if body is None else _json(body)
        given = {"host": "127.0.0.1", "content-length": str(len(data)), **(headers or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        self.writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + data)

    async def head(self) -> tuple[int, dict[str, str]]:
        first, *lines = (
            (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip().split("\r\n")
        )
        return int(first.split(" ")[1]), _headers(lines)

    async def rest(self, headers: dict[str, str]) -> bytes:
        if "content-length" in headers:
            return await self.reader.readexactly(int(headers["content-length"]))
        pieces = []
        while piece := await self.piece():
            pieces.append(piece)
        return b"".join(pieces)

    async def piece(self) -> bytes:
        """The next chunk, empty at the end."""
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        return (await self.reader.readexactly(size + 2))[:-2]

    def close(self) -> None:
        self.writer.close()


async def ask(
    address: str,
    method: str,
    path: str,
    body: object = None,
    headers: Mapping[str, str] | None = None,
) -> Heard:
    """One request on a connection of its own."""
    line = await Line.to(address)
    try:
        return await line.ask(method, path, body, headers)
    finally:
        line.close()


def _json(body: object) -> bytes:
    return json.dumps(body).encode()


@dataclass
class Served:
    """A running gateway: where it is, its file, and what it wrote."""

    address: str
    runtime: Runtime
    path: Path
    written: list[bytes]

    async def ask(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Heard:
        return await ask(self.address, method, path, body, headers)

    async def chat(self, model: str = "chat", **headers: str) -> Heard:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.ask("POST", "/v1/chat/completions", {**HELLO, "model": model}, named)

    @property
    def lines(self) -> list[Told]:
        self.runtime.lines.flush()
        return [json.loads(line) for line in b"".join(self.written).splitlines()]

    def events(self, name: str) -> list[Told]:
        return [line for line in self.lines if line["event"] == name]


@asynccontextmanager
async def serving(
    text: str, env: Mapping[str, str] | None = None, *, look: float = 3600.0
) -> AsyncIterator[Served]:
    """A gateway of this configuration; its port is the system's choice."""
    written: list[bytes] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "understudy.toml"
        path.write_text(text, encoding="utf-8")
        runtime = Runtime(Setup(path, None, 0, env or {}, look), written.append)
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(runtime.run(lambda address, _: ready.set_result(address)))

        def ended(task: asyncio.Task[None]) -> None:
            if not ready.done():
                ready.set_exception(task.exception() or AssertionError("it ended at once"))

        task.add_done_callback(ended)
        try:
            yield Served(await ready, runtime, path, written)
        finally:
            runtime.stopping.set()
            await task


@asynccontextmanager
async def fronted(play: Play, text: str = "") -> AsyncIterator[tuple[Served, Upstream]]:
    """A gateway in front of one upstream, which `chat` leads to."""
    async with Upstream(play) as up:
        whole = text + provider("p", up.url) + aliases(chat="p/m")
        async with serving(whole) as served:
            yield served, up


def provider(
    name: str, url: str, dialect: str = "openai", key: str = "k-provider", **more: float
) -> str:
    """A table of the configuration."""
    base = f"{url}/v1" if dialect in ("openai", "responses") else url
    rest = "".join(f"{option} = {value}\n" for option, value in more.items())
    return (
        f'[providers.{name}]\ndialect = "{dialect}"\nbase_url = "{base}"\n'
        f'api_key = "{key}"\n{rest}'
    )


def aliases(**specs: str) -> str:
    return "[aliases]\n" + "".join(f'{name} = "{spec}"\n' for name, spec in specs.items())


def answer(text: str = "hi", tokens: tuple[int, int] = (3, 2)) -> bytes:
    """A chat completion."""
    choice = {"index": 0, "finish_reason": "stop"}
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}
    return _json({"id": "c", "choices": [{**choice, "message": message}], "usage": usage})


def chunk(text: str, finish: str | None = None) -> bytes:
    """A piece of a stream of chat completions."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return b"data: " + _json({"id": "c", "choices": [choice]}) + b"\n\n"


DONE = b"data: [DONE]\n\n"
HELLO_STREAM = (chunk("he"), chunk("llo"), chunk("", "stop"), DONE)


def always(
    body: bytes | tuple[bytes | asyncio.Event | None, ...] | None = None, status: int = 200
) -> Play:
    return lambda _: Plays(status, answer() if body is None else body)


def says(status: int, message: str = "no", **headers: str) -> Plays:
    """An error of OpenAI's shape."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Plays(status, _json({"error": {"message": message}}), named)


def in_turn(*plays: Plays) -> Play:
    """One after the other, the last for ever."""
    left = list(plays)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


async def never(_: Asked) -> Plays:
    """Takes the request and says nothing."""
    await asyncio.Event().wait()
    raise AssertionError


@dataclass
class Process:
    """A gateway as a process of its own."""

    address: str
    process: asyncio.subprocess.Process
    path: Path
    rest: bytes = b""

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    async def ended(self) -> tuple[int, list[Told]]:
        """Its exit code and every line it logged."""
        out, self.rest = await self.process.communicate()
        code = self.process.returncode
        assert code is not None
        return code, [json.loads(line) for line in out.splitlines()]


@asynccontextmanager
async def process(
    text: str,
    env: Mapping[str, str] | None = None,
    *,
    out: int = asyncio.subprocess.PIPE,
    shell: str = ":",
) -> AsyncIterator[Process]:
    """Serving this configuration; `out` is where its log lines go, `shell` what is done before."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "understudy.toml"
        path.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "understudy.cli", "serve", "--config", str(path)]
        running = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", f'{shell}; exec "$@"', "sh", *command, "--port", "0"),
            env={"PYTHONPATH": str(ROOT / "src"), "PATH": os.defpath, **(env or {})},
            stdout=out,
            stderr=asyncio.subprocess.PIPE,
        )
        assert running.stderr is not None
        try:
            async with asyncio.timeout(30):
                said = (await running.stderr.readline()).decode()
            assert "listens on" in said, said + (await running.stderr.read()).decode()
            yield Process(said.split("listens on ")[1].split(" ")[0], running, path)
        finally:
            if running.returncode is None:
                with suppress(ProcessLookupError):
                    running.kill()
            await running.communicate()  # to the end of what its own children wrote, too
