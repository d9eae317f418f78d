"""The providers of a soak, as a process of their own: `python -m tests.chaos.upstream LINES SEED`.

Each speaks on a port of its own and misbehaves as the catalogue has it. What every request was
told, and when the gateway hung up, goes to LINES as JSON, one line an attempt. The ports are
printed when all listen.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TextIO

from tests.chaos.company import HEAVY, PROVIDER_KEYS, PROVIDERS, QUOTES, TALKS, WELL, cue
from tests.chaos.pulse import Pulse
from tests.chaos.spoken import pack, said
from understudy.rehearse.catalogue import CATALOGUE
from understudy.rehearse.cues import good, steps
from understudy.rehearse.inbound import Asked, Unreadable, _asked
from understudy.rehearse.phrases import voice
from understudy.rehearse.server import BLANKS, _Peer
from understudy.rehearse.wire import END, HANG, Open, Reply, Rest, Say, Steps

ID = re.compile(rb"rq(?:big)?-[0-9a-f]+-[0-9a-f]+")
BIG = 300_000  # characters for a client that reads slowly
PAUSES = (0.0, 0.0, 0.0, 0.02, 0.3)  # seconds before an answer


# Content at once, then a word now and then, for longer than anybody has time.
TALK: Steps = (Open(), Say("content"), *(Rest(0.3), Say("last event again")) * 60, END)


class Ear(asyncio.StreamReaderProtocol):
    """Hears when the peer hangs up, also while nobody reads."""

    left: float | None = None  # clock seconds

    def eof_received(self) -> bool | None:
        self.left = self.left or time.monotonic()
        return super().eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        self.left = self.left or time.monotonic()
        super().connection_lost(error)


class Pen:
    """A writer that keeps what it wrote."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.kept: list[bytes] = []
        self.transport = writer.transport
        self.get_extra_info = writer.get_extra_info
        self.drain = writer.drain
        self._writer = writer

    def write(self, data: bytes) -> None:
        if data is not BLANKS:  # they say nothing worth keeping
            self.kept.append(data)
        self._writer.write(data)

    def writelines(self, lines: list[bytes]) -> None:
        for line in lines:
            self.write(line)


@dataclass
class House:
    """One provider."""

    name: str
    out: TextIO
    seed: str
    pulse: Pulse
    asked: Counter[str] = field(default_factory=Counter)  # requests by id
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def listen(self) -> int:
        loop = asyncio.get_running_loop()

        def protocol() -> Ear:
            reader = asyncio.StreamReader(limit=1 << 26)
            return Ear(reader, lambda r, w: self._accepted(r, w))

        server = await loop.create_server(protocol, "127.0.0.1", 0, backlog=512)
        return int(server.sockets[0].getsockname()[1])

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ear = writer.transport.get_protocol()
        assert isinstance(ear, Ear)
        try:
            while (read := await _read(reader)) is not None:
                if not await self._attempt(*read, reader, writer, ear):
                    break
        except (OSError, EOFError, Unreadable):
            pass  # the gateway left, or was cut off in mid-request
        finally:
            writer.close()

    async def _attempt(
        self,
        asked: Asked,
        body: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        ear: Ear,
    ) -> bool:
        found = ID.search(body)
        identity = found[0].decode() if found else ""
        target = f"{self.name}/{asked.model}"
        self.asked[identity] += 1
        serial = self.asked[identity]
        luck = Random(f"{self.seed}/{identity}/{target}/{serial}")
        fault, script = self._script(target, asked.stream, luck)
        unit = f"<{target} {identity} {serial}>"
        text = unit * (BIG // len(unit) if identity.startswith("rqbig") else 3)
        if fault in HEAVY:
            text = fault  # packed once and kept, not for each request
        began, stale = time.monotonic(), ear.left is not None
        pen, keeps, played = Pen(writer), False, False
        try:
            said_by = voice(asked.dialect, asked.model, text)
            keeps = await _Peer(reader, pen).play(script, said_by)  # type: ignore[arg-type]
            await writer.drain()
            played = True
        except OSError:
            pass
        finally:
            heard = said(asked.dialect, _body(b"".join(pen.kept)), stream=_streams(pen.kept))
            line = {
                "who": "target",
                "id": identity,
                "target": target,
                "fault": fault,
                "stream": asked.stream,
                "began": began,
                "ended": time.monotonic(),
                "left": ear.left,
                "stale": stale,
                "lag": self.pulse.lag(began),
                "whole": played and heard.ended and _is_answer(fault),
                "text": pack(heard.text),
            }
            self.out.write(json.dumps(line) + "\n")
        return keeps

    def _script(self, target: str, stream: bool, luck: Random) -> tuple[str, Steps]:
        pause: Steps = (Rest(luck.choice(PAUSES)),)
        if target.endswith(f"/{QUOTES}"):
            words = {"error": {"message": f"Incorrect API key: {PROVIDER_KEYS[self.name]}."}}
            status = luck.choice([401, 403, 500])
            return QUOTES, (*pause, Reply(status, json.dumps(words).encode()))
        name, chosen = cue(target, stream, luck)
        if name == TALKS:
            return name, TALK if stream else (HANG,)
        if chosen is None:
            return name, (*pause, *good(stream=stream))
        return name, (*pause, *steps(chosen, stream=stream))


def _is_answer(fault: str) -> bool:
    """Some rows of the catalogue look odd and are answers."""
    return fault == WELL or (fault in CATALOGUE and CATALOGUE[fault].fault is None)


async def _read(reader: asyncio.StreamReader) -> tuple[Asked, bytes] | None:
    """A request and its body; None when the gateway is done."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")
    pairs = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return _asked(first.split(" ")[1].partition("?")[0], body), body


def _streams(kept: list[bytes]) -> bool:
    return any(b"transfer-encoding: chunked" in piece for piece in kept[:3])


def _body(data: bytes) -> bytes:
    """The body of an answer as it was written, without its head and chunk sizes."""
    head, _, rest = data.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" not in head:
        return rest
    body = []
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        try:
            length = int(size, 16)
        except ValueError:
            break
        body.append(rest[:length])
        rest = rest[length + 2 :]
    return b"".join(body)


async def serve(out: TextIO, seed: str) -> None:
    pulse = Pulse()
    houses = [House(name, out, seed, pulse) for name in PROVIDERS]
    ports = {house.name: await house.listen() for house in houses}
    sys.stdout.write(json.dumps(ports) + "\n")
    sys.stdout.flush()
    await pulse.beat()


def main(path: str, seed: str) -> None:
    with Path(path).open("w", buffering=1, encoding="utf-8") as out, suppress(KeyboardInterrupt):
        asyncio.run(serve(out, seed))


if __name__ == "__main__":
    main(*sys.argv[1:3])
