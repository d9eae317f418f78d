"""Requests a second and CPU microseconds a request: our transport beside aiohttp and httpx.

    python bench/transport.py [--seconds 1] [--rounds 3] [--connections 32] [--clients a,b]

Each case runs in a process of its own on core 0, in turns, against `upstream.c` on core 1. CPU a
request is the steady figure: it survives a busy neighbour, requests a second do not. `pushed` is
our transport in push mode; `floor` writes and reads the same bytes and understands none of them:
what an event loop, two system calls and a future cost, and so what nobody can get below.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path

HERE = Path(__file__).parent
PATH = "/v1/chat/completions"
HEADERS = {"content-type": "application/json", "authorization": "Bearer sk-bench"}
MESSAGES = [{"role": "user", "content": "To be, or not to be, that is the question. " * 20}]
BODIES = {
    "plain": json.dumps({"model": "m", "messages": MESSAGES}).encode(),
    "stream": json.dumps(
        {"model": "m", "stream": True, "messages": MESSAGES}, separators=(",", ":")
    ).encode(),
}
Ask = Callable[[bytes], Awaitable[int]]  # sends a body, returns the bytes that came back
Client = Callable[[str], AbstractAsyncContextManager[Ask]]


@asynccontextmanager
async def ours(url: str) -> AsyncIterator[Ask]:
    from understudy.providers.pool import Pool
    from understudy.providers.transport import Limits, Origin, Outgoing, render_head

    pool, limits, origin = Pool(), Limits(), Origin.from_url(url)
    head = render_head("POST", origin, PATH, HEADERS)

    async def ask(body: bytes) -> int:
        answer = await pool.send(Outgoing(origin, head, body), limits)
        return len(await answer.read())

    yield ask
    await pool.aclose()


@asynccontextmanager
async def pushed(url: str) -> AsyncIterator[Ask]:
    from understudy.providers.pool import Pool
    from understudy.providers.transport import Limits, Origin, Outgoing, render_head

    pool, limits, origin = Pool(), Limits(), Origin.from_url(url)
    head = render_head("POST", origin, PATH, HEADERS)
    loop = asyncio.get_running_loop()

    async def ask(body: bytes) -> int:
        answer = await pool.send(Outgoing(origin, head, body), limits)
        end: asyncio.Future[int] = loop.create_future()
        size = 0

        def sink(data: bytes | None, done: bool) -> None:
            nonlocal size
            size += len(data or b"")
            if done:
                end.set_result(size)

        answer.push(sink)
        return end.result() if end.done() else await end

    yield ask
    await pool.aclose()


@asynccontextmanager
async def aiohttp(url: str) -> AsyncIterator[Ask]:
    import aiohttp

    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        timeout=aiohttp.ClientTimeout(total=None),
    ) as session:

        async def ask(body: bytes) -> int:
            async with session.post(url + PATH, data=body, headers=HEADERS) as answer:
                return len(await answer.read())

        yield ask


@asynccontextmanager
async def httpx(url: str) -> AsyncIterator[Ask]:
    import httpx

    limits = httpx.Limits(max_connections=512, max_keepalive_connections=512)
    async with httpx.AsyncClient(limits=limits, timeout=60, trust_env=False) as client:

        async def ask(body: bytes) -> int:
            return len((await client.post(url + PATH, content=body, headers=HEADERS)).content)

        yield ask


class Ear(asyncio.Protocol):
    """Hears one answer and understands nothing."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.mouth = transport

    def data_received(self, data: bytes) -> None:
        if not self.heard.done():
            self.heard.set_result(len(data))

    heard: asyncio.Future[int]


@asynccontextmanager
async def floor(url: str) -> AsyncIterator[Ask]:
    loop = asyncio.get_running_loop()
    host, _, port = url.removeprefix("http://").partition(":")
    idle: list[Ear] = []

    async def ask(body: bytes) -> int:
        ear = idle.pop() if idle else (await loop.create_connection(Ear, host, int(port)))[1]
        ear.heard = loop.create_future()
        ear.mouth.write(b"POST / HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))  # type: ignore[attr-defined]
        size = await ear.heard
        idle.append(ear)
        return size

    yield ask
    for ear in idle:
        ear.mouth.close()


CLIENTS: dict[str, Client] = {
    "ours": ours,
    "pushed": pushed,
    "aiohttp": aiohttp,
    "httpx": httpx,
    "floor": floor,
}


async def measure(options: argparse.Namespace) -> None:
    """Keep so many requests in flight for a while; write what it cost as a line of JSON."""
    body, crowd = BODIES[options.kind], range(options.connections)
    count = 0
    async with CLIENTS[options.case](options.url) as ask:
        await asyncio.gather(*(ask(body) for _ in crowd))
        before, start = cpu(), time.perf_counter()

        async def work() -> None:
            nonlocal count
            while time.perf_counter() < start + options.seconds:
                await ask(body)
                count += 1

        await asyncio.gather(*(work() for _ in crowd))
        spent = time.perf_counter() - start
        line = {"rate": count / spent, "cpu": (cpu() - before) / count * 1e6}
    sys.stdout.write(json.dumps(line) + "\n")


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def pin(core: int) -> list[str]:
    return ["taskset", "-c", str(core)] if shutil.which("taskset") else []


def until_open(port: int) -> None:
    for _ in range(1000):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
    raise RuntimeError("the upstream did not start")


@contextmanager
def upstream() -> Iterator[str]:
    """The fake provider on a free port of core 1."""
    with tempfile.TemporaryDirectory() as folder:
        binary = str(Path(folder) / "upstream")
        subprocess.run(["cc", "-O2", "-o", binary, str(HERE / "upstream.c")], check=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = subprocess.Popen([*pin(1), binary, f"{port}:ok"])
        try:
            until_open(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait()


def run(options: argparse.Namespace) -> dict[tuple[str, str], list[dict[str, float]]]:
    figures: dict[tuple[str, str], list[dict[str, float]]] = {}
    with upstream() as url:
        for _ in range(options.rounds):
            for kind in BODIES:
                for name in options.clients.split(","):
                    if (name, kind) == ("floor", "stream"):
                        continue  # it cannot tell where one ends
                    case = ["--case", name, "--kind", kind, "--url", url]
                    command = [*pin(0), sys.executable, __file__, *case]
                    command += ["--seconds", str(options.seconds)]
                    command += ["--connections", str(options.connections)]
                    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                    figures.setdefault((kind, name), []).append(json.loads(done.stdout))
    return figures


def table(figures: dict[tuple[str, str], list[dict[str, float]]]) -> str:
    """Medians; the last two columns are how many times faster and lighter ours is."""
    lines = [f"{'kind':8}{'client':10}{'req/s':>9}{'CPU us':>9}{'faster':>10}{'lighter':>8}"]
    for (kind, name), runs in figures.items():
        rate = statistics.median(run["rate"] for run in runs)
        cost = statistics.median(run["cpu"] for run in runs)
        own = figures.get((kind, "ours"), runs)
        faster = statistics.median(run["rate"] for run in own) / rate
        lighter = cost / statistics.median(run["cpu"] for run in own)
        lines.append(f"{kind:8}{name:10}{rate:9.0f}{cost:9.1f}{faster:9.1f}x{lighter:7.1f}x")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--clients", default="ours,pushed,aiohttp,httpx,floor")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--kind", default="plain", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        import uvloop

        uvloop.run(measure(options))
        return
    sys.stdout.write(table(run(options)) + "\n")


if __name__ == "__main__":
    main()
