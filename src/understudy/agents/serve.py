"""A router for others to use, over HTTP.

    POST /route      an envelope in, a response out; 200 whenever the router answered
    GET  /agents     who is there, in JSON
    GET  /healthz    that we are

Whatever is wrong with a request is told as a response too, with the path of the wrong field.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

import msgspec
from msgspec.structs import replace

from understudy.agents.blocking import cancels
from understudy.agents.codec import Unreadable, read_envelope, write
from understudy.agents.failure import ErrorCode, ErrorInfo
from understudy.agents.inbound import Bounds, Connection, Incoming, Reply
from understudy.agents.response import AgentResponse
from understudy.agents.router import CANCELLED, Router
from understudy.providers.loopback import is_loopback

CODES = {
    400: ErrorCode.PROTOCOL_ERROR,
    401: ErrorCode.UNAUTHORIZED,
    404: ErrorCode.ROUTING_ERROR,
    405: ErrorCode.ROUTING_ERROR,
    408: ErrorCode.PROTOCOL_ERROR,
    413: ErrorCode.PAYLOAD_TOO_LARGE,
    431: ErrorCode.PAYLOAD_TOO_LARGE,
    503: ErrorCode.AGENT_UNAVAILABLE,
}


def refuse(status: int, why: str) -> Reply:
    error = ErrorInfo(CODES[status], why, status in {408, 503})
    return Reply(status, write(AgentResponse.failure(error)))


class AgentServer:
    """Serves one router. Without a key it listens on loopback only."""

    def __init__(
        self,
        router: Router,
        *,
        key: str = "",
        bounds: Bounds = Bounds(),  # noqa: B008 - frozen
    ) -> None:
        self._router = router
        self._key = f"Bearer {key}".encode() if key else b""
        self._bounds = bounds
        self._open: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self.url = ""  # known once it is started

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        if not (self._key or is_loopback(host)):
            raise ValueError(f"without a key only loopback may be listened on, not {host!r}")
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connection, host, port)
        bound = self._server.sockets[0].getsockname()[1]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{bound}"

    async def aclose(self, grace: float = 5.0) -> None:
        """Stop listening, let requests at work finish for so many seconds, then cut them off."""
        if self._server is None:
            return
        self._server.close()
        draining = [asyncio.create_task(each.drained()) for each in self._open]
        if draining:
            await asyncio.wait(draining, timeout=grace)
        for each in list(self._open):
            each.abort()
        for task in draining:
            await task
        await self._server.wait_closed()

    async def __aenter__(self) -> Self:
        if self._server is None:
            await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _connection(self) -> Connection:
        return Connection(self._serve, refuse, self._bounds, self._open)

    async def _serve(self, incoming: Incoming) -> Reply:
        pages: dict[str, tuple[str, Callable[[Incoming], Awaitable[Reply]]]] = {
            "/route": ("POST", self._route),
            "/agents": ("GET", self._agents),
            "/healthz": ("GET", self._health),
        }
        if incoming.path not in pages:
            return refuse(404, f"no such path; there are: {', '.join(pages)}")
        method, page = pages[incoming.path]
        if incoming.method != method:
            return refuse(405, f"{incoming.path} takes {method}, not {incoming.method}")
        if page != self._health and not self._may(incoming.authorization):
            return refuse(401, "the key is missing or wrong; send it as a Bearer token")
        return await page(incoming)

    def _may(self, authorization: str) -> bool:
        return not self._key or hmac.compare_digest(authorization.encode("latin-1"), self._key)

    async def _route(self, incoming: Incoming) -> Reply:
        try:
            envelope = read_envelope(incoming.body)
        except Unreadable as error:
            return Reply(400, write(AgentResponse.failure(error.info)))
        try:
            response = await self._router.route(envelope)
        except asyncio.CancelledError:
            if cancels():  # the client has left, or we are closing
                raise
            response = CANCELLED  # by an agent, and the client still waits
        try:
            return Reply(200, write(response))
        except (TypeError, ValueError, RecursionError) as error:
            return Reply(200, write(_unwritable(response, error)))

    async def _agents(self, _: Incoming) -> Reply:
        agents = [
            {
                "name": agent.name,
                "capabilities": [str(capability) for capability in agent.capabilities],
                "node_id": agent.node_id,
                "node_priority": agent.node_priority,
            }
            for agent in sorted(self._router.registry.agents, key=lambda agent: agent.rank)
        ]
        return Reply(200, msgspec.json.encode({"agents": agents}))

    async def _health(self, _: Incoming) -> Reply:
        return Reply(200, b'{"status":"ok"}')


def _unwritable(response: AgentResponse, error: Exception) -> AgentResponse:
    """An answer that is fine in here and cannot leave: its payload is no JSON."""
    message = f"the agent's payload cannot be written as JSON: {error}"
    info = ErrorInfo(
        ErrorCode.INTERNAL_AGENT_ERROR, message, False, {"type": type(error).__name__}
    )
    metadata = {key: response.metadata.get(key) for key in ("agent", "trace_id", "timestamp")}
    failure = AgentResponse.failure(info, metadata=metadata)
    return replace(failure, decision_path=response.decision_path)
