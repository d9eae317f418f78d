"""An HTTP/1.1 server: bytes in, a request to the application, its reply out. Knows no routes.

One task per request, one coarse tick for all deadlines. Sizes, times and connections are bounded;
a client that leaves cancels its request. The application is any `async (Request, Reply) -> None`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import httptools

from understudy.core.health import Clock
from understudy.gateway.http import REASONS, Reply, Request, ServerLimits

TICK = 1.0  # seconds between looks at the clock; deadlines here are coarse on purpose
HEAD_MAX = 64 * 1024  # bytes of request line and headers


Application = Callable[[Request, Reply], Awaitable[None]]


class _Connection(asyncio.Protocol):
    """One client. Requests are answered one after another; a pipelined one waits its turn."""

    __slots__ = (
        "_body",
        "_head_size",
        "_headers",
        "_parser",
        "_queue",
        "_reading",
        "_server",
        "_size",
        "_target",
        "_task",
        "_transport",
        "deadline",
        "paused",
        "resumed",
    )

    def __init__(self, server: Server) -> None:
        self._server = server
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._task: asyncio.Task[None] | None = None
        self._queue: list[tuple[Request, bool]] = []
        self._fresh()
        self.paused = False
        self.resumed: Callable[[], object] | None = None
        self.deadline = 0.0

    def _fresh(self) -> None:
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._size = 0
        self._head_size = 0
        self._reading = False  # part of a request has arrived

    # -- from the event loop ------------------------------------------------------------------

    # The argument's type is narrower than the base's: uvloop's transports derive from neither.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._server.opened(self)

    def data_received(self, data: bytes) -> None:
        if self._task is None and not self._reading:
            self._reading = True
            self.deadline = self._server.now + self._server.limits.read_seconds
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(400, "upgrades are not offered here")
        except httptools.HttpParserCallbackError as error:
            self._refuse(*_size_problem(error.__context__, self._server.limits))
        except httptools.HttpParserError:
            self._refuse(400, "this is not HTTP/1.1")

    def connection_lost(self, error: Exception | None) -> None:
        self._server.closed(self)
        self._queue.clear()
        if self._task is not None:
            self._task.cancel()
        if self.resumed is not None:
            self._resume()

    def pause_writing(self) -> None:
        self.paused = True
        self.deadline = self._server.now + self._server.limits.write_seconds

    def resume_writing(self) -> None:
        self.paused = False
        self.deadline = float("inf") if self._task is not None else self.deadline
        if self.resumed is not None:
            self._resume()

    def _resume(self) -> None:
        callback, self.resumed = self.resumed, None
        if callback is not None:
            callback()

    # -- from the parser ----------------------------------------------------------------------

    def on_url(self, url: bytes) -> None:
        self._target += url
        self._head_size += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))
        self._head_size += len(name) + len(value)
        if self._head_size > HEAD_MAX:
            raise _HeadTooLarge

    def on_headers_complete(self) -> None:
        for name, value in self._headers:
            lowered = name.lower()
            if lowered == b"content-length" and int(value) > self._server.limits.body:
                raise _BodyTooLarge
            if lowered == b"expect" and value.lower() == b"100-continue":
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._server.limits.body:
            raise _BodyTooLarge
        self._body.append(data)

    def on_message_complete(self) -> None:
        method = self._parser.get_method().decode("latin-1")
        request = Request(method, self._target, self._headers)
        request.body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        keep = self._parser.should_keep_alive() and not self._server.stopping
        self._fresh()
        if self._task is None:
            self._begin(request, keep)
        else:
            self._queue.append((request, keep))
            self._transport.pause_reading()

    def _begin(self, request: Request, keep: bool) -> None:
        self.deadline = float("inf")
        peer = self._transport.get_extra_info("peername")
        request.peer = peer[0] if isinstance(peer, tuple) else ""
        reply = Reply(self, keep)
        self._task = self._server.loop.create_task(self._serve(request, reply, keep))

    async def _serve(self, request: Request, reply: Reply, keep: bool) -> None:
        try:
            await self._server.application(request, reply)
        except asyncio.CancelledError:
            self._transport.abort()
            return
        except Exception as error:  # noqa: BLE001 - a bug of ours must not leave a client waiting
            keep = self._apologise(request, reply, error) and keep
        self._task = None
        if not keep or self._server.stopping or not reply.started:
            self._transport.close()
        elif self._queue:
            self._transport.resume_reading()
            self._begin(*self._queue.pop(0))
        else:
            self.deadline = self._server.now + self._server.limits.idle_seconds

    def _apologise(self, request: Request, reply: Reply, error: Exception) -> bool:
        """The application broke. Say so if nothing was said; what was begun is broken off."""
        told = {"message": f"{request.method} {request.path} broke", "exception": error}
        self._server.loop.call_exception_handler(told)
        if reply.started:
            self._transport.abort()
            return False
        why = "the gateway itself failed; its log says how"
        body = self._server.refusal(request.path, 500, why)
        reply.send(500, b"content-type: application/json\r\n", body)
        return True

    # -- from replies and the server ----------------------------------------------------------

    def put(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    def abort(self) -> None:
        self._transport.abort()

    def _refuse(self, status: int, why: str) -> None:
        """An answer to something that never became a request, in the dialect its path speaks."""
        path = self._target.partition(b"?")[0].decode("latin-1")
        body = self._server.refusal(path, status, why)
        self.put(
            b"HTTP/1.1 %d %b\r\nconnection: close\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\n\r\n%b" % (status, REASONS[status], len(body), body)
        )
        self._transport.close()

    def expire(self) -> None:
        """Its time is up: say so if it was in the middle of asking, else just end it."""
        if self.paused:
            self.abort()
        elif self._reading and self._task is None:
            self._refuse(408, "the request took too long to arrive")
        else:
            self._transport.close()

    @property
    def busy(self) -> bool:
        return self._task is not None


class _HeadTooLarge(Exception):
    pass


class _BodyTooLarge(Exception):
    pass


def _size_problem(cause: BaseException | None, limits: ServerLimits) -> tuple[int, str]:
    if isinstance(cause, _BodyTooLarge):
        return 413, f"the body is larger than {limits.body} bytes"
    if isinstance(cause, _HeadTooLarge):
        return 431, f"the headers are larger than {HEAD_MAX} bytes"
    return 400, "this is not HTTP/1.1"


class Server:
    """Listens, counts connections, keeps the coarse deadlines, drains."""

    def __init__(
        self,
        application: Application,
        refusal: Callable[[str, int, str], bytes],
        *,
        limits: ServerLimits = ServerLimits(),  # noqa: B008 - frozen
        clock: Clock,
    ) -> None:
        self.application = application
        self.refusal = refusal
        self.limits = limits
        self.stopping = False
        self.now = clock()
        self._clock = clock
        self._connections: set[_Connection] = set()
        self._listeners: list[asyncio.Server] = []
        self._ticking: asyncio.TimerHandle | None = None
        self.loop: asyncio.AbstractEventLoop

    async def listen(self, host: str, port: int, *, reuse_port: bool = False) -> int:
        """Start; the port, which is the system's choice if 0 was given."""
        self.loop = asyncio.get_running_loop()
        listener = await self.loop.create_server(
            lambda: _Connection(self), host, port, backlog=2048, reuse_port=reuse_port
        )
        self._listeners.append(listener)
        self._tick()
        bound: int = listener.sockets[0].getsockname()[1]
        return bound

    async def close(self) -> None:
        """Stop listening, let running requests end within the drain limit, then end them."""
        self.stopping = True
        for listener in self._listeners:
            listener.close()
        for connection in [c for c in self._connections if not c.busy]:
            connection.expire()
        end = self._clock() + self.limits.drain_seconds
        pause = 0.0  # idle connections are gone at once; running requests are waited for
        while self._connections and self._clock() < end:
            await asyncio.sleep(pause)
            pause = min(0.02, pause + 0.001)
        for connection in list(self._connections):
            connection.abort()
        if self._ticking is not None:
            self._ticking.cancel()

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    def opened(self, connection: _Connection) -> None:
        self._connections.add(connection)
        connection.deadline = self.now + self.limits.read_seconds
        if len(self._connections) > self.limits.connections:
            connection.abort()

    def closed(self, connection: _Connection) -> None:
        self._connections.discard(connection)

    def _tick(self) -> None:
        self.now = self._clock()
        for connection in [c for c in self._connections if c.deadline <= self.now]:
            connection.expire()
        self._ticking = self.loop.call_later(TICK, self._tick)
