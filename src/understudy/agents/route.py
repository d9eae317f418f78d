"""One envelope on its way to the agents: asking one, and the four strategies of whom to ask.

FALLBACK and DIRECT are walks: `core.walk` under `DETERMINISTIC`, without health and with a clock
that stands still, so nothing but the agents' own answers can bend a path.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from inspect import isawaitable
from types import MappingProxyType
from typing import NamedTuple

from understudy.agents.agent import Agent
from understudy.agents.envelope import Clock, Intent, IntentEnvelope, RoutingStrategy
from understudy.agents.failure import ErrorCode, ErrorInfo, crash, garbage
from understudy.agents.play import Play, perform
from understudy.agents.record import Event, EventKind
from understudy.agents.registry import Lineup
from understudy.agents.response import AgentResponse
from understudy.core.errors import ChainExhausted, ProviderError
from understudy.core.faults import Fault, Verdict
from understudy.core.policy import DETERMINISTIC
from understudy.core.stage import Candidate, Stage
from understudy.core.walk import Try, walk

START, END, TRIGGERED = EventKind.START, EventKind.END, EventKind.TRIGGERED

_VERDICT = Verdict(Fault.UNKNOWN)
# `float()` is 0.0, always: the clock stands still.
_STAGE = Stage(DETERMINISTIC, judge=lambda error: _VERDICT, clock=float)


class Failed(ProviderError):
    """An agent's failure on its way through the walk."""

    # The walk asks for these; for an agent they are always the same, so no time is spent on them.
    fault = Fault.UNKNOWN
    status_code = None
    retry_after = None

    def __init__(self, target: str, response: AgentResponse, error: ErrorInfo) -> None:
        self.target = target
        self.response = response
        self.message = error.message


class Refused(Exception):
    """The router says no before anybody is asked."""

    def __init__(self, code: ErrorCode, message: str, **details: object) -> None:
        super().__init__(message)
        self.info = ErrorInfo(code, message, False, details)


class Outcome(NamedTuple):
    """Whose answer counts, and why."""

    agent: str
    response: AgentResponse
    reason: str


BLANK = IntentEnvelope(intent=Intent(""))
NOBODY = Lineup.of(())


class Route:
    """What one route knows: the envelope nobody else can edit, who is in line, what happened."""

    __slots__ = (
        "began",
        "clock",
        "ended",
        "envelope",
        "lineup",
        "log",
        "strategy",
        "strict",
        "tried",
        "unknown",
    )

    def __init__(self, clock: Clock, strict: bool) -> None:
        self.clock = clock
        self.strict = strict  # determinism is required
        self.began = self.ended = 0.0  # the former by the clock, the latter since 1970
        self.envelope = BLANK
        self.lineup = NOBODY
        self.strategy = RoutingStrategy.DIRECT
        self.unknown: str | None = None  # the strategy that was asked for and does not exist
        self.tried: list[str] = []
        self.log: list[Event] = []

    def ask(self, agent: Agent) -> Play[AgentResponse]:
        """One agent's answer. Whatever goes wrong in it is a failure, and an answer too."""
        answer = self.call(agent)
        if not isinstance(answer, AgentResponse):
            answer = yield from answer
        return answer

    def call(self, agent: Agent) -> AgentResponse | Play[AgentResponse]:
        """As `ask`, but a play is only made for those who do not answer at once."""
        name, log = agent.name, self.log
        self.tried.append(name)
        log.append(Event(len(log) + 1, START, name))
        envelope = self.envelope.copy()
        began = self.clock()
        try:
            answer: object = agent.handle(envelope)
        except Exception as error:  # noqa: BLE001 - an agent's exception is an agent's failure
            answer = AgentResponse.failure(crash(error))
        if type(answer) is not AgentResponse:
            return self._later(name, answer, began)
        ms = (self.clock() - began) * 1e3
        log.append(Event(len(log) + 1, END, name, answer.status, answer.error, "", "", ms))
        return answer

    def _later(self, name: str, answer: object, began: float) -> Play[AgentResponse]:
        """The rest of asking somebody who did not answer at once, or not properly."""
        if isawaitable(answer):
            try:
                answer = yield answer
            except Exception as error:  # noqa: BLE001 - as above
                answer = AgentResponse.failure(crash(error))
        if not isinstance(answer, AgentResponse):
            answer = AgentResponse.failure(garbage(answer))
        log, ms = self.log, (self.clock() - began) * 1e3
        log.append(Event(len(log) + 1, END, name, answer.status, answer.error, "", "", ms))
        return answer

    def cut(self) -> None:
        """Close the lines of those who were asked and never came to an end."""
        ended = {event.agent for event in self.log if event.kind is END}
        for name in self.tried:
            if name not in ended:
                self.log.append(Event(len(self.log) + 1, END, name, "cancelled"))


def fallback(route: Route) -> Play[Outcome]:
    """One after another, until one succeeds."""
    return _walked(route, route.lineup.chain, "fallback success at index {}")


def direct(route: Route) -> Play[Outcome]:
    """The named one or the first, and nobody else."""
    wanted, lineup = route.envelope.routing.target_agent, route.lineup
    if wanted and wanted not in lineup.agents:
        known = ", ".join(lineup.agents)
        message = f"{wanted!r} is no agent for {route.envelope.intent}; there are: {known}"
        raise Refused(ErrorCode.ROUTING_ERROR, message, target_agent=wanted)
    one = lineup.agents[wanted].candidate if wanted else lineup.chain[0]
    return _walked(route, (one,), "direct match")


def _walked(route: Route, chain: tuple[Candidate, ...], won: str) -> Play[Outcome]:
    agents, log, tried = route.lineup.agents, route.log, route.tried
    steps = walk(chain, _STAGE)
    try:
        step = next(steps)
        while isinstance(step, Try):
            target = step.target
            if tried:
                log.append(Event(len(log) + 1, TRIGGERED, tried[-1], "", None, target.model))
            answer = route.call(agents[target.model])
            if not isinstance(answer, AgentResponse):
                answer = yield from answer
            error = answer.error
            if error is None:
                step = steps.send(answer)
            else:
                failed = Failed(target.key, answer, error)
                step = steps.throw(failed)
                failed.__traceback__ = None  # it would keep the walk's frames alive in a circle
    except StopIteration as end:
        return Outcome(tried[-1], end.value, won.format(len(tried) - 1))
    except ChainExhausted as exhausted:
        last = exhausted.exceptions[-1]
        assert isinstance(last, Failed)
        return Outcome(tried[-1], last.response, f"all of {len(tried)} failed")
    finally:
        steps.close()
    raise AssertionError(f"a walk over agents never says {step!r}")


def broadcast(route: Route) -> Play[Outcome]:
    """Everybody in order; the last success counts, or else the last failure."""
    best: Outcome | None = None
    for agent in route.lineup.agents.values():
        answer = yield from route.ask(agent)
        if answer.error is None:
            best = Outcome(agent.name, answer, "broadcast last success")
        last = Outcome(agent.name, answer, f"all of {len(route.lineup.agents)} failed")
    return best or last


def parallel(route: Route) -> Play[Outcome]:
    """Everybody at once; the first success counts, or else the failure that came last."""
    outcome = yield _raced(route)
    assert isinstance(outcome, Outcome)
    return outcome


async def _raced(route: Route) -> Outcome:
    async def ask(agent: Agent) -> Outcome:
        return Outcome(agent.name, await perform(route.ask(agent)), "parallel first success")

    tasks = [asyncio.create_task(ask(agent)) for agent in route.lineup.agents.values()]
    running = set(tasks)
    try:
        while running:
            _, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            done = [task.result() for task in tasks if task not in running]
            for outcome in done:  # in the agents' order, should two have finished together
                if outcome.response.error is None:
                    return outcome
        ended = [event.agent for event in route.log if event.kind is END]
        last = next(outcome for outcome in done if outcome.agent == ended[-1])
        return last._replace(reason=f"all of {len(tasks)} failed")
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


STRATEGIES: Mapping[RoutingStrategy, Callable[[Route], Play[Outcome]]] = MappingProxyType(
    {
        RoutingStrategy.DIRECT: direct,
        RoutingStrategy.FALLBACK: fallback,
        RoutingStrategy.BROADCAST: broadcast,
        RoutingStrategy.PARALLEL: parallel,
    }
)
