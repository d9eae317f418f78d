"""One request and its reply, as the application sees them. Bytes go to whoever owns the socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol
from urllib.parse import parse_qs, unquote

from httptools import HttpRequestParser

if TYPE_CHECKING:
    from understudy.gateway.wishes import Wishes

REASONS = {status.value: status.phrase.encode() for status in HTTPStatus}
OK = b"HTTP/1.1 200 OK\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE = b"connection: close\r\n"
KEEP_ALIVE = b"connection: keep-alive\r\n"
JSON = b"content-type: application/json\r\n"
NO_HEADERS: Mapping[bytes, bytes] = {}


class Outlet(Protocol):
    """The client's end of the line."""

    paused: bool  # the client takes nothing for now
    resumed: Callable[[], object] | None  # called once it does again

    def put(self, data: bytes) -> None: ...
    def abort(self) -> None: ...
    def over(self) -> None: ...


class Leave(Protocol):
    """Ends what answers a request: its client is gone; or the server stops, and says why."""

    def __call__(self, why: str = "") -> None: ...


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """What a client may cost. Seconds and bytes."""

    body: int = 32 * 1024 * 1024
    connections: int = 10_000
    read_seconds: float = 30.0  # from the first byte of a request to its last
    idle_seconds: float = 75.0  # kept open between requests
    write_seconds: float = 60.0  # a client that takes nothing for so long is gone
    drain_seconds: float = 30.0  # what running requests get when the server stops


class Head:
    """What a request says before its body. Shared by all requests that say the same.

    Names of headers are in lower case. The length is not among them: it is the body's own.
    """

    __slots__ = ("headers", "keep", "method", "old", "path", "query", "wishes")

    def __init__(
        self,
        method: str,
        target: bytes,
        headers: Mapping[bytes, bytes] = NO_HEADERS,
        keep: bool = True,
        old: bool = False,
    ) -> None:
        path, _, query = target.partition(b"?")
        self.method = method
        self.path = path.decode("latin-1")
        self.query = query.decode("latin-1")
        self.headers = headers
        self.keep = keep  # may the client ask again on this connection
        self.old = old  # HTTP/1.0
        self.wishes: Wishes | None = None  # once somebody has looked


class Request:
    """One request, whole."""

    __slots__ = ("body", "head", "method", "path", "peer")

    def __init__(self, head: Head, body: bytes = b"", peer: str = "") -> None:
        self.head = head
        self.method = head.method
        self.path = head.path
        self.body = body
        self.peer = peer

    def header(self, name: bytes) -> str:
        """The value of a header, given in lower case; "" if absent."""
        value = self.head.headers.get(name)
        return "" if value is None else value.decode("latin-1")

    def parameter(self, name: str) -> str:
        """A query parameter; "" if absent."""
        query = self.head.query
        return parse_qs(query).get(name, [""])[0] if query else ""

    @property
    def plain_path(self) -> str:
        """The path with percent escapes read."""
        return unquote(self.path) if "%" in self.path else self.path


class Reply:
    """How the application answers. Whole, or as chunks; the first write is the point of no return.

    `paused` is true while the client takes nothing; whoever pushes calls `when_flowing` then.
    Who answers from callbacks sets `left`, to be told of a client that is gone or of a server that
    stops, and says `over`.
    """

    __slots__ = ("_outlet", "keep", "left", "status", "written")

    def __init__(self, outlet: Outlet, keep: bool) -> None:
        self._outlet = outlet
        self.keep = keep  # may the client ask again on this connection
        self.left: Leave | None = None
        self.status = 0
        self.written = 0  # bytes of body handed to the client

    @property
    def started(self) -> bool:
        return self.status != 0

    @property
    def paused(self) -> bool:
        return self._outlet.paused

    def send(self, status: int, headers: bytes, body: bytes) -> None:
        """A whole answer. `headers` is rendered lines, each ended by CRLF."""
        self.status = status
        self.written = len(body)
        keep = b"" if self.keep else CLOSE
        line = OK if status == 200 else _status_line(status)
        self._outlet.put(
            b"%b%b%bcontent-length: %d\r\n\r\n%b" % (line, headers, keep, len(body), body)
        )

    def start(self, status: int, headers: bytes, first: bytes = b"") -> None:
        """The head of a chunked answer, with its first piece."""
        self.status = status
        self.written += len(first)
        keep = b"" if self.keep else CLOSE
        piece = b"%x\r\n%b\r\n" % (len(first), first) if first else b""
        self._outlet.put(
            b"%b%b%btransfer-encoding: chunked\r\n\r\n%b"
            % (_status_line(status), headers, keep, piece)
        )

    def write(self, data: bytes) -> None:
        if data:
            self.written += len(data)
            self._outlet.put(b"%x\r\n%b\r\n" % (len(data), data))

    def finish(self, last: bytes = b"") -> None:
        """The end of a chunked answer, with its last piece."""
        self.written += len(last)
        piece = b"%x\r\n%b\r\n" % (len(last), last) if last else b""
        self._outlet.put(piece + b"0\r\n\r\n")

    def over(self) -> None:
        """Nothing more comes: the connection may go on to its next request, or end."""
        self.left = None
        self._outlet.over()

    def abort(self) -> None:
        """Break off: the client sees a connection that ends in the middle."""
        self.keep = False
        self._outlet.abort()

    def when_flowing(self, callback: Callable[[], None]) -> None:
        """Call back once the client takes data again."""
        self._outlet.resumed = callback

    async def flowing(self) -> None:
        """Wait until the client takes data again."""
        if self._outlet.paused:
            ready = asyncio.get_running_loop().create_future()
            self._outlet.resumed = lambda: _set(ready)
            await ready


class OldReply(Reply):
    """To an HTTP/1.0 client: it has to be told that the connection stays, and knows no chunks.

    So what has no length ends with the connection.
    """

    __slots__ = ()

    def send(self, status: int, headers: bytes, body: bytes) -> None:
        super().send(status, headers + KEEP_ALIVE if self.keep else headers, body)

    def start(self, status: int, headers: bytes, first: bytes = b"") -> None:
        self.keep = False
        self.status = status
        self.written += len(first)
        self._outlet.put(b"%b%b%b\r\n%b" % (_status_line(status), headers, CLOSE, first))

    def write(self, data: bytes) -> None:
        if data:
            self.written += len(data)
            self._outlet.put(data)

    def finish(self, last: bytes = b"") -> None:
        self.write(last)


def plain_head(parser: HttpRequestParser, target: bytes, fields: Mapping[bytes, bytes]) -> bytes:
    """A head that was read, without its wish for another protocol."""
    fixed = {k: v for k, v in fields.items() if k.lower() not in (b"connection", b"upgrade")}
    fixed[b"connection"] = b"keep-alive" if parser.should_keep_alive() else b"close"
    lines = b"".join([b"%b: %b\r\n" % line for line in fixed.items()])
    version = parser.get_http_version().encode()
    return b"%b %b HTTP/%b\r\n%b\r\n" % (parser.get_method(), target, version, lines)


def _status_line(status: int) -> bytes:
    return b"HTTP/1.1 %d %b\r\n" % (status, REASONS.get(status, b"Unknown"))


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
