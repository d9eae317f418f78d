"""Starts workers on one address and keeps them there. Serves nobody itself.

A worker that dies is replaced at once; one that dies young again and again after growing pauses.
One that stands still is ended, and so replaced.
What a reload cannot change is changed by replacing the workers one by one: the new one is ready
before the old one leaves, so that there is always somebody who listens.
"""

from __future__ import annotations

import asyncio
import signal
import tempfile
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import IO

from understudy.core.errors import UnderstudyError
from understudy.core.health import Clock
from understudy.gateway.counts import fold
from understudy.gateway.doors import Doors
from understudy.gateway.setup import Opened, Setup, open_house
from understudy.gateway.watch import Watched
from understudy.gateway.worker import Duty, Launch, Worker
from understudy.observe.lines import LogLines

YOUNG = 10.0  # seconds; who lives longer is not to blame for those before it
PAUSES = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)  # after so many young deaths in a row
START_SECONDS = 60.0  # for a worker to be ready
HUNG = 30  # looks without a word from a worker; a second apart, and it speaks every five
SPARE_SECONDS = 10.0  # beside what draining may take, before a worker is killed
FAILED = 1  # exit code if the first worker cannot be started and does not say why


def pause(deaths: int) -> float:
    """Seconds until the next start, after so many young deaths in a row."""
    return PAUSES[min(max(deaths, 1), len(PAUSES)) - 1]


class Supervisor:
    """One address, its workers, and the folder in which these find each other."""

    def __init__(
        self, setup: Setup, launch: Launch, lines: LogLines, folder: Path, clock: Clock
    ) -> None:
        """Raises InvalidConfig or OSError for what `serve` could not start with either."""
        self._setup = setup
        self._launch = launch
        self._lines = lines
        self._folder = folder
        self._clock = clock
        self._file = Watched(setup.path)
        opened, kept = self._read()
        doors = Doors(opened.host, opened.port, opened.workers)
        self.duty = Duty(opened, doors, kept)
        self.workers: dict[int, Worker] = {}  # by number
        self._every: set[Worker] = set()  # those who leave included
        self._deaths: dict[int, int] = {}
        self._serial = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._begun = False
        self._stopping = asyncio.Event()
        self._asked = asyncio.Event()  # by SIGHUP

    async def run(self, ready: Callable[[Duty], None]) -> int:
        """Until told to stop; the exit code."""
        loop = asyncio.get_running_loop()
        for sign in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(sign, self._stop)
        loop.add_signal_handler(signal.SIGHUP, self._asked.set)
        # The first goes ahead: what hinders it hinders all, and is said once.
        self.workers[1] = first = await self._started(1, self.duty)
        self._begun = await self._is_ready(first)
        if not self._begun and not self._stopping.is_set():
            await self._wait(first.process.wait(), SPARE_SECONDS)  # its last words are its reason
            first.signal(signal.SIGKILL)
            return max(await first.process.wait(), 0) or FAILED
        if not self._stopping.is_set():
            await self._fill()
            ready(self.duty)
        while not self._stopping.is_set():
            await self._wait(self._asked.wait(), self._setup.look)
            self._listen()
            await self._look()
        await self._drained()
        return 0

    # -- workers ------------------------------------------------------------------------------

    async def _fill(self) -> None:
        """Start those who are not there yet, and wait for them."""
        for number in range(2, self.duty.opened.workers + 1):
            self.workers[number] = await self._started(number, self.duty)
        for worker in list(self.workers.values()):
            await self._is_ready(worker)

    async def _started(self, number: int, duty: Duty) -> Worker:
        """A process that is under way, and watched."""
        self._serial += 1
        station = duty.station(number, self._serial, str(self._folder))
        worker = await Worker.started(station, duty, self._launch, self._clock())
        self._every.add(worker)
        task = asyncio.ensure_future(self._watch(worker))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return worker

    async def _watch(self, worker: Worker) -> None:
        """Wait for its end, and replace it if that was not due."""
        code = await worker.watched()
        self._every.discard(worker)
        fold(self._folder, worker.station.name)
        for path in self._folder.glob(f"{worker.station.name}.*"):
            path.unlink(missing_ok=True)
        number = worker.station.number
        if not self._is_missed(worker):
            return
        young = self._clock() - worker.began < YOUNG
        self._deaths[number] = self._deaths.get(number, 0) + 1 if young else 0
        seconds = pause(self._deaths[number])
        told = {"worker": number, "pid": worker.process.pid, "code": code}
        self._lines.note("worker_ended", "error", **told, restart_in=seconds)
        await self._wait(self._stopping.wait(), seconds)
        if self._is_missed(worker):
            duty = replace(worker.duty, kept=self.duty.kept)
            new = await self._started(number, duty)
            if self._is_missed(worker):
                self.workers[number] = new
            else:
                new.drain()  # somebody else took the place in the meantime

    def _listen(self) -> None:
        """End those of whom nothing was heard for long: their event loop stands still.

        Counted in looks and not in seconds. If it was the machine that stood still, we did too.
        """
        for worker in [w for w in self._every if w.was_ready]:
            worker.silence += 1
            if worker.silence == HUNG:
                told = {"worker": worker.station.number, "pid": worker.process.pid}
                self._lines.note("worker_hung", "error", **told)
                worker.signal(signal.SIGKILL)

    def _is_missed(self, worker: Worker) -> bool:
        held = self.workers.get(worker.station.number) is worker
        return held and self._begun and not self._stopping.is_set()

    async def _is_ready(self, worker: Worker) -> bool:
        """Wait for it; False if it ended, or takes for ever, or we are told to stop."""
        await self._wait(worker.ready_or_over(), START_SECONDS)
        return worker.was_ready and not self._stopping.is_set()

    async def _wait(self, work: Coroutine[object, object, object], seconds: float) -> None:
        """For that, or so long, or until we are told to stop."""
        tasks = [asyncio.ensure_future(w) for w in (work, self._stopping.wait())]
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()

    # -- the configuration --------------------------------------------------------------------

    async def _look(self) -> None:
        asked = self._asked.is_set()
        self._asked.clear()
        if asked:
            # One that is starting reads the file anyway, and would not survive the signal yet.
            for worker in [w for w in self.workers.values() if w.was_ready]:
                worker.signal(signal.SIGHUP)
        if self._setup.path is None or not (self._file.changed() or asked):
            return
        self._file.take()
        try:
            opened, kept = self._read()
        except (UnderstudyError, OSError, UnicodeDecodeError):
            return  # the workers say it
        old = self.duty.opened.fixed
        if changed := [name for name, value in opened.fixed.items() if value != old[name]]:
            await self._turn_to(Duty(opened, self.duty.doors, kept), changed)
        else:
            self.duty = Duty(opened, self.duty.doors, kept)

    def _read(self) -> tuple[Opened, IO[bytes] | None]:
        """The house of the file, and its text for workers that start while that is bad."""
        if self._setup.path is None:
            return open_house(self._setup), None
        text = self._setup.path.read_text(encoding="utf-8")
        opened = open_house(self._setup, text=text)
        kept = tempfile.TemporaryFile()  # noqa: SIM115 - stays, and has no name: it may hold keys
        kept.write(text.encode())
        kept.flush()
        return opened, kept

    async def _turn_to(self, wanted: Duty, changed: list[str]) -> None:
        """Replace the workers one by one; if one does not start, those who are left stay."""
        try:
            duty = replace(wanted, doors=self._doors_for(wanted.opened))
        except OSError as error:
            reason = error.strerror or str(error)
            return self._lines.note("restart_refused", "error", reason=reason)
        self._lines.note("restarting", changed=changed)
        old, self.duty = self.duty, duty
        for number in range(1, duty.opened.workers + 1):
            new = await self._started(number, duty)
            if not await self._is_ready(new):
                new.drain()
                return self._lines.note("restart_failed", "error", worker=number)
            self._replace(number, new)
        for number in [n for n in self.workers if n > duty.opened.workers]:
            self.workers.pop(number).retire()
        if old.doors is not duty.doors:
            old.doors.close()
        self._lines.note("restarted", address=duty.address)

    def _doors_for(self, opened: Opened) -> Doors:
        doors = self.duty.doors
        if not doors.serves(opened.host, opened.port):
            return Doors(opened.host, opened.port, opened.workers)
        doors.grow(opened.workers)
        return doors

    def _replace(self, number: int, new: Worker) -> None:
        old = self.workers.get(number)
        self.workers[number] = new
        if old is not None:
            old.retire()

    # -- the end ------------------------------------------------------------------------------

    def _stop(self) -> None:
        """By signal; a second one ends the drain of all."""
        again = self._stopping.is_set()
        self._stopping.set()
        for worker in self._every if again else ():
            worker.signal(signal.SIGTERM)

    async def _drained(self) -> None:
        """Close the doors, let the workers end; who takes too long is ended."""
        for doors in {worker.duty.doors for worker in self._every} | {self.duty.doors}:
            doors.close()
        for worker in self._every:
            worker.drain()
        limit = self.duty.opened.house.limits.drain_seconds + SPARE_SECONDS
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=limit)
        for worker in self._every:
            worker.signal(signal.SIGKILL)
        if self._tasks:
            await asyncio.wait(self._tasks)
