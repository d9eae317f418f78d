"""Envelope in, response out: chooses the strategy, and tells hooks, sinks and the recorder.

It returns whatever happens. Only what is no `Exception` passes through: interrupts, cancellation.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from understudy.agents.audience import Audience
from understudy.agents.blocking import Bridge, Wait, awaited
from understudy.agents.codec import Unreadable, checked
from understudy.agents.envelope import (
    Clock,
    IntentEnvelope,
    RoutingStrategy,
    new_id,
    wall_clock,
)
from understudy.agents.failure import ErrorCode, ErrorInfo, crash
from understudy.agents.middleware import Hooks, Mishap
from understudy.agents.payload import copied
from understudy.agents.record import KeepRecord
from understudy.agents.registry import AgentRegistry
from understudy.agents.response import AgentResponse
from understudy.agents.route import STRATEGIES, Outcome, Refused, Route
from understudy.agents.spans import Sink

ROUTER = "router"  # stands in for the agent when nobody was asked
CANCELLED = AgentResponse.failure(ErrorInfo(ErrorCode.WORKFLOW_ABORTED, "cancelled"))
LONGEST_CHAIN = 64  # identities; agents that keep asking one another are stopped here


@dataclass(frozen=True, slots=True)
class Instruments:
    """What a router reads from the world. None of it ever bends a path."""

    clock: Clock = time.perf_counter  # seconds, for latencies
    wall: Clock = wall_clock  # seconds since 1970, for timestamps
    new_id: Callable[[], str] = new_id  # for envelopes that come without a trace id


class Router:
    """Routes envelopes to the agents of a registry. One may serve any number of threads."""

    def __init__(
        self,
        registry: AgentRegistry,
        *,
        sinks: Sequence[Sink] = (),
        recorder: KeepRecord | None = None,
        middleware: Sequence[object] = (),
        require_determinism: bool = True,
        instruments: Instruments = Instruments(),  # noqa: B008 - frozen
    ) -> None:
        self.registry = registry
        self.require_determinism = require_determinism
        self._mishaps: deque[Mishap] = deque(maxlen=100)
        self._hooks = Hooks(middleware, self._mishaps) if middleware else None
        self._audience = Audience(sinks, recorder, self._mishaps)
        self._instruments = instruments
        self._bridge = Bridge()

    def route(self, envelope: IntentEnvelope) -> Coroutine[object, object, AgentResponse]:
        """Await it: the answer, or why there is none; no exception of an agent or of our own."""
        return self._route(envelope, awaited)

    def route_sync(self, envelope: IntentEnvelope) -> AgentResponse:
        """`route` for callers that cannot await; works inside a running event loop too."""
        return self._bridge.run(self._route(envelope, self._bridge.wait))

    def close(self) -> None:
        """End the thread behind `route_sync`, if it was ever needed."""
        self._bridge.close()

    @property
    def mishaps(self) -> tuple[Mishap, ...]:
        """The last exceptions of hooks, sinks and the recorder."""
        return tuple(self._mishaps)

    async def _route(self, given: IntentEnvelope, wait: Wait) -> AgentResponse:
        route = Route(self._instruments.clock, self.require_determinism, wait)
        outcome: Outcome | None = None
        try:
            self._admit(route, given)
            outcome = await STRATEGIES[route.strategy](route)
        except (Refused, Unreadable) as refusal:
            outcome = _refused(refusal.info)
        except Exception as error:  # noqa: BLE001 - the router returns, it does not raise
            outcome = _refused(replace(crash(error), code=ErrorCode.ROUTING_ERROR))
        finally:
            if outcome is None:
                self._abandoned(route)
        return self._finished(route, outcome)

    def _admit(self, route: Route, given: IntentEnvelope) -> None:
        """Take in the envelope, choose the strategy and find the candidates; may refuse."""
        self._take(route, given)
        if self._hooks is not None:
            opened = self._hooks.opened(route.envelope)
            if opened is not route.envelope:
                self._take(route, opened)
        envelope = route.envelope
        route.began = route.clock()
        route.strategy, route.unknown = envelope.routing.chosen()
        route.lineup = self.registry.lineup(envelope.intent)
        if not route.lineup.chain:
            message = f"no agent can do {envelope.intent}"
            raise Refused(ErrorCode.CAPABILITY_NOT_FOUND, message)
        if len(envelope.metadata.identity_chain) > LONGEST_CHAIN:
            message = f"more than {LONGEST_CHAIN} identities in the chain; a circle of agents?"
            raise Refused(ErrorCode.ROUTING_ERROR, message)
        if route.strategy is RoutingStrategy.PARALLEL and self.require_determinism:
            raise Refused(ErrorCode.VALIDATION_ERROR, _NO_RACES, **_NO_RACES_DETAILS)

    def _take(self, route: Route, given: IntentEnvelope) -> None:
        """Give the route a copy that nobody else can edit, with a trace id."""
        new_id = self._instruments.new_id
        try:
            route.envelope = checked(given).traced(new_id)  # to tell of, if the payload is refused
        except Unreadable:
            route.envelope = route.envelope.traced(new_id)
            raise
        try:
            payload = copied(given.payload)
        except RecursionError:
            why = "cannot be copied: it is nested too deeply, or contains itself"
            raise Unreadable("payload", why) from None
        except Exception as error:
            raise Unreadable("payload", f"cannot be copied: {crash(error).message}") from error
        route.envelope = replace(route.envelope, payload=payload)

    def _finished(self, route: Route, outcome: Outcome) -> AgentResponse:
        """The outcome as the caller gets it; everybody else is told first."""
        route.ended = now = self._instruments.wall()
        trace_id = route.envelope.metadata.trace_id
        metadata: dict[str, object] = {
            "agent": outcome.agent,
            "trace_id": trace_id,
            "timestamp": now,
        }
        if route.unknown is not None:
            metadata["requested_strategy"] = route.unknown
        response = outcome.response.told(metadata, tuple(route.tried))
        self._audience.told(route, outcome, response)
        if self._hooks is not None:
            self._hooks.closed(route.envelope, response)
        return response

    def _abandoned(self, route: Route) -> None:
        """The caller left, or an interrupt passes through: no answer, but a span and a record."""
        route.ended = self._instruments.wall()
        route.cut()
        agent = (ROUTER, *route.tried)[-1]
        self._audience.told(route, Outcome(agent, CANCELLED, "cancelled"), None)


_NO_RACES = "PARALLEL is refused: who answers first is not determined"
_NO_RACES_DETAILS = {
    "strategy": "parallel",
    "require_determinism": True,
    "remediation": "choose another strategy, or build the Router with require_determinism=False",
}


def _refused(error: ErrorInfo) -> Outcome:
    return Outcome(ROUTER, AgentResponse.failure(error), "nobody was asked")
