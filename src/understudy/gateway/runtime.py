"""A gateway as a process: listens, reloads, drains. The only part that knows signals and files."""

from __future__ import annotations

import asyncio
import signal
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from understudy.core.errors import UnderstudyError
from understudy.core.health import Change, HealthTracker
from understudy.gateway.admin import Board
from understudy.gateway.app import Gateway, Route
from understudy.gateway.build import demo_house, exposed, house_of, house_of_env
from understudy.gateway.carry import carry_over
from understudy.gateway.config import InvalidConfig, Problem, read_config
from understudy.gateway.feed import Feed
from understudy.gateway.house import House
from understudy.gateway.http import Reply, Request
from understudy.gateway.pages import packaged, pages
from understudy.gateway.server import Server
from understudy.observe.lines import Gathered, LogLines
from understudy.observe.metrics import TEXT, Metrics
from understudy.observe.tracing import NoTracing, Tracing, tracer_provider
from understudy.providers.http import HttpProvider

FLUSH = 0.1  # seconds log lines may wait to be written together
LAST_WORDS = 1.0  # seconds that requests cut off at the end get to be told of

Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Setup:
    """What `serve` was told on the command line."""

    path: Path | None = None
    host: str | None = None
    port: int | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    look: float = 1.0  # seconds between looks at the configuration file


@dataclass(frozen=True, slots=True)
class Opened:
    """A house and where it listens."""

    house: House
    host: str
    port: int
    kind: str  # "file", "environment" or "demo"


def open_house(setup: Setup, old: House | None = None) -> Opened:
    """The house of the file, else of the environment, else the demo."""
    clock = time.monotonic
    if setup.path is not None:
        config = read_config(setup.path.read_text(encoding="utf-8"), setup.env)
        host = setup.host or str(config.gateway["host"])
        port = int(str(config.gateway["port"])) if setup.port is None else setup.port
        return _kept_in(Opened(house_of(config, setup.env, clock, old), host, port, "file"))
    house = house_of_env(setup.env, clock)
    kind = "demo" if house is None else "environment"
    port = 8080 if setup.port is None else setup.port
    return _kept_in(Opened(house or demo_house(clock), setup.host or "127.0.0.1", port, kind))


def _kept_in(opened: Opened) -> Opened:
    if problems := exposed(opened.host, opened.house.keys):
        raise InvalidConfig(problems)
    return opened


class Runtime:
    """One process's gateway."""

    def __init__(self, setup: Setup, write: Callable[[bytes], None]) -> None:
        self.setup = setup
        self.opened = open_house(setup)
        self.gateway = gateway = Gateway(self.opened.house, mishap=self._mishap)
        self.metrics = Metrics(
            lambda: gateway.in_flight,
            lambda: gateway.house.registry.health,
            lambda provider: gateway.house.vendor(provider),
        )
        self.board = Board(gateway)
        self.feed = Feed(gateway)
        self.stopping = asyncio.Event()
        self.server = Server(
            gateway, gateway.refuse, limits=self.opened.house.limits, clock=time.monotonic
        )
        self.gathered = Gathered(write, _later)
        access = self.opened.house.rules.access_log
        self.lines = LogLines(self.gathered, gateway.wall, access=access)
        gateway.readers = (self.lines, self.metrics, self.board, self.feed, *self._tracing())
        gateway.routes |= {("GET", "/metrics"): _told(self.metrics), **self.board.routes()}
        gateway.routes |= {**self.feed.routes(), **pages(gateway, packaged())}
        self._listen(self.opened.house.registry.health)
        self._seen = self._taken = self._stamp()
        self._closing: set[asyncio.Task[None]] = set()

    async def run(self, ready: Callable[[str, Opened], None]) -> None:
        """Serve until told to stop, then drain. `ready` is told the address."""
        loop = asyncio.get_running_loop()
        port = await self.server.listen(self.opened.host, self.opened.port)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stopping.set)
        loop.add_signal_handler(signal.SIGHUP, self.reload)
        ready(f"http://{_shown(self.opened.host)}:{port}", self.opened)
        await self._until_stopped()
        await self._drain(loop)

    async def _until_stopped(self) -> None:
        while not self.stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), self.setup.look)
            self._look()

    async def _drain(self, loop: asyncio.AbstractEventLoop) -> None:
        """Not ready, and deaf to newcomers; who is inside may end. A second signal ends it."""
        self.gateway.draining = True
        self.lines.note("draining", in_flight=self.gateway.in_flight)
        closing = loop.create_task(self.server.close())
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, closing.cancel)
        with suppress(asyncio.CancelledError):
            await closing
        if closing.cancelled():
            self.server.limits = replace(self.server.limits, drain_seconds=0.0)
            await self.server.close()
        end = loop.time() + LAST_WORDS
        while self.gateway.in_flight and loop.time() < end:  # noqa: ASYNC110 - once, at exit
            await asyncio.sleep(0.001)
        for provider in self.gateway.house.registry.providers.values():
            await _closed(provider)
        self.lines.note("stopped")
        self.gathered.flush()

    # -- reloading ----------------------------------------------------------------------------

    def _look(self) -> None:
        """Reload a changed file, once it has stayed as it is from one look to the next."""
        stamp = self._stamp()
        if stamp not in (self._taken, None) and stamp == self._seen:
            self.reload()
        self._seen = stamp

    def reload(self) -> None:
        """Take the file as it is now; a bad one leaves the old house in force."""
        if self.setup.path is None:
            return self.lines.note(
                "reload_refused", "warning", reason="there is no file to reload"
            )
        self._taken = self._stamp()
        old = self.gateway.house
        try:
            opened = open_house(self.setup, old)
            if problems := exposed(self.opened.host, opened.house.keys):
                raise InvalidConfig(problems)  # the address in use is still the old one
        except (UnderstudyError, OSError, UnicodeDecodeError) as error:
            self.metrics.reloads["refused"] += 1
            return self.lines.note("reload_refused", "error", reason=str(error))
        carry_over(old.registry.health, opened.house.registry.health)
        self._listen(opened.house.registry.health)
        self.gateway.house = opened.house
        self.server.limits = opened.house.limits
        self.lines.access = opened.house.rules.access_log
        self._retire(old)
        self.metrics.reloads["taken"] += 1
        changed = self._left_for_restart(opened)
        if changed:
            self.lines.note("reloaded", "warning", needs_restart=changed)
        else:
            self.lines.note("reloaded")

    def _left_for_restart(self, opened: Opened) -> list[str]:
        """Settings that changed and have no effect until the process is started anew."""
        ours, now = self.opened, opened
        pairs = {
            "gateway.host": (ours.host, now.host),
            "gateway.port": (ours.port, now.port),
            "gateway.tracing": (ours.house.rules.tracing, now.house.rules.tracing),
        }
        return [name for name, (one, other) in pairs.items() if one != other]

    def _retire(self, old: House) -> None:
        """Close the connections nobody will use again, once the last request of `old` is out."""
        now = self.gateway.house.registry.providers
        gone = [p for name, p in old.registry.providers.items() if now.get(name) is not p]

        def close() -> None:
            old.emptied = None
            for provider in gone:
                task = asyncio.ensure_future(_closed(provider))
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)

        old.emptied = close
        if not old.running:
            close()

    def _listen(self, health: HealthTracker) -> None:
        def told(change: Change) -> None:
            current = self.gateway.house.registry.health
            if current is health:
                self.metrics.change(change)
                self.board.change(change)
                self.feed.change(change)
            elif change.bench is not None:  # learned by a request that began before a reload
                current.hold(change.bench)

        health.listen(told)

    def _stamp(self) -> Stamp | None:
        if self.setup.path is None:
            return None
        try:
            stat = self.setup.path.stat()
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_size, stat.st_ino

    # -- the rest -----------------------------------------------------------------------------

    def _tracing(self) -> tuple[Tracing, ...]:
        if not self.opened.house.rules.tracing:
            return ()
        try:
            tracer = tracer_provider().get_tracer("understudy")
        except NoTracing as error:
            raise InvalidConfig([Problem("gateway.tracing", str(error))]) from None
        self.gateway.traced = True
        return (Tracing(tracer, lambda: self.gateway.house, self.gateway.wall),)

    def _mishap(self, error: Exception) -> None:
        """Where it happened and what kind it is; its words may quote a request, so they stay."""
        frames = traceback.extract_tb(error.__traceback__)[-3:]
        where = [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames]
        self.lines.note("internal_error", "error", kind=type(error).__name__, where=where)


async def _closed(provider: object) -> None:
    if isinstance(provider, HttpProvider):
        await provider.aclose()


def _told(metrics: Metrics) -> Route:
    async def route(request: Request, reply: Reply) -> None:
        if metrics.unpriced:  # loading prices takes a while, and streams are running
            await asyncio.to_thread(metrics.look_up)
        reply.send(200, f"content-type: {TEXT}\r\n".encode(), metrics.text())

    return route


def _later(flush: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(FLUSH, flush)


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
