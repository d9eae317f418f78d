"""One worker among several: its doors, its supervisor, and what its siblings know.

Whoever asks a worker about the gateway is told of the whole machine: counts, health, requests.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from shutil import rmtree

from understudy.gateway.admin import Board
from understudy.gateway.app import Gateway
from understudy.gateway.counts import keep, kept
from understudy.gateway.doors import Neighbours
from understudy.gateway.feed import Feed
from understudy.gateway.past import gently
from understudy.gateway.server import Server
from understudy.gateway.siblings import SUFFIX, Glimpse, Question, Siblings
from understudy.gateway.station import Station
from understudy.observe.metrics import Metrics
from understudy.observe.sums import added

READY = b"ready\n"  # said by a worker
BEAT = b"beat\n"  # said by one every so often, as long as its event loop turns
BEAT_SECONDS = 5.0
RETIRE = b"retire\n"  # said to one: another has taken its place
DRAIN = b"drain\n"  # said to one: the gateway ends
LAST_VISITS = 2.0  # seconds in which clients of a retiring worker are told not to come back
RECORDS = 5_000  # asked of a sibling at once, for the live feed
ENTRIES = 200
UP = "understudy_worker_up"


async def counts_of(metrics: Metrics) -> bytes:
    """What one process counted."""
    if metrics.unpriced:  # loading prices takes a while, and streams are running
        await asyncio.to_thread(metrics.look_up)
    return metrics.text()


class Crew:
    """A worker's ties."""

    def __init__(
        self, station: Station, gateway: Gateway, board: Board, feed: Feed, metrics: Metrics
    ) -> None:
        self.station = station
        self._gateway = gateway
        self._board = board
        self._feed = feed
        self._metrics = metrics
        self._siblings = Siblings(station.folder, station.name)
        self._neighbours: Neighbours | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._orders: asyncio.StreamReader | None = None
        self._lifeline: asyncio.StreamWriter | None = None
        self._gathering = asyncio.Lock()
        self._gathered_at = 0.0
        self._seen: dict[str, tuple[int, int]] = {}  # of each sibling, by the live feed
        board.others = self._siblings.ask
        feed.gather = self._gather

    async def open(self, server: Server, stop: Callable[[], None]) -> int:
        """Serve at our doors; the port. `stop` is called when it is time to drain."""
        doors = {number: socket.socket(fileno=number) for number in self.station.doors}
        port: int = next(iter(doors.values())).getsockname()[1]
        await self._siblings.start(self._answer)
        for number in self.station.own:
            await server.listen_on(doors.pop(number))
        self._neighbours = Neighbours(
            list(doors.values()), lambda guest: self._begin(server.take(guest))
        )
        self._neighbours.look()
        line = socket.socket(fileno=self.station.lifeline)
        self._orders, self._lifeline = await asyncio.open_connection(sock=line)
        self._begin(self._obey(self._orders, server, stop))
        return port

    def ready(self) -> None:
        """Tell the supervisor, and from now on that we are alive."""
        assert self._lifeline is not None
        self._lifeline.write(READY)
        self._begin(self._beat(self._lifeline))

    async def _beat(self, lifeline: asyncio.StreamWriter) -> None:
        while not lifeline.is_closing():
            await asyncio.sleep(BEAT_SECONDS)
            lifeline.write(BEAT)

    def deafen(self) -> None:
        """Let nobody in any more who waits at a neighbour's door."""
        if self._neighbours is not None:
            self._neighbours.close()

    async def close(self) -> None:
        """After the last request."""
        keep(self.station.folder, self.station.name, self._metrics.text().decode())
        await self._siblings.close()
        orphaned = self._orders is not None and self._orders.at_eof()
        if orphaned and not any(self.station.folder.glob(f"*{SUFFIX}")):
            rmtree(self.station.folder, ignore_errors=True)  # nobody else will
        for task in self._tasks:
            task.cancel()

    async def counts(self) -> bytes:
        """What the machine counted, those who ended included."""
        own = await self._own_counts()
        others = await self._siblings.ask(Question(metrics=True))
        living = {self.station.name, *(other.name for other in others)}
        told = [own, *(other.metrics for other in others)]
        up = self._up({self.station.number, *(other.number for other in others)})
        return added([*told, *kept(self.station.folder, living), up]).encode()

    # -- the supervisor -----------------------------------------------------------------------

    async def _obey(
        self, orders: asyncio.StreamReader, server: Server, stop: Callable[[], None]
    ) -> None:
        """Until it says to retire or to drain, or is gone."""
        with suppress(OSError):
            if await orders.readline() == RETIRE:
                await self._retire(server)
        stop()

    async def _retire(self, server: Server) -> None:
        """Nobody new comes in, and who asks once more is told that it was the last time.

        A connection that is closed while its client sends the next request loses that request.
        """
        self.deafen()
        server.shut()
        server.last_visits = True
        loop = asyncio.get_running_loop()
        end = loop.time() + LAST_VISITS
        while server.open_connections and loop.time() < end:  # noqa: ASYNC110 - once, at exit
            await asyncio.sleep(0.02)

    # -- the siblings -------------------------------------------------------------------------

    async def _answer(self, question: Question) -> Glimpse:
        """What we know by ourselves."""
        board, health = self._board, self._gateway.house.registry.health
        cleared = bool(question.unbench) and health.unbench(question.unbench, "remote")
        records, entries = question.since.get(self.station.name, (0, 0))
        # All of one moment: what comes while they are unpacked belongs to the next answer.
        seen, ledger = board.seen, board.ledger(question.entries, entries)
        told = await gently(board.past.last(question.records, records))
        return Glimpse(
            self.station.name,
            self.station.number,
            self._gateway.in_flight,
            len(board.past),
            seen,
            health.snapshot(),
            told,
            ledger,
            await self._own_counts() if question.metrics else "",
            cleared,
        )

    async def _own_counts(self) -> str:
        text = (await counts_of(self._metrics)).decode()
        keep(self.station.folder, self.station.name, text)
        return text

    def _up(self, answered: set[int]) -> str:
        numbers = range(1, self.station.of + 1)
        lines = [f'{UP}{{worker="{n}"}} {int(n in answered)}' for n in numbers]
        head = f"# HELP {UP} Did this worker answer when it was asked for its counts."
        return "\n".join([head, f"# TYPE {UP} gauge", *lines, ""])

    async def _gather(self) -> None:
        """For the live feed: what the siblings saw since they were last asked."""
        loop = asyncio.get_running_loop()
        async with self._gathering:
            if loop.time() < self._gathered_at + self._feed.tick / 2:
                return  # another listener just did
            asked = Question(records=RECORDS, entries=ENTRIES, since=self._seen)
            others = await self._siblings.ask(asked)
            self._seen |= {other.name: other.seen for other in others}
            self._feed.take(others)
            self._gathered_at = loop.time()

    def _begin(self, work: object) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
