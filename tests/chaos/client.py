"""Clients of a soak: they stay, leave in mid-request, read slowly, trickle their bodies in.

Each writes one line a request: what it wanted, what came, and when. Knows HTTP just enough to
tell an answer that is whole from one that was torn.
"""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from random import Random

from tests.chaos.company import CLIENT_KEY, PLANTED, Wish, draw
from tests.chaos.pulse import Pulse
from tests.chaos.spoken import pack, said

Note = Callable[[dict[str, object]], None]
SNIPPET = 4000  # characters of an error that are kept
SLOW = 8192  # bytes a slow reader takes at a time, and all it has room for
GIVE_UP = 30.0  # seconds after which a client calls it a hang


@dataclass
class Heard:
    """What came back, as far as it came."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    first: float | None = None  # clock seconds of the first byte of the body
    whole: bool = False  # ended as HTTP has it

    def took(self, data: bytes) -> None:
        if self.first is None and data:
            self.first = time.monotonic()
        self.body += data


class Client:
    """One caller, with one connection at a time."""

    def __init__(self, port: int, luck: Random, note: Note, pulse: Pulse) -> None:
        self._port = port
        self._pulse = pulse
        self._luck = luck
        self._note = note
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, wish: Wish) -> None:
        """One request, to whatever end, and a line about it."""
        heard = Heard()
        sent, left, trouble = time.monotonic(), None, ""
        try:
            async with asyncio.timeout(wish.after if wish.way == "leaves" else GIVE_UP):
                await self._exchange(wish, heard)
        except TimeoutError:
            left = time.monotonic()
            trouble = "" if wish.way == "leaves" else "hang"
        except (OSError, EOFError, asyncio.LimitOverrunError, ValueError) as error:
            trouble = f"torn: {type(error).__name__}"
        ended = time.monotonic()
        # A slow reader hears of the peer's end only when it has read all: too late for the next.
        over = wish.way == "slow" or heard.headers.get("connection") == "close"
        if over or not heard.whole:
            self.close()
        self._note(line(wish, heard) | {
            "sent": sent, "ended": ended, "left": left, "trouble": trouble,
            "lag": self._pulse.lag(sent),
        })  # fmt: skip

    def close(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()
        self._reader = self._writer = None

    async def _exchange(self, wish: Wish, heard: Heard) -> None:
        if wish.way == "slow":
            self.close()
        if self._writer is None or self._writer.is_closing():
            self._reader, self._writer = await self._connect(wish)
        reader, writer = self._reader, self._writer
        assert reader is not None
        head, body = written(wish)
        if wish.way == "trickles":
            await self._trickle(writer, head + body)
        else:
            writer.write(head + body)
        await _head(reader, heard)
        if "content-length" in heard.headers:
            await self._take(reader, heard, wish, int(heard.headers["content-length"]))
        else:
            while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
                await self._take(reader, heard, wish, size)
                await reader.readexactly(2)
            await reader.readexactly(2)
        heard.whole = True

    async def _connect(self, wish: Wish) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if wish.way != "slow":
            return await asyncio.open_connection("127.0.0.1", self._port)
        narrow = socket.socket()
        narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SLOW)
        narrow.setblocking(False)
        await asyncio.get_running_loop().sock_connect(narrow, ("127.0.0.1", self._port))
        return await asyncio.open_connection(sock=narrow, limit=SLOW)

    async def _take(
        self, reader: asyncio.StreamReader, heard: Heard, wish: Wish, size: int
    ) -> None:
        most = SLOW if wish.way == "slow" else 1 << 20
        while size:
            data = await reader.read(min(size, most))
            if not data:
                raise EOFError
            heard.took(data)
            size -= len(data)
            if wish.way == "slow":
                await asyncio.sleep(0.02)

    async def _trickle(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        for place in range(0, len(data), 97):
            writer.write(data[place : place + 97])
            await asyncio.sleep(self._luck.uniform(0.0, 0.04))


async def _head(reader: asyncio.StreamReader, heard: Heard) -> None:
    text = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = text.rstrip().split("\r\n")
    pairs = (line.partition(":") for line in lines)
    heard.headers = {name.lower(): value.strip() for name, _, value in pairs}
    heard.status = int(first.split(" ")[1])


def written(wish: Wish) -> tuple[bytes, bytes]:
    """The request's bytes, head and body."""
    words = f"please answer {wish.id}"
    message = {"role": "user", "content": words}
    stream = {"stream": True} if wish.stream else {}
    places: dict[str, tuple[str, dict[str, object]]] = {
        "openai": ("/v1/chat/completions", {"messages": [message]}),
        "anthropic": ("/v1/messages", {"messages": [message], "max_tokens": 99}),
        "responses": ("/v1/responses", {"input": words}),
        "gemini": (_gemini(wish), {"contents": [{"role": "user", "parts": [{"text": words}]}]}),
    }
    path, content = places[wish.surface]
    whole = content if wish.surface == "gemini" else {"model": wish.model, **content, **stream}
    body = json.dumps(whole).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {CLIENT_KEY}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        f"x-request-id: {wish.id}\r\nx-understudy-timeout: {wish.deadline}\r\n\r\n"
    )
    return head.encode(), body


def _gemini(wish: Wish) -> str:
    verb = "streamGenerateContent?alt=sse" if wish.stream else "generateContent"
    return f"/v1beta/models/{wish.model}:{verb}"


def line(wish: Wish, heard: Heard) -> dict[str, object]:
    """What is written down of one request."""
    body = bytes(heard.body)
    good = heard.status == 200
    told = said(wish.surface, body, stream=wish.stream and good)
    everything = b"\n".join((body, json.dumps(heard.headers).encode()))
    return {
        "who": "client",
        **asdict(wish),
        "status": heard.status,
        "first": heard.first,
        "whole": heard.whole,
        "text": pack(told.text),
        "terminated": good and heard.whole and told.ended,
        "error": told.error[:SNIPPET],
        "body": "" if good else body[:SNIPPET].decode("utf-8", "replace"),
        "attempts": heard.headers.get("x-understudy-attempts", ""),
        "target": heard.headers.get("x-understudy-target", ""),
        "leaks": [name for name, key in PLANTED.items() if key.encode() in everything],
    }


async def load(port: int, clients: int, seconds: float, seed: str, note: Note) -> None:
    """So many callers at once, for so long; whoever has begun then comes to his end."""
    end, pulse = time.monotonic() + seconds, Pulse()

    async def work(number: int) -> None:
        luck = Random(f"{seed}/{number}")
        client = Client(port, luck, note, pulse)
        turn = 0
        while time.monotonic() < end:
            turn += 1
            await client.ask(draw(luck, number << 16 | turn))
            await asyncio.sleep(luck.expovariate(20.0))
            if luck.random() < 0.1:
                client.close()
        client.close()

    beating = asyncio.ensure_future(pulse.beat())
    try:
        await asyncio.gather(*(work(n) for n in range(clients)))
    finally:
        beating.cancel()
