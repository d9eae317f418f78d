"""A recorded route, played again: the same events, or where they part."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import NamedTuple

from understudy.agents.agent import Agent, Handle
from understudy.agents.capability import ANY, Capability
from understudy.agents.envelope import IntentEnvelope, RoutingStrategy
from understudy.agents.failure import ErrorCode, ErrorInfo
from understudy.agents.record import Event, Record, Recorder
from understudy.agents.registry import AgentRegistry
from understudy.agents.response import AgentResponse
from understudy.agents.router import Router

Outcomes = Mapping[str, AgentResponse]


class Difference(NamedTuple):
    """The first event that is not the same; None where one of the two had ended."""

    recorded: Event | None
    replayed: Event | None

    def __str__(self) -> str:
        recorded, replayed = self.recorded or "the end", self.replayed or "the end"
        return f"recorded: {recorded}; replayed: {replayed}"


class Replay(NamedTuple):
    """How it went this time."""

    record: Record
    difference: Difference | None

    @property
    def same(self) -> bool:
        return self.difference is None

    def __str__(self) -> str:
        if self.difference is not None:
            return str(self.difference)
        return f"the same {len(self.record.events)} events"


def replay(record: Record, source: AgentRegistry | Outcomes | None = None) -> Replay:
    """Route the recorded envelope again and compare, event for event.

    Asks the agents of a registry, or stand-ins that answer with the outcomes given by name, or,
    given neither, stand-ins that answer what the record says.
    """
    if record.response is None:
        raise ValueError("the recorded route was cancelled; there is no outcome to reproduce")
    error = record.response.error
    if error is not None and error.code is ErrorCode.VALIDATION_ERROR and not record.candidates:
        raise ValueError("the recorded envelope was refused, so it is not in the record as it was")
    if record.strategy is RoutingStrategy.PARALLEL and record.path:
        raise ValueError("the recorded route ran in parallel; its order was up to time")
    if not isinstance(source, AgentRegistry):
        source = _stand_ins(record, source if source is not None else outcomes(record))
    recorder = Recorder(limit=1)
    router = Router(source, recorder=recorder, require_determinism=record.require_determinism)
    try:
        router.route_sync(record.envelope)
    finally:
        router.close()
    (again,) = recorder.records
    pairs = zip_longest(record.events, again.events)
    return Replay(again, next((Difference(*pair) for pair in pairs if pair[0] != pair[1]), None))


def outcomes(record: Record) -> dict[str, AgentResponse]:
    """What each agent answered. Only the answer that counted has its payload."""
    answers: dict[str, AgentResponse] = {}
    for end in record.ends:
        won = record.response is not None and end.agent == record.agent
        payload = record.response.payload if won and record.response else None
        answers[end.agent] = (
            AgentResponse.success(payload)
            if end.error is None
            else AgentResponse.failure(end.error)
        )
    return answers


_NEVER_ASKED = AgentResponse.failure(
    ErrorInfo(ErrorCode.AGENT_UNAVAILABLE, "nothing is known of this agent's answer")
)


def _stand_ins(record: Record, answers: Outcomes) -> AgentRegistry:
    anything = [Capability(ANY, ANY)]
    return AgentRegistry(
        Agent(
            ranked.name,
            _saying(answers.get(ranked.name, _NEVER_ASKED)),
            anything,
            node_id=ranked.node_id,
            node_priority=ranked.node_priority,
        )
        for ranked in record.candidates
    )


def _saying(answer: AgentResponse) -> Handle:
    def handle(_: IntentEnvelope) -> AgentResponse:
        return answer

    return handle
