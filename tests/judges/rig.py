"""Where judges live: an environment of their own, made by `make judges`; they run as programs.

What judges need weighs much and pins what the other tests have newer, so none of it is imported
here. Without the environment their tests are skipped, and the reason says what to do.
"""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import pytest

from tests.clients.rig import closed_port
from tests.served import house, listening, provider
from understudy.core.target import Attempt
from understudy.observe.record import Opening, Record
from understudy.testing import told

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
TOOLS = ROOT / ".judges" / "tools" / "bin"
LONG = 60.0  # seconds a program may take to begin: this machine may be a busy one


def tool(name: str = "python") -> str:
    """A program of the judges' environment."""
    found = TOOLS / name
    if not found.exists():
        pytest.skip("the judges have no environment here; `make judges` makes one")
    return str(found)


@contextmanager
def running(command: Sequence[str], announced: str, cwd: Path) -> Iterator[str]:
    """A server in a process of its own; what stands behind `announced` in its log."""
    with subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        lines: SimpleQueue[str] = SimpleQueue()
        # Read to the end: who is not listened to would block on its own log.
        Thread(target=_overheard, args=(process.stdout, lines), daemon=True).start()
        try:
            yield _announced(lines, announced)
        finally:
            process.kill()  # some judges have no graceful end, and none has anything to lose


def _overheard(said: Iterable[str], lines: SimpleQueue[str]) -> None:
    for line in said:
        lines.put(line)
    lines.put("")


def _announced(lines: SimpleQueue[str], announced: str) -> str:
    heard: list[str] = []
    while line := lines.get(timeout=LONG):
        heard.append(line)
        if announced in line:
            return line.partition(announced)[2].strip()
    raise AssertionError(f"it never said {announced!r}: {''.join(heard[-40:])}")


@dataclass
class Door:
    """A gateway's address, and what it tells of its requests, one after the other."""

    address: str = ""
    _records: SimpleQueue[Record] = field(default_factory=SimpleQueue)

    def attempt(self, opening: Opening, attempt: Attempt, number: int) -> None:
        """Nothing: a record holds its attempts."""

    def finished(self, record: Record) -> None:
        self._records.put(record)

    def record(self) -> Record:
        """The next one: a client may have its answer before the gateway tells of it."""
        return self._records.get(timeout=LONG)

    def story(self) -> list[str]:
        return told(self.record().attempts)


@asynccontextmanager
async def in_front_of(upstream: str, dialect: str, **aliases: str) -> AsyncIterator[Door]:
    """A gateway before this server, which is `head` and `tail` alike; at `dead` nobody listens."""
    door = Door()
    async with AsyncExitStack() as stack:
        nobody = stack.enter_context(closed_port())
        places = {"dead": nobody, "head": upstream, "tail": upstream}
        providers = [provider(dialect, at, name) for name, at in places.items()]
        for each in providers:
            stack.push_async_callback(each.aclose)
        served = house(*providers, **aliases)
        door.address = await stack.enter_async_context(listening(served, door))
        yield door


@dataclass(frozen=True)
class Told:
    """An answer, as it came."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):  # type: ignore[no-untyped-def]
        return json.loads(self.body)


def post(address: str, path: str, body: object) -> Told:
    """One request over a fresh connection."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=LONG)
    try:
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return Told(answer.status, headers, answer.read())
    finally:
        connection.close()
