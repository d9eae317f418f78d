"""A gateway as a process: listens, reloads, drains. The only part that knows signals and files."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from understudy.core.errors import UnderstudyError
from understudy.core.health import State
from understudy.gateway.app import Gateway, Route
from understudy.gateway.build import demo_house, house_of, house_of_env
from understudy.gateway.config import read_config
from understudy.gateway.house import House
from understudy.gateway.http import Reply, Request
from understudy.gateway.server import Server
from understudy.observe.lines import Gathered, LogLines
from understudy.observe.metrics import TEXT, Metrics

LOOK = 1.0  # seconds between looks at the configuration file
FLUSH = 0.1  # seconds log lines may wait to be written together


@dataclass(frozen=True, slots=True)
class Setup:
    """What `serve` was told on the command line."""

    path: Path | None = None
    host: str | None = None
    port: int | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Opened:
    """A house and where it listens."""

    house: House
    host: str
    port: int
    kind: str  # "file", "environment" or "demo"


def open_house(setup: Setup) -> Opened:
    """The house of the file, else of the environment, else the demo."""
    clock = time.monotonic
    if setup.path is not None:
        config = read_config(setup.path.read_text(encoding="utf-8"), setup.env)
        host = setup.host or str(config.gateway["host"])
        port = int(str(config.gateway["port"])) if setup.port is None else setup.port
        return Opened(house_of(config, setup.env, clock), host, port, "file")
    house = house_of_env(setup.env, clock)
    kind = "demo" if house is None else "environment"
    port = 8080 if setup.port is None else setup.port
    return Opened(house or demo_house(clock), setup.host or "127.0.0.1", port, kind)


class Runtime:
    """One process's gateway."""

    def __init__(self, setup: Setup, write: Callable[[bytes], None]) -> None:
        self.setup = setup
        self.opened = open_house(setup)
        self.stopping = asyncio.Event()
        self._write = write
        self._seen = self._stamp()

    async def run(self, ready: Callable[[str, Opened], None]) -> None:
        """Serve until told to stop, then drain. `ready` is told the address."""
        loop = asyncio.get_running_loop()
        lines = Gathered(self._write, lambda flush: _later(loop, flush))
        gateway = Gateway(self.opened.house)
        self.gateway, self._lines = gateway, LogLines(lines)
        metrics = Metrics(lambda: gateway.in_flight, lambda: gateway.house.registry.health)
        gateway.readers = (self._lines, metrics)
        gateway.routes["GET", "/metrics"] = _told(metrics)
        self.metrics = metrics
        self.opened.house.registry.health.listen(metrics.change)
        limits = self.opened.house.limits
        server = Server(gateway, gateway.refuse, limits=limits, clock=time.monotonic)
        port = await server.listen(self.opened.host, self.opened.port)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stopping.set)
        loop.add_signal_handler(signal.SIGHUP, self.reload)
        ready(f"http://{_shown(self.opened.host)}:{port}", self.opened)
        await self._until_stopped()
        gateway.draining = True
        await server.close()
        lines.flush()

    async def _until_stopped(self) -> None:
        while not self.stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), LOOK)
            if (stamp := self._stamp()) != self._seen:
                self._seen = stamp
                self.reload()

    def reload(self) -> None:
        """Take the file as it is now; a bad one leaves the old house in force."""
        try:
            opened = open_house(self.setup)
        except (UnderstudyError, OSError) as error:
            self._lines.note("reload_refused", "error", reason=str(error))
            return
        old = self.gateway.house.registry.health
        _carry_over(old.snapshot(), opened.house, old.clock())
        opened.house.registry.health.listen(self.metrics.change)
        self.gateway.house = opened.house
        self._lines.note("reloaded")

    def _stamp(self) -> tuple[int, int] | None:
        if self.setup.path is None:
            return None
        try:
            stat = self.setup.path.stat()
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_size


def _carry_over(marks: Mapping[str, State], house: House, now: float) -> None:
    """What was learned before a reload still holds after it."""
    for state in marks.values():
        if state.bench is not None and state.bench.until > now:
            house.registry.health.hold(state.bench)


def _told(metrics: Metrics) -> Route:
    async def route(request: Request, reply: Reply) -> None:
        reply.send(200, f"content-type: {TEXT}\r\n".encode(), metrics.text())

    return route


def _later(loop: asyncio.AbstractEventLoop, flush: Callable[[], None]) -> None:
    loop.call_later(FLUSH, flush)


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
