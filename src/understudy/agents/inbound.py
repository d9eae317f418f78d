"""HTTP as it comes in: bytes to requests, answers to bytes, with limits on all of it.

Knows no agents: what a request means is the business of the function it is given.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast

import httptools

LINGER = 2.0  # seconds we listen on to a client that we refused


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a client may ask of us."""

    head: int = 16 * 1024  # bytes of request line and headers
    body: int = 8 * 1024 * 1024  # bytes
    patience: float = 30.0  # seconds for a whole request to come in, or the next to begin
    connections: int = 1000


@dataclass(frozen=True, slots=True)
class Incoming:
    """One whole request."""

    method: str
    path: str  # without the query
    authorization: str
    body: bytes
    keep_alive: bool


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes back, always JSON."""

    status: int
    body: bytes


Serve = Callable[[Incoming], Awaitable[Reply]]
Refuse = Callable[[int, str], Reply]  # a status and a sentence


class _Refused(Exception):
    def __init__(self, status: int, why: str) -> None:
        self.status = status
        self.why = why


class Connection(asyncio.Protocol):
    """One client. Its requests are answered one at a time, in order."""

    def __init__(
        self, serve: Serve, refuse: Refuse, bounds: Bounds, others: set[Connection]
    ) -> None:
        self._serve = serve
        self._refuse = refuse
        self._bounds = bounds
        self._others = others
        self._queue: deque[Incoming] = deque()
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closing = False
        self._taken = asyncio.Event()  # the client takes what we write
        self._taken.set()
        self._begun = 0  # requests, ever
        self._between = True  # no request has begun since the last was complete
        self._reset()

    # -- the event loop's side ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Said, not asked: uvloop's transports do not derive from asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpRequestParser(self)
        self._others.add(self)
        if len(self._others) > self._bounds.connections:
            self._refused(_Refused(503, "too many connections"))
            return
        self._wait(self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._others.discard(self)
        self._closing = True
        self._unwait()
        self._queue.clear()
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        known = self._begun + self._between
        try:
            self._parser.feed_data(data)
            if self._in_head and self._begun == known:
                # A header without an end reaches no callback, so bytes are counted as well; not
                # those of a request that began somewhere within them.
                self._raw += len(data)
                self._check(self._raw)
        except _Refused as refusal:
            self._refused(refusal)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            # What our own callbacks raise comes wrapped.
            ours = error.__context__
            bad = _Refused(400, "not an HTTP/1.1 request")
            self._refused(ours if isinstance(ours, _Refused) else bad)

    def pause_writing(self) -> None:
        self._taken.clear()
        self._unwait()
        self._wait(self.abort)

    def resume_writing(self) -> None:
        self._taken.set()
        self._unwait()

    # -- the parser's side --------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._reset()
        self._begun += 1
        self._between = False

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._check(len(self._url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head += len(name) + len(value)
        self._check(self._head)
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        self._in_head = False
        length = self._headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > self._bounds.body:
            raise _Refused(413, f"the body has more than {self._bounds.body} bytes")
        if self._headers.get(b"expect", b"").lower() == b"100-continue":
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._body += body
        if len(self._body) > self._bounds.body:
            raise _Refused(413, f"the body has more than {self._bounds.body} bytes")

    def on_message_complete(self) -> None:
        self._unwait()
        self._between = True
        self._queue.append(
            Incoming(
                self._parser.get_method().decode("latin-1"),
                self._url.partition(b"?")[0].decode("latin-1"),
                self._headers.get(b"authorization", b"").decode("latin-1"),
                bytes(self._body),
                self._parser.should_keep_alive(),
            )
        )
        if self._task is None:
            # We go on reading: a client that leaves is noticed while it is being served.
            self._task = asyncio.get_running_loop().create_task(self._answer())
        elif self._transport.is_reading():
            self._transport.pause_reading()

    # -- ours ---------------------------------------------------------------------------------

    async def drained(self) -> None:
        """Let the request at work finish, take no more, and close."""
        self._closing = True
        if self._task is not None:
            await asyncio.wait([self._task])
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    async def _answer(self) -> None:
        while self._queue:
            incoming = self._queue.popleft()
            try:
                reply = await self._serve(incoming)
            except BaseException:
                if not self._closing:  # nobody left: an agent ended it, and the client still waits
                    self._transport.abort()
                raise
            keep = incoming.keep_alive and not self._closing
            self._write(reply, keep)
            await self._taken.wait()
            if not keep:
                self._transport.close()
                return
        self._task = None
        if not self._transport.is_reading():
            self._transport.resume_reading()
        self._wait(self._late)

    def _check(self, size: int) -> None:
        if size > self._bounds.head:
            raise _Refused(431, f"the headers have more than {self._bounds.head} bytes")

    def _refused(self, refusal: _Refused) -> None:
        """Say why and close; what was asked before is not answered any more."""
        self._closing = True
        self._unwait()
        if self._task is not None:
            self._task.cancel()
        self._write(self._refuse(refusal.status, refusal.why), keep=False)
        # Whoever still sends would lose our answer to a reset if we closed at once.
        self._transport.write_eof()
        self._wait(self.abort, LINGER)

    def _write(self, reply: Reply, keep: bool) -> None:
        phrase = HTTPStatus(reply.status).phrase
        head = (
            f"HTTP/1.1 {reply.status} {phrase}\r\n"
            "content-type: application/json\r\n"
            f"content-length: {len(reply.body)}\r\n"
            f"connection: {'keep-alive' if keep else 'close'}\r\n\r\n"
        )
        self._transport.write(head.encode("latin-1") + reply.body)

    def _wait(self, then: Callable[[], None], seconds: float = math.inf) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(min(seconds, self._bounds.patience), then)

    def _unwait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        if not self._between:
            self._refused(_Refused(408, "the request took too long to arrive"))
        else:
            self._transport.close()

    def _reset(self) -> None:
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._body = bytearray()
        self._in_head = True
        self._raw = self._head = 0  # bytes of it, as they came and as they were understood
