"""Workers whose event loop stands still: not dead, and no use to anybody."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

from tests.rig import run
from tests.workers.stage import until
from understudy.gateway.crew import BEAT_SECONDS
from understudy.gateway.setup import Setup
from understudy.gateway.station import Station
from understudy.gateway.supervisor import HUNG, Supervisor
from understudy.gateway.worker import Worker
from understudy.observe.lines import LogLines

# The first of them says that it is ready and then no more; the others speak up to the end.
WORKER = """
import os, select, signal, sys
line, serial = map(int, sys.argv[1:])
os.write(line, b"ready\\n")
if serial == 1:
    signal.pause()
while not select.select([line], [], [], 0.005)[0]:
    os.write(line, b"beat\\n")
"""


async def launch(station: Station) -> asyncio.subprocess.Process:
    words = (WORKER, str(station.lifeline), str(station.serial))
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", *words, pass_fds=station.inherited
    )


def test_a_worker_that_says_nothing_any_more_is_ended_and_replaced(tmp_path: Path) -> None:
    path, folder = tmp_path / "understudy.toml", tmp_path / "run"
    path.write_text("[gateway]\nport = 0\n")
    folder.mkdir()
    written: list[bytes] = []

    async def work() -> int:
        setup = Setup(path, env={}, look=0.01)
        lines = LogLines(written.append, lambda: 0.0)
        supervisor = Supervisor(setup, launch, lines, folder, time.monotonic)
        running = asyncio.ensure_future(supervisor.run(lambda _: None))
        worker: Worker | None = None

        def replaced() -> bool:
            nonlocal worker
            worker = supervisor.workers.get(1)
            return worker is not None and worker.station.serial == 2 and worker.was_ready

        async with asyncio.timeout(60):
            await until(replaced)
            assert worker is not None
            for _ in range(3):  # heard again and again, whatever else we do
                await until(lambda: worker.silence > 0)
                await until(lambda: worker.silence == 0)
            assert supervisor.workers[1] is worker
            supervisor._stop()
            code = await running
        assert supervisor.duty.kept is not None
        supervisor.duty.kept.close()
        return code

    assert run(work()) == 0
    told = [json.loads(line) for line in b"".join(written).splitlines()]
    assert [line["event"] for line in told] == ["worker_hung", "worker_ended"]
    assert told[0]["pid"] == told[1]["pid"]
    assert told[1]["code"] == -9


def test_half_a_minute_of_silence_is_far_more_than_a_worker_leaves() -> None:
    assert HUNG * Setup().look >= 5 * BEAT_SECONDS
