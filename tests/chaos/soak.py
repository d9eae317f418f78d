"""A gateway under load, with everything that goes wrong: `python -m tests.chaos.soak DIR`.

The gateway is a process, its providers are another; the clients are here. While they talk the
configuration is reloaded, good and bad, and with `--workers` workers are killed. Everybody writes
lines into DIR; nothing is judged here: `python -m tests.chaos.checker DIR` does that afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.chaos.client import Note, load
from tests.chaos.company import ADMIN_KEY, CHAINS, MAX_REPLY, config

ROOT = Path(__file__).parents[2]
PAGE = os.sysconf("SC_PAGE_SIZE")
LOOK = 0.25  # seconds between looks at the gateway's size
REST = 2.0  # seconds without load before its size is taken down
PAGES = (
    "/metrics",
    "/healthz",
    "/understudy/",
    "/understudy/api/health",
    "/understudy/api/attempts",
    "/understudy/api/plan?model=mixed0",
    "/v1/models",
)


@dataclass(frozen=True)
class Plan:
    """How long and how hard."""

    folder: Path
    seconds: float = 60.0
    clients: int = 32
    seed: str = "1"
    workers: int = 1
    reload_every: float = 3.0
    kill_every: float = 7.0


@dataclass
class Soak:
    """One run while it runs."""

    plan: Plan
    note: Note
    process: asyncio.subprocess.Process
    port: int
    path: Path  # of the configuration
    ports: dict[str, int]  # of the providers
    turn: int = 0
    luck: Random = field(default_factory=Random)

    def reload(self, *, bad: bool = False) -> None:
        """By signal or by letting the file be found."""
        self.turn += 1
        text = config(self.ports, self.turn)
        self.path.write_text(text.replace("base_url", "base_ulr") if bad else text)
        self.process.send_signal(signal.SIGHUP)
        self.note({"event": "refused" if bad else "taken", "at": time.monotonic()})

    def kill(self) -> None:
        """A worker, without a word of warning."""
        workers = children(self.process.pid)
        if workers:
            os.kill(self.luck.choice(workers), signal.SIGKILL)
            self.note({"event": "killed", "at": time.monotonic()})

    def sample(self, event: str) -> None:
        pids = [self.process.pid, *children(self.process.pid)]
        rss, sockets = sum(map(resident, pids)), sum(map(open_sockets, pids))
        self.note({"event": event, "at": time.monotonic(), "rss": rss, "sockets": sockets})


def children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def resident(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    return 0


def open_sockets(pid: int) -> int:
    found = 0
    with suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                found += os.readlink(entry.path).startswith("socket:")
    return found


@contextmanager
def notebook(path: Path) -> Iterator[Note]:
    with path.open("w", buffering=1, encoding="utf-8") as out:
        yield lambda line: print(json.dumps(line), file=out)


@asynccontextmanager
async def staged(plan: Plan, note: Note) -> AsyncIterator[Soak]:
    """Providers and gateway, up and listening; gone afterwards."""
    folder = plan.folder
    environment = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PATH": os.defpath}
    lines = folder / "targets.jsonl"
    command = [sys.executable, "-m", "tests.chaos.upstream", str(lines), plan.seed]
    upstream = await asyncio.create_subprocess_exec(
        *command, env=environment, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert upstream.stdout is not None
    ports = json.loads(await upstream.stdout.readline())
    # The file holds the planted keys, so it lies beside the folder that is searched for them.
    path = folder.with_suffix(".toml")
    path.write_text(config(ports, 0))
    gateway = await started(plan, path, environment)
    try:
        port = await listening(folder / "gateway.err")
        yield Soak(plan, note, gateway, port, path, ports, luck=Random(plan.seed))
    finally:
        for process in (gateway, upstream):
            if process.returncode is None:
                process.kill()
            await process.wait()
        path.unlink()


async def started(plan: Plan, path: Path, env: dict[str, str]) -> asyncio.subprocess.Process:
    command = [sys.executable, "-m", "understudy.cli", "serve", "--config", str(path)]
    many = ["--workers", str(plan.workers)] if plan.workers > 1 else []
    with (
        (plan.folder / "gateway.jsonl").open("wb") as out,
        (plan.folder / "gateway.err").open("wb") as err,
    ):
        return await asyncio.create_subprocess_exec(
            *command, "--port", "0", *many, env=env, cwd=ROOT, stdout=out, stderr=err
        )


async def listening(path: Path) -> int:
    """The port, once the gateway has told it."""
    async with asyncio.timeout(30):
        while "listens on" not in (said := _text(path)):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)
    return int(said.split("listens on http://127.0.0.1:")[1].split(" ")[0].split("\n")[0])


async def heeded(run: Soak) -> None:
    """Wait until the gateway has told of every file it was given; workers tell more often."""
    log = run.plan.folder / "gateway.jsonl"
    async with asyncio.timeout(30):
        while _text(log).count('"event":"reload') < run.turn:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


async def soak(plan: Plan) -> None:
    """Warm up, rest, go on; then let go of everything and see what is left."""
    plan.folder.mkdir(parents=True, exist_ok=True)
    with (
        notebook(plan.folder / "stage.jsonl") as note,
        notebook(plan.folder / "clients.jsonl") as written,
    ):
        async with staged(plan, note) as run:
            note({
                "event": "begun", "at": time.monotonic(), "wall": _wall(),
                "workers": plan.workers, "chains": CHAINS, "cap": MAX_REPLY,
            })  # fmt: skip
            run.sample("start")
            for share, name in ((0.3, "warm"), (0.7, "after")):
                trouble = asyncio.ensure_future(troubled(run))
                seed = f"{plan.seed}/{name}"
                await load(run.port, plan.clients, plan.seconds * share, seed, written)
                trouble.cancel()
                await asyncio.gather(trouble, return_exceptions=True)
                await heeded(run)  # a file that is overwritten at once may never be read
                run.reload()  # changed providers: their old connections have to go
                await asyncio.sleep(REST)
                run.sample(name)
            for number, page in enumerate(PAGES):
                (plan.folder / f"page-{number}.txt").write_bytes(await fetched(run.port, page))
            run.process.terminate()
            await asyncio.wait_for(run.process.wait(), 15)
            note({"event": "ended", "code": run.process.returncode})


async def troubled(run: Soak) -> None:
    """What operators and accidents do to a gateway while it works."""
    plan = run.plan
    ticks = 0
    while True:
        await asyncio.sleep(LOOK)
        ticks += 1
        run.sample("sample")
        if ticks % round(plan.reload_every / LOOK) == 0:
            run.reload(bad=run.luck.random() < 0.25)
        if plan.workers > 1 and ticks % round(plan.kill_every / LOOK) == 0:
            run.kill()


async def fetched(port: int, page: str) -> bytes:
    """Head and body of a page, with the operator's key."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        f"GET {page} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n"
        f"authorization: Bearer {ADMIN_KEY}\r\n\r\n".encode()
    )
    async with asyncio.timeout(10):
        data = await reader.read()
    writer.close()
    return data


def _wall() -> float:
    return time.time()  # noqa: TID251 - log lines have the wall's time, all others the clock's


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="soak")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--workers", type=int, default=1)
    asyncio.run(soak(Plan(**vars(parser.parse_args(arguments)))))


if __name__ == "__main__":
    main(sys.argv[1:])
