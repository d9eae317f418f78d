"""How many files a gateway may have open, and what it does with few."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.desk import (
    DONE,
    HELLO,
    Line,
    Process,
    Told,
    Upstream,
    aliases,
    always,
    chunk,
    process,
    provider,
)
from tests.rig import run
from understudy.gateway.files import SPARE, room

STREAM = {**HELLO, "model": "chat", "stream": True}


@given(st.integers(1, 2_000_000))
def test_there_are_three_files_for_every_client_and_some_for_the_rest(files: int) -> None:
    clients = room(files)
    assert clients >= 1
    assert clients == 1 or 3 * clients + min(SPARE, files // 2) <= files


def limit_of(running: Process) -> str:
    table = Path(f"/proc/{running.process.pid}/limits").read_text()
    [line] = [line for line in table.splitlines() if line.startswith("Max open files")]
    return line.split()[3]


def test_a_gateway_asks_for_as_many_files_as_it_may_have() -> None:
    async def work() -> str:
        async with asyncio.timeout(60), process("", shell="ulimit -Sn 64; ulimit -Hn 4000") as up:
            return limit_of(up)

    assert run(work()) == "4000"


async def let_in(running: Process, count: int) -> list[Line]:
    """So many clients at once; those that have the first piece of a stream."""

    async def enter() -> Line | None:
        try:
            line = await Line.to(running.address)
        except OSError:
            return None
        try:
            line.send("POST", "/v1/chat/completions", STREAM)
            await line.head()
            await line.piece()
        except (OSError, EOFError):
            line.close()
            return None
        return line

    lines = await asyncio.gather(*(enter() for _ in range(count)))
    return [line for line in lines if line is not None]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_with_few_files_few_are_let_in_and_all_of_those_are_answered(host: str) -> None:
    async def work() -> tuple[int, int, Told, list[Told]]:
        rest = asyncio.Event()
        pieces = (chunk("he"), rest, chunk("llo", "stop"), DONE)
        async with Upstream(always(pieces)) as up, asyncio.timeout(60):
            text = provider("p", up.url.replace("127.0.0.1", host)) + aliases(chat="p/m")
            text = '[gateway]\nadmin_key = "adm"\n' + text
            async with process(text, shell="ulimit -n 64") as running:
                inside = await let_in(running, 60)
                rest.set()
                bodies = [await line.rest({"transfer-encoding": "chunked"}) for line in inside]
                key = {"authorization": "Bearer adm"}
                health = await inside[0].ask("GET", "/understudy/api/health", None, key)
                for line in inside:
                    line.close()
                running.signal(signal.SIGTERM)
                _, lines = await running.ended()
                whole = sum(body.endswith(DONE) for body in bodies)
                return len(inside), whole, health.json, lines

    inside, whole, health, lines = run(work())
    assert inside == whole == room(64)
    assert health["keys"] == {}  # nobody is held to be ill
    told = {str(line["event"]): line for line in lines}
    assert (told["few_files"]["files"], told["few_files"]["connections"]) == (64, room(64))
    turned_away = sum(int(str(x["turned_away"])) for x in lines if x["event"] == "crowded")
    assert turned_away == 60 - room(64)
