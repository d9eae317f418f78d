"""A gateway as a process: listens, reloads, drains. The only part that knows signals and files."""

from __future__ import annotations

import asyncio
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from understudy.core.errors import UnderstudyError
from understudy.core.health import Change, HealthTracker
from understudy.gateway.admin import Board
from understudy.gateway.app import Gateway, Route
from understudy.gateway.build import exposed
from understudy.gateway.carry import carry_over
from understudy.gateway.config import InvalidConfig, Problem
from understudy.gateway.crew import Crew, counts_of
from understudy.gateway.feed import Feed
from understudy.gateway.files import FEW, room
from understudy.gateway.house import House
from understudy.gateway.http import Reply, Request
from understudy.gateway.journal import Journal
from understudy.gateway.pages import packaged, pages
from understudy.gateway.past import Past
from understudy.gateway.scribe import Scribe
from understudy.gateway.server import Server
from understudy.gateway.setup import Opened, Setup, address_of, open_anyhow, open_house
from understudy.gateway.ties import Ties
from understudy.gateway.watch import Watched
from understudy.observe.lines import LogLines
from understudy.observe.metrics import TEXT, Metrics
from understudy.observe.tracing import NoTracing, Tracing, tracer_provider
from understudy.providers.http import HttpProvider

FLUSH = 0.1  # seconds log lines may wait to be written together
LAST_WORDS = 1.0  # seconds that requests cut off at the end get to be told of


class Runtime:
    """One process's gateway."""

    def __init__(
        self, setup: Setup, write: Callable[[bytes], None], lost: Callable[[], int] = int
    ) -> None:
        self.setup = setup
        self.opened, refused = open_anyhow(setup)
        self.gateway = gateway = Gateway(self.opened.house, mishap=self._mishap)
        self.metrics = Metrics(
            lambda: gateway.in_flight,
            lambda: gateway.house.registry.health,
            lambda provider: gateway.house.vendor(provider),
            lambda: self.ties.told(),
            lost,
        )
        self.past = Past()
        self.board = Board(gateway, self.past)
        self.feed = Feed(gateway, self.past)
        self.stopping = asyncio.Event()
        self.server = Server(
            gateway, gateway.refuse, limits=self.opened.house.limits, clock=time.monotonic
        )
        self.server.room, self.server.crowded = room(setup.files), self._crowded
        self.server.open_to = gateway.has_route
        access = self.opened.house.rules.access_log
        self.lines = LogLines(write, gateway.wall, access=access, later=_later)
        self._scribe = self._begin_journal()
        readers = (self.lines, self.metrics, self.past)
        gateway.told_to(*readers, *self._journal(), *self._tracing())
        ties = (gateway, self.board, self.feed, self.metrics)
        self.crew = None if setup.station is None else Crew(setup.station, *ties)
        gateway.routes |= {("GET", "/metrics"): _told(self.metrics, self.crew)}
        gateway.routes |= self.board.routes()
        gateway.routes |= {**self.feed.routes(), **pages(gateway, packaged())}
        self._listen(self.opened.house.registry.health)
        self.ties = Ties(self.opened.house, setup.station, self.lines.note)
        self._file = Watched(setup.path)
        self._closing: set[asyncio.Task[None]] = set()
        self._warn(refused)

    def _warn(self, refused: str) -> None:
        """What is not well from the start: a bad file, too few files."""
        if refused:
            self.lines.note("reload_refused", "error", reason=refused)
        if self.server.most < min(FEW, self.opened.house.limits.connections):
            files = self.setup.files
            self.lines.note("few_files", "warning", files=files, connections=self.server.room)

    async def run(self, ready: Callable[[str, Opened], None]) -> None:
        """Serve until told to stop, then drain. `ready` is told the address."""
        loop = asyncio.get_running_loop()
        await self.ties.start()
        if self.crew is None:
            port = await self.server.listen(self.opened.host, self.opened.port)
        else:
            port = await self.crew.open(self.server, self.stopping.set)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stopping.set)
        loop.add_signal_handler(signal.SIGHUP, self.reload)
        ready(address_of(self.opened.host, port), self.opened)
        await self._until_stopped()
        await self._drain(loop)

    async def _until_stopped(self) -> None:
        while not self.stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), self.setup.look)
            self._look()

    async def _drain(self, loop: asyncio.AbstractEventLoop) -> None:
        """Not ready, then deaf to newcomers; who is inside may end. A second signal ends it."""
        self.gateway.draining = True
        self.lines.note("draining", in_flight=self.gateway.in_flight)
        closing = loop.create_task(self._close())
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
        if self._scribe is not None:
            self._scribe.close()
        await self.ties.close()
        if self.crew is not None:
            await self.crew.close()
        self.lines.note("stopped")
        self.gateway.tell()
        self.lines.flush()

    async def _close(self) -> None:
        """Whoever balances load gets time to see that we are not ready; all is still served."""
        self.server.last_visits = True
        await asyncio.sleep(self.gateway.house.rules.drain_delay)
        if self.crew is not None:
            self.crew.deafen()
        await self.server.close()

    # -- reloading ----------------------------------------------------------------------------

    def _look(self) -> None:
        """Reload a changed file, once it has stayed as it is from one look to the next."""
        if self._file.changed():
            self.reload()

    def reload(self) -> None:
        """Take the file as it is now; a bad one leaves the old house in force."""
        if self.setup.path is None:
            return self.lines.note(
                "reload_refused", "warning", reason="there is no file to reload"
            )
        self._file.take()
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
        self.ties.move(opened.house)
        for journal in self._journal():
            journal.reloaded(opened.house)
        self.server.limits = opened.house.limits
        self.lines.access = opened.house.rules.access_log
        self._retire(old)
        self.metrics.reloads["taken"] += 1
        ours = self.opened.fixed
        changed = [name for name, value in opened.fixed.items() if value != ours[name]]
        if changed and self.crew is None:  # workers have somebody who starts them anew
            self.lines.note("reloaded", "warning", needs_restart=changed)
        else:
            self.lines.note("reloaded")

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
            if change.kind == "order":
                return  # nothing was held here
            if current is health:
                if change.source != "remote":  # it is counted where it was learned
                    self.metrics.change(change)
                self.lines.change(change, health.clock())
                self.board.change(change)
                self.feed.change(change)
                for journal in self._journal():
                    journal.change(change)
            elif change.bench is not None:  # learned by a request that began before a reload
                current.hold(change.bench)

        health.listen(told)

    # -- the rest -----------------------------------------------------------------------------

    def _tracing(self) -> tuple[Tracing, ...]:
        if not self.opened.house.rules.tracing:
            return ()
        try:
            tracer = tracer_provider().get_tracer("understudy")
        except NoTracing as error:
            raise InvalidConfig([Problem("gateway.tracing", str(error))]) from None
        self.gateway.traced = True
        return (Tracing(tracer, lambda: self.gateway.house.registry),)

    def _begin_journal(self) -> Scribe | None:
        shelf = self.opened.house.rules.journal
        if shelf is None:
            return None
        try:
            return Scribe(shelf.sheet(self.setup.worker), self.gateway, self._no_journal)
        except OSError as error:
            why = f"cannot be written: {error.strerror or error}"
            raise InvalidConfig([Problem("journal.path", why)]) from None

    def _journal(self) -> tuple[Journal, ...]:
        return () if self._scribe is None else (self._scribe.journal,)

    def _no_journal(self, why: str) -> None:
        self.lines.note("journal_lost", "error", reason=why)

    def _crowded(self, turned_away: int) -> None:
        limit = self.server.most
        self.lines.note("crowded", "warning", turned_away=turned_away, connections=limit)

    def _mishap(self, error: Exception) -> None:
        """Where it happened and what kind it is; its words may quote a request, so they stay."""
        frames = traceback.extract_tb(error.__traceback__)[-3:]
        where = [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames]
        self.lines.note("internal_error", "error", kind=type(error).__name__, where=where)


async def _closed(provider: object) -> None:
    if isinstance(provider, HttpProvider):
        await provider.aclose()


def _told(metrics: Metrics, crew: Crew | None) -> Route:
    async def route(request: Request, reply: Reply) -> None:
        counts = await (counts_of(metrics) if crew is None else crew.counts())
        reply.send(200, f"content-type: {TEXT}\r\n".encode(), counts)

    return route


def _later(flush: Callable[[], None]) -> None:
    try:
        asyncio.get_running_loop().call_later(FLUSH, flush)
    except RuntimeError:  # from a thread, or before the loop runs
        flush()
