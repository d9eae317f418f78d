"""The transport through a proxy, on aiohttp. Imported only when a proxy is in force.

Plain origins are asked for in absolute form, TLS origins through CONNECT. aiohttp does the
talking; what is refused, capped, unpacked and reported is what the direct transport does.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import aiohttp
from yarl import URL

from understudy.providers.answer import Answer
from understudy.providers.pool import ROOM, Room, tls
from understudy.providers.transport import Limits, Origin, Outgoing
from understudy.providers.trouble import Cut, Malformed, TooLarge, trouble

# aiohttp would add these of its own; a provider is sent what the caller asked for.
UNASKED = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


@dataclass(slots=True)
class Progress:
    """How far one request came: a connection to the origin, and so perhaps bytes on it."""

    connected: bool = False


class Proxied:
    """Everything goes through one proxy. One object may serve several event loops."""

    def __init__(self, proxy: str, room: Room = ROOM, *, ca_file: str | None = None) -> None:
        self._proxy = URL(proxy)
        self._room = room
        self._context = tls(ca_file) if ca_file is not None else None
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}
        self._pumps: set[Pump] = set()

    def __repr__(self) -> str:
        return f"<Proxied by {self._proxy.host}:{self._proxy.port}>"

    async def send(self, outgoing: Outgoing, limits: Limits) -> Answer:
        method, url, headers = read_head(outgoing)
        progress = Progress()
        try:
            response = await self._session().request(
                method,
                url,
                headers=headers,
                data=outgoing.body,
                proxy=self._proxy,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, connect=limits.connect),
                max_line_size=limits.max_head,
                max_field_size=limits.max_head,
                trace_request_ctx=progress,
            )
        except (aiohttp.ClientError, OSError) as error:
            raise trouble(plain(error), outgoing.origin, progress.connected) from error
        pump = Pump(response, outgoing.origin, self._pumps.discard)
        try:
            answer = Answer(response.status, write_head(response), pump, limits.max_reply)
        except Malformed as error:
            response.close()
            raise trouble(error, outgoing.origin, sent=True) from error
        self._pumps.add(pump)
        pump.start(answer)
        return answer

    async def aclose(self) -> None:
        here = asyncio.get_running_loop()
        for pump in list(self._pumps):
            if pump.loop is here:
                await pump.stop()
        for loop in list(self._sessions):
            session = self._sessions.pop(loop)
            if loop is here:
                await session.close()
            elif not loop.is_closed():
                asyncio.run_coroutine_threadsafe(session.close(), loop)

    def _session(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            self._context = self._context or tls()
            session = self._sessions[loop] = open_session(self._context, self._room)
        return session


def open_session(context: ssl.SSLContext, room: Room) -> aiohttp.ClientSession:
    tracing = aiohttp.TraceConfig()
    tracing.on_connection_create_end.append(_connected)
    tracing.on_connection_reuseconn.append(_connected)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            ssl=context, limit=0, limit_per_host=room.connections, keepalive_timeout=room.keep
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=UNASKED,
        auto_decompress=False,
        trust_env=False,
        trace_configs=[tracing],
    )


async def _connected(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
    context.trace_request_ctx.connected = True


def read_head(outgoing: Outgoing) -> tuple[str, URL, list[tuple[str, str]]]:
    """The parts of a rendered head. Its host line is left out: aiohttp writes its own."""
    first, *lines = outgoing.head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    pairs = [line.split(": ", 1) for line in lines if line]
    headers = [(name, value) for name, value in pairs if name != "host"]
    return method, URL(f"{outgoing.origin}{path}", encoded=True), headers


def write_head(response: aiohttp.ClientResponse) -> bytes:
    lines = [b"HTTP/1.1 %d" % response.status]
    return b"\r\n".join(lines + [b"%b: %b" % pair for pair in response.raw_headers])


class Pump:
    """Moves a body from aiohttp into an answer, no faster than it is taken."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        origin: Origin,
        ended: Callable[[Pump], None],
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self._response = response
        self._origin = origin
        self._ended = ended
        self._flow = asyncio.Event()
        self._flow.set()
        self._task: asyncio.Task[None] | None = None

    def start(self, answer: Answer) -> None:
        self._task = self.loop.create_task(self._run(answer))

    async def _run(self, answer: Answer) -> None:
        try:
            async for data in self._response.content.iter_any():
                answer.arrive(data, False)
                await self._flow.wait()
            answer.arrive(b"", True)
        except (aiohttp.ClientError, OSError, TooLarge, Malformed, Cut) as error:
            answer.fail(trouble(plain(error), self._origin, sent=True))
        finally:
            self._response.close()  # does nothing to a connection that was read to its end
            self._ended(self)

    async def stop(self) -> None:
        self.quit()
        if self._task is not None:
            await asyncio.wait({self._task})

    def pause(self) -> None:
        self._flow.clear()

    def resume(self) -> None:
        self._flow.set()

    def quit(self) -> None:
        self._response.close()
        if self._task is not None:
            self._task.cancel()


def connector(error: Exception) -> Exception:
    inner = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else None
    return inner or error


def certificate(error: Exception) -> Exception:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return error.certificate_error
    return error


def dead_proxy(error: Exception) -> Exception:
    why = connector(error)
    told = why.strerror if isinstance(why, OSError) and why.strerror else type(why).__name__
    return Cut(f"cannot be reached: the proxy does not answer ({told})")


def refused(error: Exception) -> Exception:
    status = error.status if isinstance(error, aiohttp.ClientResponseError) else 0
    return Malformed(f"cannot be reached: the proxy answered {status}")


# aiohttp's exceptions as those the direct transport meets; a subclass comes before its base.
PLAIN: tuple[tuple[type[Exception], Callable[[Exception], Exception]], ...] = (
    (aiohttp.ClientHttpProxyError, refused),
    (aiohttp.ClientProxyConnectionError, dead_proxy),
    (aiohttp.ClientConnectorCertificateError, certificate),
    (aiohttp.ClientConnectorError, connector),
    (aiohttp.ServerTimeoutError, lambda _: TimeoutError("gave no connection in time")),
    (aiohttp.ServerDisconnectedError, lambda _: Cut("closed the connection without an answer")),
    (
        aiohttp.ClientPayloadError,
        lambda _: Cut("closed the connection in the middle of its answer"),
    ),
    (
        aiohttp.ClientResponseError,
        lambda _: Malformed("does not speak HTTP/1.1 as it should"),
    ),
)


def plain(error: Exception) -> Exception:
    """What happened, in terms everybody knows; the original stays behind it."""
    told = next((say(error) for kind, say in PLAIN if isinstance(error, kind)), error)
    if told is not error and told.__cause__ is None:
        told.__cause__ = error
    return told
