"""Processes on cores of their own, what they cost by `/proc`, and the C programs that load them.

Knows no gateway. Linux only, as `/proc` and `taskset` are.
"""

from __future__ import annotations

import http.client
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

HERE = Path(__file__).parent
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
FILES = 20_000  # open files: five thousand streams have two ends each
LOOK = 0.002  # seconds between looks at a process that is starting


class Failed(Exception):
    """Something that was started does not do what it should; one line."""


def raise_file_limit() -> None:
    """As many open files as the harness and what it starts may need."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, FILES)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(hard, wanted)))
    except (ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def compiled(name: str, folder: Path) -> str:
    """The path of a C program of this folder, built."""
    binary = folder / name
    compiler = shutil.which("cc")
    if compiler is None:
        raise Failed("no C compiler `cc`; on Debian: apt install gcc libc6-dev")
    command = [compiler, "-O2", "-o", str(binary), str(HERE / f"{name}.c")]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        raise Failed(f"cannot build {name}.c: {built.stderr.strip().partition(chr(10))[0]}")
    return str(binary)


def free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def pinned(core: int, command: Sequence[str]) -> list[str]:
    """On that core, if there are two and somebody can say so."""
    cores = os.cpu_count() or 1
    if shutil.which("taskset") is None or cores < 2:
        return list(command)
    return ["taskset", "-c", str(core), *command]


@dataclass(frozen=True, slots=True)
class Start:
    """How a process is started, and how to see that it is ready."""

    command: Sequence[str]
    port: int
    path: str = ""  # ready when this answers 200; "": when the port is open
    headers: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    patience: float = 20.0  # seconds until it must be ready


class Process:
    """Something started on a core, ended with everything it started itself."""

    def __init__(self, start: Start, core: int, log: Path) -> None:
        self._start = start
        self._log = log
        # Writing bytecode is what an installation has done long ago.
        own = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}  # noqa: TID251
        self._began = time.perf_counter()
        with log.open("ab") as out:
            self._popen = subprocess.Popen(
                pinned(core, start.command),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**own, **start.env},
                cwd=start.folder,
                start_new_session=True,
            )
        self.ready_seconds = 0.0

    def __enter__(self) -> Process:
        try:
            self._until_ready()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _: TracebackType | None,
    ) -> None:
        self._end()

    @property
    def cpu(self) -> float:
        """User and system seconds of it and its children so far."""
        return sum(_cpu(pid) for pid in _family(self._popen.pid))

    @property
    def resident(self) -> float:
        """Megabytes in memory now."""
        return sum(_pages(pid) for pid in _family(self._popen.pid)) * PAGE / 1e6

    @property
    def peak(self) -> float:
        """Megabytes in memory at most, so far."""
        return sum(_peak(pid) for pid in _family(self._popen.pid)) * 1024 / 1e6

    def _until_ready(self) -> None:
        start = self._start
        while not _ready(start):
            if self._popen.poll() is not None:
                raise Failed(f"{Path(start.command[0]).name} ended at once: {self._last_words()}")
            if time.perf_counter() - self._began > start.patience:
                raise Failed(f"not ready within {start.patience:g} s: {self._last_words()}")
            time.sleep(LOOK)  # noqa: TID251 - a process that is starting cannot be awaited
        self.ready_seconds = time.perf_counter() - self._began

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else "it said nothing"

    def _end(self) -> None:
        family = _family(self._popen.pid)
        for number, patience in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
            for pid in family:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            with suppress(subprocess.TimeoutExpired):
                self._popen.wait(patience)
                return


def _ready(start: Start) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", start.port, timeout=2)
    try:
        connection.connect()
        if not start.path:
            return True
        connection.request("GET", start.path, headers=dict(start.headers))
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _family(pid: int) -> list[int]:
    """A process and everybody below it."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (fields := _stat(int(entry))):
            children.setdefault(int(fields[1]), []).append(int(entry))
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo += children.get(found[-1], [])
    return found


def _stat(pid: int) -> list[str]:
    """The fields after the command's name, which may hold anything; none if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _cpu(pid: int) -> float:
    """From the scheduler where it tells, because ticks of 10 ms are long for short slices."""
    with suppress(OSError):
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS if fields else 0.0


def _pages(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[21]) if fields else 0


def _peak(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    return 0


@dataclass(frozen=True, slots=True)
class Load:
    """What the load generator is told."""

    port: int
    body: Path
    connections: int = 1
    seconds: float = 1.0
    requests: int = 0  # so many instead of so long
    ramp: int = 0  # connections opened a second; 0: all at once
    events: int = 0  # of each stream; 0: whatever comes
    headers: Sequence[str] = ()


def loaded(binary: str, load: Load) -> dict[str, float]:
    """Run it on core 1; its figures."""
    command = [binary, "-p", str(load.port), "-f", str(load.body), "-c", str(load.connections)]
    command += ["-n", str(load.requests)] if load.requests else ["-d", str(load.seconds)]
    command += ["-r", str(load.ramp), "-e", str(load.events)]
    for header in load.headers:
        command += ["-H", header]
    done = subprocess.run(pinned(1, command), capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"the load generator failed: {done.stderr.strip()[:200]}")
    figures: dict[str, float] = json.loads(done.stdout)
    return figures
