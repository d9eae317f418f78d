"""A client of an agent server, byte by byte."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

from tests.agents.rig import House, ok, run, task
from understudy.agents import AgentServer, Bounds, write

Json = dict[str, object]
Story = Callable[[AgentServer], Awaitable[object]]


class Client:
    """Bytes out, answers in."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def of(cls, server: AgentServer) -> Client:
        host, _, port = server.url.removeprefix("http://").rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def answer(self) -> tuple[int, Json]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:-2])
        body = await self.reader.readexactly(int(fields.get("content-length", 0)))
        return int(head.split()[1]), json.loads(body)

    async def ended(self) -> bool:
        return await self.reader.read() == b""

    def close(self) -> None:
        self.writer.close()


def post(body: bytes, *headers: str, path: str = "/route", method: str = "POST") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: x", f"content-length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def served(
    story: Callable[[Client], Awaitable[object]],
    house: House | None = None,
    bounds: Bounds | None = None,
    key: str = "",
) -> None:
    async def play() -> None:
        router = (house or House(a=ok("a"))).router
        async with AgentServer(router, key=key, bounds=bounds or Bounds()) as server:
            client = await Client.of(server)
            try:
                await story(client)
            finally:
                client.close()

    run(play())


def error(answer: Json) -> Json:
    assert answer["status"] == "error"
    found = answer["error"]
    assert isinstance(found, dict)
    return found


GOOD = write(task())
