"""A provider on a real socket that misbehaves by script, byte for byte, on every surface.

It speaks whatever dialect it is asked in. The model's name chooses the clause of the script, with
or without the provider before it; `*` is the clause of all others. Without one, a model named like
a fault of the catalogue always shows that fault, and any other answers well.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never

from understudy.rehearse.catalogue import CATALOGUE, ROWS
from understudy.rehearse.cues import DEFAULT, good, on_wire, steps
from understudy.rehearse.inbound import Asked, Unreadable, listing, read_request
from understudy.rehearse.named import Named
from understudy.rehearse.phrases import Voice, voice
from understudy.rehearse.script import Clause, Cue, Status, Text, Timed
from understudy.rehearse.wire import Drip, Ending, First, Open, Raw, Reply, Rest, Say, Steps

ANYBODY = "*"  # a clause for all models that have none
BITE = 65536
BLANKS = b" " * BITE


@dataclass(frozen=True, slots=True)
class Played:
    """One request and what was done to it, for whoever keeps count."""

    model: str
    dialect: str
    stream: bool
    cue: str  # "" for an answer nobody scripted


class FakeServer:
    """`async with FakeServer(parse("m: 503 'hello'")) as server: server.address`"""

    def __init__(
        self, clauses: Iterable[Clause] = (), *, note: Callable[[Played], None] | None = None
    ) -> None:
        self.played: list[Played] = []
        self.address = ""
        self._queues = {clause.target: on_wire(clause) for clause in clauses}
        # A gateway sends the model without its provider: `p/a` in a script is also asked as `a`.
        for target, queue in tuple(self._queues.items()):
            self._queues.setdefault(target.partition("/")[2] or target, queue)
        self._note = note or self.played.append
        self._server: asyncio.Server | None = None
        self._peers: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        self._server = await asyncio.start_server(self._accepted, host, port)
        bound = self._server.sockets[0].getsockname()[1]
        self.address = f"http://{f'[{host}]' if ':' in host else host}:{bound}"
        return self.address

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            tasks = tuple(self._peers)
            for task in tasks:
                self._peers[task].transport.abort()
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._server.wait_closed()

    async def __aenter__(self) -> FakeServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._peers[task] = writer
        task.add_done_callback(self._peers.pop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (asked := await read_request(reader)) is not None:
                if not await self._answer(asked, _Peer(reader, writer)):
                    break
        except (OSError, EOFError, asyncio.LimitOverrunError):
            pass  # the peer left, or speaks something else
        except Unreadable as error:
            writer.write(_plain(error.status, json.dumps({"error": {"message": str(error)}})))
        finally:
            writer.close()

    async def _answer(self, asked: Asked, peer: _Peer) -> bool:
        """Play one answer; may the connection be used again?"""
        if asked.listing:
            names = [*self._queues, *(row.name for row in ROWS if row.seen)]
            return await peer.play((Reply(body=listing(names)),), voice("openai", ""))
        cues = self._cues(asked.model)
        text = next((c.text for c in cues if isinstance(c, Text)), "")
        said = voice(asked.dialect, asked.model, text or DEFAULT.format(model=asked.model))
        self._note(Played(asked.model, asked.dialect, asked.stream, " ".join(map(_told, cues))))
        script = [step for cue in cues for step in steps(cue, stream=asked.stream)]
        if all(isinstance(step, Rest) for step in script):
            script += good(stream=asked.stream)
        return await peer.play(tuple(script), said)

    def _cues(self, model: str) -> list[Cue]:
        queue = self._queues.get(model) or self._queues.get(ANYBODY)
        if queue is not None:
            return queue.next()
        fault = CATALOGUE.get(model)
        return [] if fault is None else [fault]


def _told(cue: Cue) -> str:
    match cue:
        case Text():
            return "text"
        case Timed():
            return f"{cue.verb}({cue.amount:g})"
        case Named():
            return cue.name
        case Status():
            return str(cue.number)


@dataclass(frozen=True, slots=True)
class _Peer:
    """Somebody who asked."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def play(self, script: Steps, said: Voice) -> bool:
        phrases = said.phrases()
        for step in script:
            if isinstance(step, Ending):
                if not await self._end(step):
                    return False
            elif isinstance(step, Drip):
                await self._drip(step, said)
                return False
            elif isinstance(step, Rest):
                await asyncio.sleep(step.seconds)
            else:
                for data in _bytes(step, said, phrases):
                    self.writer.write(data)
                    await self.writer.drain()
        return True

    async def _end(self, ending: Ending) -> bool:
        match ending:
            case Ending.END:
                self.writer.write(b"0\r\n\r\n")
                return True
            case Ending.CLOSE:
                return False
            case Ending.RESET:
                sock = self.writer.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.writer.transport.abort()
            case Ending.HANG:
                while await self.reader.read(BITE):
                    pass
            case _:
                assert_never(ending)
        return False

    async def _drip(self, step: Drip, said: Voice) -> None:
        """A head at once, then a byte at a time, for as long as somebody listens."""
        phrases = said.phrases()
        if step.stream:
            self.writer.write(_head(Open(), said))
            data = b"".join(map(_chunk, said.stream()))
        else:
            data = phrases["answer"]
            self.writer.writelines(_whole(Reply(missing=len(data)), data))
        for place in range(len(data)):
            self.writer.write(data[place : place + 1])
            await self.writer.drain()
            await asyncio.sleep(step.seconds)


def _bytes(
    step: Reply | Open | Say | First | Raw, said: Voice, phrases: Mapping[str, bytes]
) -> Iterable[bytes]:
    match step:
        case Reply(body=body):
            yield from _whole(step, phrases[body] if isinstance(body, str) else body)
        case Open():
            yield _head(step, said)
        case Say(pieces=pieces, times=times):
            for _ in range(times):
                for piece in pieces:
                    yield _chunk(phrases[piece] if isinstance(piece, str) else piece)
        case First(events=count):
            yield from map(_chunk, said.stream()[:count])
        case Raw(data=data):
            yield data
        case _:
            assert_never(step)


def _chunk(data: bytes) -> bytes:
    # An empty chunk would end the stream.
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def _head(step: Open, said: Voice) -> bytes:
    kind = step.kind or said.kind
    return (
        f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    )


def _whole(step: Reply, body: bytes) -> Iterator[bytes]:
    """Head and body; what is huge comes in bites, so that a peer that had enough can leave."""
    if step.gzipped:
        body = _packed(step.padding, body)
    length = len(body) + (0 if step.gzipped else step.padding)
    coding = "content-encoding: gzip\r\n" if step.gzipped else ""
    more = "".join(f"{name}: {value}\r\n" for name, value in step.headers)
    yield (
        f"HTTP/1.1 {step.status} {'OK' if step.status < 300 else 'Fault'}\r\n"
        f"content-type: {step.kind}\r\n{coding}{more}"
        f"content-length: {length + step.extra}\r\n\r\n"
    ).encode()
    if not step.gzipped:
        for _ in range(step.padding // BITE):
            yield BLANKS
    yield body[: max(0, len(body) - step.missing)]


@lru_cache(maxsize=8)
def _packed(padding: int, body: bytes) -> bytes:
    packer = zlib.compressobj(1, wbits=31)
    parts = [packer.compress(BLANKS) for _ in range(padding // BITE)]
    return b"".join((*parts, packer.compress(body), packer.flush()))


def _plain(status: int, text: str) -> bytes:
    return b"".join(_whole(Reply(status), text.encode()))
