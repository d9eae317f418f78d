"""Routers elsewhere, over HTTP: an agent that lives there, or the router itself.

A `RemoteAgent` is a candidate like any other: when the line is down, it failed, and the next is
asked. A `RemoteRouter` is the client's side of a router: when that line is down there is one
`TRANSPORT_ERROR` and no fallback, because nobody here knows who was asked over there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from msgspec.structs import replace

from understudy.agents.agent import Agent, Capable
from understudy.agents.blocking import Bridge
from understudy.agents.codec import Unreadable, checked, read_response, write
from understudy.agents.envelope import IntentEnvelope, Routing, RoutingStrategy, wall_clock
from understudy.agents.failure import ErrorCode, ErrorInfo
from understudy.agents.response import AgentResponse
from understudy.agents.route import BLANK
from understudy.agents.router import ROUTER
from understudy.core.errors import ProviderError
from understudy.providers.pool import Pool
from understudy.providers.transport import Limits, Origin, Outgoing, Transport, render_head

PATH = "/route"


@dataclass(frozen=True, slots=True)
class Line:
    """How to reach a router: its key, how long to wait, and over what."""

    key: str = field(default="", repr=False)  # sent as Bearer
    timeout: float = 60.0  # seconds for the whole answer
    limits: Limits = field(default_factory=Limits)
    transport: Transport | None = None  # None: a pool of its own


class _Far:
    """A router at a URL. Envelope out, response in; a failure of the line is a response too."""

    def __init__(self, url: str, line: Line) -> None:
        self.origin = Origin.from_url(url)
        self._line = line
        self._transport: Transport = line.transport or Pool()
        path = urlsplit(url).path.rstrip("/") + PATH
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        if line.key:
            headers["authorization"] = f"Bearer {line.key}"
        self._head = render_head("POST", self.origin, path, headers)

    async def ask(self, envelope: IntentEnvelope) -> AgentResponse:
        try:
            body = write(envelope)
        except (TypeError, ValueError, RecursionError) as error:
            message = f"the payload cannot be written as JSON: {error}"
            return AgentResponse.failure(ErrorInfo(ErrorCode.VALIDATION_ERROR, message))
        try:
            async with asyncio.timeout(self._line.timeout):
                status, data = await self._exchange(body)
        except ProviderError as error:
            return self._down(error.message or str(error))
        except TimeoutError:
            return self._down(f"no answer within {self._line.timeout:g} s")
        return self._read(status, data)

    async def _exchange(self, body: bytes) -> tuple[int, bytes]:
        outgoing = Outgoing(self.origin, self._head, body)
        answer = await self._transport.send(outgoing, self._line.limits)
        try:
            return answer.status, await answer.read()
        finally:
            answer.close()

    def _read(self, status: int, data: bytes) -> AgentResponse:
        try:
            return read_response(data)
        except Unreadable as error:
            if status >= 500:  # something on the way speaks, not the router
                return self._down(f"status {status}")
            message = f"{self.origin} answered {status} with something else: {error}"
            return AgentResponse.failure(ErrorInfo(ErrorCode.PROTOCOL_ERROR, message))

    def _down(self, why: str) -> AgentResponse:
        details: dict[str, object] = {"url": str(self.origin)}
        return AgentResponse.failure(
            ErrorInfo(ErrorCode.TRANSPORT_ERROR, f"{self.origin}: {why}", True, details)
        )

    async def aclose(self) -> None:
        await self._transport.aclose()


class RemoteAgent(Agent):
    """One agent of a router elsewhere. It ranks as remote, whatever its priority."""

    def __init__(
        self,
        url: str,
        name: str,
        capabilities: Iterable[Capable],
        node_id: str | None = None,
        *,
        node_priority: int = 100,
        line: Line = Line(),  # noqa: B008 - frozen
    ) -> None:
        self._far = _Far(url, line)
        node = node_id or self._far.origin.authority
        super().__init__(name, self._ask, capabilities, node_id=node, node_priority=node_priority)

    async def aclose(self) -> None:
        await self._far.aclose()

    async def _ask(self, envelope: IntentEnvelope) -> AgentResponse:
        chain = (*envelope.metadata.identity_chain, f"{self.node_id}/{self.name}")
        there = replace(
            envelope,
            routing=Routing(RoutingStrategy.DIRECT, self.name),
            metadata=replace(envelope.metadata, identity_chain=chain),
        )
        return await self._far.ask(there)


class RemoteRouter:
    """A router elsewhere, used like one that is here."""

    def __init__(self, url: str, *, line: Line = Line()) -> None:  # noqa: B008 - frozen
        self._far = _Far(url, line)
        self._bridge = Bridge()

    async def route(self, envelope: IntentEnvelope) -> AgentResponse:
        """What the router over there says, or, in its name, why nothing can be heard of it."""
        try:
            ours = replace(checked(envelope).traced(), payload=envelope.payload)
        except Unreadable as error:
            return _told(AgentResponse.failure(error.info), BLANK.traced())
        return _told(await self._far.ask(ours), ours)

    def route_sync(self, envelope: IntentEnvelope) -> AgentResponse:
        return self._bridge.run(self._waited(envelope))

    async def aclose(self) -> None:
        await self._far.aclose()

    def close(self) -> None:
        """End the thread behind `route_sync`, if it was ever needed."""
        self._bridge.close()

    async def _waited(self, envelope: IntentEnvelope) -> AgentResponse:
        response = await self._bridge.wait(self.route(envelope))
        assert isinstance(response, AgentResponse)
        return response


def _told(response: AgentResponse, envelope: IntentEnvelope) -> AgentResponse:
    """With what every response says of itself; a router that was reached has said it already."""
    metadata: dict[str, object] = {
        "agent": ROUTER,
        "trace_id": envelope.metadata.trace_id,
        "timestamp": wall_clock(),
    }
    return response.told(metadata, response.decision_path)
