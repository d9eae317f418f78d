"""Recorded exchanges served on a real socket and read by our provider as the SDKs read them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.rig import run
from tests.served import BASES, provider
from understudy import ProviderError, Request, Response, user
from understudy.providers.base import Call

RECORDINGS = Path(__file__).parents[2] / "../shared/wire/exchanges.jsonl"
DIALECTS = {
    "openai_chat": "openai",
    "openai_responses": "responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "ollama": "ollama",
}
Row = dict[str, Any]


@asynccontextmanager
async def playback(rows: list[Row]) -> AsyncIterator[str]:
    """A server that answers the n-th connection with the n-th recording, streams in chunks."""
    left = list(rows)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        row = left.pop(0)
        body = row["response_body"].encode()
        kind = row["response_headers"].get("content-type", "application/json")
        top = f"HTTP/1.1 {row['status']} X\r\ncontent-type: {kind}\r\nconnection: close\r\n"
        writer.write(f"{top}transfer-encoding: chunked\r\n\r\n".encode())
        for at in range(0, len(body), 97):
            piece = body[at : at + 97]
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def read(address: str, row: Row) -> Response | ProviderError:
    dialect = DIALECTS[row["dialect"]]
    assert dialect in BASES
    call = Call("m", Request(messages=(user("hi"),)))
    up = provider(dialect, address)
    try:
        if not row["stream"]:
            return await up.generate(call)
        events = [event async for event in up.stream(call)]
        assert isinstance(events[-1], Response)
        return events[-1]
    except ProviderError as error:
        return error


def seen(told: Response | ProviderError) -> Row:
    if isinstance(told, ProviderError):
        return {"error": True}
    calls = [{"name": c.name, "arguments": _parsed(c.arguments)} for c in told.tool_calls]
    return {
        "text": _parsed(told.text) if told.text.startswith("{") else told.text,
        "tool_calls": calls,
        "finish": told.finish_reason,
        "usage": None if told.usage is None else (told.usage.input, told.usage.output),
    }


def expected(row: Row) -> Row:
    want = row["expected"]
    if want.get("error"):
        return {"error": True}
    text, usage = want["text"], want["usage"]
    return {
        "text": _parsed(text) if text.startswith("{") else text,
        "tool_calls": [
            {"name": c["name"], "arguments": c["arguments"]} for c in want["tool_calls"]
        ],
        "finish": want["finish"],
        "usage": None if usage is None else (usage.get("input") or 0, usage.get("output") or 0),
    }


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_at_least_99_of_100_recordings_read_as_the_sdks_read_them(dialect: str) -> None:
    if not RECORDINGS.exists():
        pytest.skip("no recordings beside the checkout")
    lines = RECORDINGS.read_text().splitlines()
    rows = [r for r in map(json.loads, lines) if r["dialect"] == dialect]

    async def scene() -> list[str]:
        wrong = []
        async with playback(rows) as address:
            for row in rows:
                told = seen(await read(address, row))
                if told != expected(row):
                    wrong.append(f"{row['id']}: {told} instead of {expected(row)}")
        return wrong

    wrong = run(scene())
    assert len(wrong) <= len(rows) / 100, "\n".join(wrong)
