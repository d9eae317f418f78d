"""Envelope in, response out: chooses the strategy, and tells hooks, sinks and the recorder.

It returns whatever happens. Only what is no `Exception` passes through: interrupts, cancellation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from understudy.agents.envelope import (
    Clock,
    IntentEnvelope,
    RoutingStrategy,
    new_id,
    wall_clock,
)
from understudy.agents.failure import ErrorCode, ErrorInfo, crash
from understudy.agents.middleware import Hooks, Mishap
from understudy.agents.play import Bridge, Play, perform
from understudy.agents.record import Event, EventKind, KeepRecord, Record
from understudy.agents.registry import AgentRegistry
from understudy.agents.response import AgentResponse
from understudy.agents.route import STRATEGIES, Outcome, Refused, Route
from understudy.agents.spans import Sink, Span

DECISION, FINAL = EventKind.DECISION, EventKind.FINAL

ROUTER = "router"  # stands in for the agent when nobody was asked
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
        self._sinks = tuple(sinks)
        self._recorder = recorder
        self._hooks = Hooks(middleware)
        self._instruments = instruments
        self._bridge = Bridge()

    async def route(self, envelope: IntentEnvelope) -> AgentResponse:
        """The answer, or why there is none; never an exception of an agent or of our own."""
        return await perform(self._play(envelope))

    def route_sync(self, envelope: IntentEnvelope) -> AgentResponse:
        """`route` for callers that cannot await; works inside a running event loop too."""
        return self._bridge.perform(self._play(envelope))

    def close(self) -> None:
        """End the thread behind `route_sync`, if it was ever needed."""
        self._bridge.close()

    @property
    def mishaps(self) -> tuple[Mishap, ...]:
        """The last exceptions of hooks, sinks and the recorder."""
        return tuple(self._hooks.mishaps)

    def _play(self, given: IntentEnvelope) -> Play[AgentResponse]:
        route = Route(self._instruments.clock)
        outcome: Outcome | None = None
        try:
            outcome = yield from self._decided(route, given)
        finally:
            if outcome is None:
                self._abandoned(route)
        return self._finished(route, outcome)

    def _decided(self, route: Route, given: IntentEnvelope) -> Play[Outcome]:
        try:
            strategy = self._admit(route, given)
            outcome = yield from STRATEGIES[strategy](route)
        except Refused as refusal:
            return _refused(refusal.info)
        except Exception as error:  # noqa: BLE001 - the router returns, it does not raise
            return _refused(replace(crash(error), code=ErrorCode.ROUTING_ERROR))
        return outcome

    def _admit(self, route: Route, given: IntentEnvelope) -> RoutingStrategy:
        """Take in the envelope and find the candidates; raises `Refused`."""
        if not isinstance(given, IntentEnvelope):
            what = type(given).__name__
            raise Refused(ErrorCode.VALIDATION_ERROR, f"an envelope is wanted, not {what}")
        envelope = route.envelope = self._own(given)
        routing, log = envelope.routing, route.log
        log.append(Event(1, EventKind.RECEIVED, note=str(routing.strategy or "")))
        if self._hooks.before:
            envelope = route.envelope = self._own(self._hooks.opened(envelope))
            routing = envelope.routing
        route.began = route.clock()
        route.lineup = lineup = self.registry.lineup(envelope.intent)
        if not lineup.chain:
            message = f"no agent can do {envelope.intent}"
            raise Refused(ErrorCode.CAPABILITY_NOT_FOUND, message)
        if len(envelope.metadata.identity_chain) > LONGEST_CHAIN:
            message = f"more than {LONGEST_CHAIN} identities in the chain; do agents go in circles?"
            raise Refused(ErrorCode.ROUTING_ERROR, message)
        strategy = routing.chosen
        if strategy is RoutingStrategy.PARALLEL and self.require_determinism:
            raise Refused(
                ErrorCode.VALIDATION_ERROR,
                "PARALLEL is refused: which agent answers first is not determined",
                strategy=str(strategy),
                require_determinism=True,
                remediation="route with another strategy, or build the Router with "
                "require_determinism=False",
            )
        return strategy

    def _own(self, given: IntentEnvelope) -> IntentEnvelope:
        """A copy that nobody else can edit, with a trace id."""
        envelope = given.copy()
        if envelope.metadata.trace_id:
            return envelope
        metadata = replace(envelope.metadata, trace_id=self._instruments.new_id())
        return replace(envelope, metadata=metadata)

    def _finished(self, route: Route, outcome: Outcome) -> AgentResponse:
        """The outcome as the caller gets it; everybody else is told first."""
        agent, given, reason = outcome
        error, envelope, log, path = given.error, route.envelope, route.log, route.path
        metadata = {
            "agent": agent,
            "trace_id": envelope.metadata.trace_id,
            "timestamp": self._instruments.wall(),
            **given.metadata,
        }
        if unknown := envelope.routing.unknown:
            metadata["requested_strategy"] = unknown
        response = AgentResponse(
            status=given.status,
            payload=given.payload,
            error=error,
            metadata=metadata,
            decision_path=path,
        )
        log.append(Event(len(log) + 1, DECISION, agent, note=reason))
        log.append(Event(len(log) + 1, FINAL, agent, given.status, error))
        self._tell(route, agent, None if error is None else error.message, response)
        self._hooks.closed(envelope, response)
        return response

    def _abandoned(self, route: Route) -> None:
        """The caller left, or an interrupt passes through: no answer, but a span and a record."""
        route.cut()
        agent = (ROUTER, *route.path)[-1]
        route.log.append(Event(len(route.log) + 1, FINAL, agent, "cancelled"))
        self._tell(route, agent, "cancelled", None)

    def _tell(
        self, route: Route, agent: str, error: str | None, response: AgentResponse | None
    ) -> None:
        envelope, path, call = route.envelope, route.path, self._hooks.call
        routing = envelope.routing
        if self._sinks:
            span = Span(
                agent,
                envelope.intent.name,
                "ok" if error is None else "error",
                (route.clock() - route.began) * 1e3,
                error,
                envelope.metadata.trace_id,
                routing.chosen,
                len(path),
                path,
                routing.unknown,
                self._instruments.wall(),
            )
            for sink in self._sinks:
                call("sink", sink, span)
        if self._recorder is not None:
            call("recorder", self._recorded, route, response)

    def _recorded(self, route: Route, response: AgentResponse | None) -> None:
        assert self._recorder is not None
        kept = None if response is None else response.copy()
        ranks, events = route.lineup.ranks, tuple(route.log)
        self._recorder(Record(route.envelope, ranks, events, kept, self.require_determinism))


def _refused(error: ErrorInfo) -> Outcome:
    return Outcome(ROUTER, AgentResponse.failure(error), "nobody was asked")
