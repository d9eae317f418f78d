"""What a full disk, a broken file and a kill leave of a journal."""

from __future__ import annotations

import asyncio
import os
import signal
from itertools import count
from pathlib import Path

import pytest

from tests.gateway.desk import (
    HELLO,
    Asked,
    Line,
    Plays,
    Upstream,
    always,
    answer,
    process,
    says,
    serving,
)
from tests.gateway.ink import Desk, config, told
from tests.rig import run
from understudy.gateway.journal import FLUSH, Journal
from understudy.observe.journal_file import Shelf
from understudy.rehearse.replay_read import read_journals
from understudy.rehearse.replay_report import compare
from understudy.rehearse.replay_settings import Changes


async def until_written(journal: Journal) -> None:
    """The writer is a thread, so turns of the loop do not tell; bounded all the same."""
    async with asyncio.timeout(30):
        while journal._writing:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.001)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no disk that is always full")
def test_a_full_disk_is_one_line_in_the_log_and_the_gateway_goes_on() -> None:
    async def work() -> None:
        text = config(Path("/dev/full"), "http://127.0.0.1:9")
        async with (
            Upstream(always()) as up,
            serving(text.replace("http://127.0.0.1:9", up.url)) as served,
        ):
            [journal] = served.runtime._journal()
            for _ in range(3):
                assert (await served.chat()).status == 200
                journal.flush()
                await until_written(journal)
            [line] = served.events("journal_lost")
            assert (line["level"], line["reason"]) == ("error", "No space left on device")

    run(work())


def test_after_trouble_the_journal_begins_anew_and_says_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    desk = Desk(Shelf(path))
    desk.request("one")
    desk.journal.flush()
    sheet = desk.journal._sheet
    good, sheet._file = sheet._file, os.open("/dev/null", os.O_RDONLY)
    for name in ("two", "three"):
        desk.request(name)
        desk.journal.flush()
    os.close(sheet._file)
    sheet._file = good
    assert desk.complaints == ["Bad file descriptor"]
    desk.request("four")
    desk.journal.close()
    library = read_journals([path])
    [only] = library.runs
    assert [asked.id for asked in only.requests] == ["one", "four"]
    assert only.lost >= 2
    kinds = [line["kind"] for line in told(path)]
    assert kinds.count("head") == 2


async def hammer(address: str, client: int, answered: dict[str, float]) -> None:
    """One request after the other, for ever; what was answered when."""
    line = await Line.to(address)
    try:
        for n in range(10**9):
            name, body = f"{client}-{n}", {**HELLO, "model": "chat"}
            asked = {"x-request-id": name}
            if (await line.ask("POST", "/v1/chat/completions", body, asked)).status == 200:
                answered[name] = asyncio.get_running_loop().time()
    finally:
        line.close()


def test_a_killed_gateway_leaves_all_but_the_last_second(tmp_path: Path) -> None:
    """Under load from several clients, with failovers; killed in the midst of it."""
    path = tmp_path / "journal.jsonl"
    answered: dict[str, float] = {}
    turns = count()

    def play(_: Asked) -> Plays:
        return says(503) if next(turns) % 5 == 0 else Plays(200, answer())

    async def work() -> float:
        async with Upstream(play) as up, process(config(path, up.url)) as running:
            assert running.process.stdout is not None
            logged = asyncio.ensure_future(running.process.stdout.read())  # or it would block
            load = [asyncio.ensure_future(hammer(running.address, n, answered)) for n in range(6)]
            async with asyncio.timeout(60):
                while len(answered) < 100:  # noqa: ASYNC110 - clients are at work
                    await asyncio.sleep(0.01)
            await asyncio.wait(load, timeout=2.5)
            killed = asyncio.get_running_loop().time()
            running.signal(signal.SIGKILL)
            await asyncio.gather(*load, logged, running.process.wait(), return_exceptions=True)
            return killed

    killed = run(work())
    library = read_journals([path])
    assert library.damages == 0
    [only] = library.runs
    # Lines wait for half a second; the rest is for a machine that has other things to do.
    due = {name for name, at in answered.items() if at < killed - 1.5}
    assert len(due) >= 100
    assert FLUSH <= 0.5
    assert due - {asked.id for asked in only.requests} == set()
    found = compare(library, Changes())
    assert found.before.requests == sum(bool(asked.outcome) for asked in only.requests)
