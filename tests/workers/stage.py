"""A gateway of several workers as processes of their own, and a look at each of them.

Workers are asked as they ask each other: the folder stands in their environment.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.gateway.desk import HELLO, Heard, Line, Process, aliases, process, provider
from understudy.gateway.siblings import Glimpse, Question, Siblings
from understudy.gateway.station import VARIABLE

BODY = {**HELLO, "model": "chat"}
STREAM = {**BODY, "stream": True}
CHAT = "/v1/chat/completions"
API = "/understudy/api"


@dataclass
class House:
    """A supervisor and its workers."""

    process: Process
    folder: Path

    @property
    def address(self) -> str:
        return self.process.address

    def pids(self) -> dict[int, int]:
        """Of the workers, by their numbers; the latest where one is leaving."""
        found = {}
        for pid in children(self.process.process.pid):
            told = station(pid)
            if told:
                found[int(str(told["number"]))] = pid
        return found

    async def glimpses(self, question: Question | None = None) -> list[Glimpse]:
        """What each worker knows by itself."""
        return await Siblings(self.folder, "test").ask(question or Question())

    async def until(self, seen: Callable[[list[Glimpse]], object]) -> list[Glimpse]:
        """Ask until it is so; bounded by the test's own timeout."""
        while not seen(glimpses := await self.glimpses()):
            pass
        return glimpses

    async def chat(self) -> Heard:
        line = await Line.to(self.address)
        try:
            return await line.ask("POST", CHAT, BODY)
        finally:
            line.close()

    async def lines(self) -> list[dict[str, object]]:
        """Everything that was logged, once it is over."""
        _, told = await self.process.ended()
        return told


def children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return sorted(int(word) for word in text.split())


def station(pid: int) -> dict[str, object]:
    """What a worker was told when it started; nothing for other processes."""
    try:
        text = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    for entry in text.split(b"\0"):
        name, _, value = entry.partition(b"=")
        if name.decode() == VARIABLE:
            found: dict[str, object] = json.loads(value)
            return found
    return {}


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def text_of(url: str, workers: int = 2, more: str = "", **chains: str) -> str:
    # A line for each request would fill the pipe that nobody reads before the end.
    quiet = "" if "access_log" in more else "access_log = false\n"
    head = f"[gateway]\nworkers = {workers}\n{quiet}{more}\n"
    return head + provider("p", url) + aliases(**(chains or {"chat": "p/m"}))


@asynccontextmanager
async def supervised(text: str, env: Mapping[str, str] | None = None) -> AsyncIterator[House]:
    async with asyncio.timeout(60), process(text, env) as running:
        pids = children(running.process.pid)
        folder = Path(str(next(filter(None, map(station, pids)))["run"]))
        yield House(running, folder)


@dataclass
class Client:
    """Asks again and again on a connection that it keeps while it may."""

    house: House
    answered: int = 0
    failures: list[str] = field(default_factory=list)
    served_by: str = ""  # the process that answered last, as its request ids begin

    async def ask(self, wanted: Callable[[], object]) -> None:
        """Until `wanted` is no longer so."""
        line: Line | None = None
        while wanted():
            try:
                if line is None:
                    line = await Line.to(self.house.address)
                heard = await line.ask("POST", CHAT, BODY)
            except (OSError, EOFError) as error:
                self.failures.append(type(error).__name__)
                if line is not None:
                    line.close()
                line = None
                continue
            self.served_by = heard.headers["x-request-id"].partition("-")[0]
            if heard.status == 200:
                self.answered += 1
            else:
                self.failures.append(str(heard.status))
            if heard.headers.get("connection") == "close":
                line.close()
                line = None
        if line is not None:
            line.close()


@asynccontextmanager
async def load(house: House, count: int) -> AsyncIterator[list[Client]]:
    """So many clients, from before the body to after it."""
    clients = [Client(house) for _ in range(count)]
    going = [True]
    tasks = [asyncio.ensure_future(client.ask(lambda: going[0])) for client in clients]
    try:
        await more(clients)
        yield clients
        await more(clients)
    finally:
        going[0] = False
        await asyncio.gather(*tasks)


async def more(clients: list[Client]) -> None:
    """Until every client has had another few answers."""
    before = [client.answered for client in clients]
    while any(c.answered < b + 5 for c, b in zip(clients, before, strict=True)):
        await turn()


async def turn() -> None:
    """Let others work: one round of the loop."""
    done = asyncio.Event()
    asyncio.get_running_loop().call_soon(done.set)
    await done.wait()


async def until(condition: Callable[[], object]) -> None:
    """Until it is so; bounded by the test's own timeout."""
    while not condition():
        await turn()
