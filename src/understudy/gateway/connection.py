"""One client's connection: bytes in, requests to the application, their replies out.

The parser calls back for framing; headers and body go from it straight into containers, without
a Python frame for each. Requests are answered one after another; a pipelined one waits its turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import httptools

from understudy.gateway import unfit
from understudy.gateway.farewell import SECONDS, Farewell
from understudy.gateway.heads import Heads
from understudy.gateway.http import (
    CONTINUE,
    JSON,
    Head,
    OldReply,
    Reply,
    Request,
    ServerLimits,
    plain_head,
)
from understudy.gateway.unfit import HEAD_MAX, Unfit
from understudy.providers.outbox import Outbox

# Answers in the callback itself and returns None, or returns what is to be run as a task.
Application = Callable[[Request, Reply], Awaitable[None] | None]


class Landlord(Protocol):
    """What a connection needs of its server."""

    application: Application
    refusal: Callable[[str, Unfit], bytes]
    limits: ServerLimits
    stopping: bool
    last_visits: bool
    now: float
    loop: asyncio.AbstractEventLoop
    outbox: Outbox
    heads: Heads

    def opened(self, connection: Connection) -> None: ...
    def closed(self, connection: Connection) -> None: ...
    def admits(self, method: str, path: str) -> bool:
        """May this be asked though all places are taken?"""


class Connection(asyncio.Protocol):
    """One client."""

    __slots__ = (
        "_body",
        "_busy",
        "_data",
        "_fields",
        "_headers",
        "_in_head",
        "_parser",
        "_peer",
        "_queue",
        "_reading",
        "_reply",
        "_server",
        "_size",
        "_task",
        "_transport",
        "_unsent",
        "_url",
        "deadline",
        "on_body",
        "on_header",
        "on_url",
        "paused",
        "resumed",
        "spare",
    )

    def __init__(self, server: Landlord) -> None:
        self._server = server
        self._transport: asyncio.Transport
        self._peer = ""
        self._reply: Reply | None = None  # to the request that is being answered
        self._task: asyncio.Task[None] | None = None  # that answers it, if one does
        self._queue: list[tuple[Request, Reply]] = []
        self._busy = False  # going through the queue
        self._unsent: list[bytes] = []  # until the turn's end; see `Outbox`
        # Of the request that is arriving. The parser fills these; see the head of this module.
        self._url: list[bytes] = []
        self._fields: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._headers: dict[bytes, bytes] = {}  # the same as `_fields`, names in lower case
        self._data = b""  # the piece it came in, if that began with it
        self._size = 0  # bytes
        self._in_head = True
        self._reading = False  # part of a request has arrived
        self.on_url = self._url.append
        self.on_header = self._fields.__setitem__
        self.on_body = self._body.append
        self._parser: httptools.HttpRequestParser | None = httptools.HttpRequestParser(self)
        self.paused = False
        self.resumed: Callable[[], object] | None = None
        self.deadline = 0.0
        self.spare = False  # all places are taken, and this one is kept for operators

    # -- from the event loop ------------------------------------------------------------------

    # The argument's type is narrower than the base's: uvloop's transports derive from neither.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self._peer = peer[0] if isinstance(peer, tuple) else ""
        self._server.opened(self)

    def data_received(self, data: bytes) -> None:
        begun = self._reading
        if not begun and not self.spare:
            known = self._server.heads.find(data)
            if known is not None and len(known[1]) <= self._server.limits.body:
                return self._asked(*known)
            self._data = data
        self._size += len(data)
        rest: bytes | memoryview = data
        try:
            while rest:
                rest = self._read(rest)
        except httptools.HttpParserError as error:
            why = error.__context__
            self._refuse(why if isinstance(why, Unfit) else unfit.NONSENSE)
        else:
            if self._size > HEAD_MAX:
                self._weigh()
            if self._reading and not begun and self._reply is None:
                self.deadline = self._server.now + self._server.limits.read_seconds

    def _read(self, data: bytes | memoryview) -> bytes | memoryview:
        """Feed the parser; what it leaves where a client would like another protocol.

        Such a wish may be ignored (RFC 9110, 7.8), but not by this parser. So another one takes
        the rest, and a head that says the same without it.
        """
        assert self._parser is not None
        try:
            self._parser.feed_data(data)
            return b""
        except httptools.HttpParserUpgrade as wish:
            begin: int = wish.args[0]
        head = plain_head(self._parser, b"".join(self._url), self._fields)
        self._url.clear()
        self._fields.clear()
        self._parser = httptools.HttpRequestParser(self)
        self._parser.feed_data(head)
        return memoryview(data)[begin:]

    def connection_lost(self, error: Exception | None) -> None:
        self._server.closed(self)
        self._queue.clear()
        self._parser = None  # it holds our methods, and we hold it
        reply = self._reply
        if self._task is not None:
            self._task.cancel()
        elif reply is not None and reply.left is not None:
            reply.left()
        if self.resumed is not None:
            self._resume()

    def pause_writing(self) -> None:
        self.paused = True
        self.deadline = self._server.now + self._server.limits.write_seconds

    def resume_writing(self) -> None:
        self.paused = False
        self.deadline = float("inf") if self._reply is not None else self.deadline
        if self.resumed is not None:
            self._resume()

    def _resume(self) -> None:
        callback, self.resumed = self.resumed, None
        if callback is not None:
            callback()

    # -- from the parser ----------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._reading = True

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        if self._parser.should_upgrade():  # see `_read`
            if self._parser.get_method() == b"CONNECT":
                raise unfit.no_proxy()
            return
        if self.spare:
            self._ask_leave()
        self._in_head = False
        self._headers = headers = {k.lower(): v for k, v in self._fields.items()}
        length = headers.pop(b"content-length", None)
        if length is not None and int(length) > self._server.limits.body:
            raise unfit.too_large(self._server.limits.body)
        if b"expect" in headers and self._reply is None:
            self._invite()

    def _ask_leave(self) -> None:
        assert self._parser is not None
        if not self._server.admits(self._parser.get_method().decode("latin-1"), self._path):
            raise unfit.crowded()

    @property
    def _path(self) -> str:
        """Of the request that is arriving."""
        return b"".join(self._url).partition(b"?")[0].decode("latin-1")

    def _invite(self) -> None:
        """A client may wait for this before it sends its body. HTTP/1.0 does not know it."""
        assert self._parser is not None
        expected = self._headers.get(b"expect", b"").lower()
        if expected == b"100-continue" and self._parser.get_http_version() == "1.1":
            self.put(CONTINUE)

    def on_message_complete(self) -> None:
        parser = self._parser
        assert parser is not None
        if self._in_head:  # it wished for another protocol: see `_read`
            return
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        if len(body) > self._server.limits.body:  # it came in chunks
            raise unfit.too_large(self._server.limits.body)
        head = Head(
            parser.get_method().decode("latin-1"),
            b"".join(self._url),
            self._headers,
            parser.should_keep_alive(),
            parser.get_http_version() == "1.0",
        )
        if self._data:
            self._server.heads.keep(self._data, head, body)
            self._data = b""
        self._url.clear()
        self._body.clear()
        self._fields.clear()
        self._size = 0
        self._in_head = True
        self._reading = False
        self._asked(head, body)

    def _weigh(self) -> None:
        """More has come than a head may be: too long a head, or too large a body?"""
        if self._in_head:
            self._refuse(unfit.LONG_HEAD)
        elif sum(map(len, self._body)) > self._server.limits.body:
            self._refuse(unfit.too_large(self._server.limits.body))

    # -- one request after another ------------------------------------------------------------

    def _asked(self, head: Head, body: bytes) -> None:
        server = self._server
        kind = OldReply if head.old else Reply
        keep = head.keep and not (self.spare or server.stopping or server.last_visits)
        reply = kind(self, keep)
        request = Request(head, body, self._peer)
        if self._reply is None and not self._busy:
            return self._serve(request, reply)
        self._queue.append((request, reply))
        self._transport.pause_reading()

    def _serve_queue(self) -> None:
        self._busy = True
        while self._queue and self._reply is None:
            self._serve(*self._queue.pop(0))
        self._busy = False

    def _serve(self, request: Request, reply: Reply) -> None:
        self.deadline = float("inf")
        self._reply = reply
        try:
            work = self._server.application(request, reply)
        except Exception as error:  # noqa: BLE001 - a bug of ours must not leave a client waiting
            self._apologise(request, reply, error)
        else:
            if work is not None:
                self._task = self._server.loop.create_task(self._work(work, request, reply))

    async def _work(self, work: Awaitable[None], request: Request, reply: Reply) -> None:
        try:
            await work
        except asyncio.CancelledError:
            self.abort()
        except Exception as error:  # noqa: BLE001 - a bug of ours must not leave a client waiting
            self._apologise(request, reply, error)
        else:
            self.over()

    def over(self) -> None:
        """The reply is complete: on to the next request, if there may be one."""
        reply = self._reply
        if reply is None:
            return
        self._reply = self._task = None
        if not reply.keep or self._server.stopping or not reply.status:
            more = self._queue or self._reading
            self._queue.clear()
            self._part() if more else self._close()
        elif self._queue:
            self._transport.resume_reading()
            if not self._busy:
                self._serve_queue()
        elif self._reading:
            self.deadline = self._server.now + self._server.limits.read_seconds
            if not self._in_head:
                self._invite()
        else:
            self.deadline = self._server.now + self._server.limits.idle_seconds

    def _apologise(self, request: Request, reply: Reply, error: Exception) -> None:
        """The application broke. Say so if nothing was said; what was begun is broken off."""
        told = {"message": f"{request.method} {request.path} broke", "exception": error}
        self._server.loop.call_exception_handler(told)
        if reply.started:
            return self.abort()
        reply.send(500, JSON, self._server.refusal(request.path, unfit.BROKEN))
        self.over()

    # -- from replies and the server ----------------------------------------------------------

    def put(self, data: bytes) -> None:
        if self._transport.is_closing():
            return
        if self._unsent or self._server.outbox.takes(self):
            self._unsent.append(data)
        else:
            self._transport.write(data)

    def flush(self) -> None:
        """See `Outbox`."""
        unsent = self._unsent
        if unsent and not self._transport.is_closing():
            self._transport.write(unsent[0] if len(unsent) == 1 else b"".join(unsent))
        unsent.clear()

    def _close(self) -> None:
        self.flush()
        self._transport.close()

    def _part(self) -> None:
        """Close, but so that a client that still sends can read what it was told."""
        self.flush()
        self._reading = False
        self.deadline = self._server.now + SECONDS
        self._transport.set_protocol(Farewell(self, self._server.limits.body))
        self._transport.resume_reading()
        self._transport.write_eof()

    def abort(self) -> None:
        self.flush()
        self._transport.abort()

    def cut(self) -> None:
        """The server stops: whoever asks, or waits for the end of an answer, is told."""
        reply = self._reply
        if reply is not None and reply.left is not None:
            reply.keep = False
            reply.left(unfit.STOPPED.why)
        elif reply is not None:
            self.abort()
        elif self._reading:
            self._refuse(unfit.STOPPED)
        else:
            self._close()

    def _refuse(self, problem: Unfit) -> None:
        """An answer to something that never became a request, in the dialect its path speaks."""
        if self._transport.is_closing():
            return
        if self._reply is not None:  # nonsense behind a good request, which is answered first
            self._reply.keep = False
            return self._transport.pause_reading()
        body = self._server.refusal(self._path, problem)
        Reply(self, keep=False).send(problem.status, JSON + problem.headers, body)
        self._part()

    def expire(self) -> None:
        """Its time is up: say so if it was in the middle of asking, else just end it."""
        if self.paused:
            self.abort()
        elif self._reading and self._reply is None:
            self._refuse(unfit.LATE)
        else:
            self._close()

    @property
    def busy(self) -> bool:
        return self._reply is not None
