"""One envelope on its way to the agents: asking one, and the four strategies of whom to ask.

FALLBACK and DIRECT are walks: `core.walk` under `DETERMINISTIC`, without health and with a clock
that stands still, so nothing but the agents' own answers can bend a path.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from inspect import isawaitable
from types import MappingProxyType
from typing import NamedTuple, cast

from understudy.agents.agent import Agent, Handle
from understudy.agents.blocking import Wait, arrived, awaited, cancels, carried, is_async
from understudy.agents.envelope import Clock, Intent, IntentEnvelope, RoutingStrategy
from understudy.agents.failure import ErrorCode, ErrorInfo, crash, garbage
from understudy.agents.record import Ended
from understudy.agents.registry import Lineup
from understudy.agents.response import AgentResponse
from understudy.core.errors import ChainExhausted, ProviderError
from understudy.core.faults import Fault, Verdict
from understudy.core.policy import DETERMINISTIC
from understudy.core.stage import Candidate, Stage
from understudy.core.walk import Try, walk

_VERDICT = Verdict(Fault.UNKNOWN)
# `float()` is 0.0, always: the clock stands still.
_STAGE = Stage(DETERMINISTIC, judge=lambda error: _VERDICT, clock=float)


class Failed(ProviderError):
    """An agent's failure on its way through the walk."""

    # The walk asks for these; for an agent they are always the same, so no time is spent on them.
    fault = Fault.UNKNOWN
    status_code = None
    retry_after = None
    billing = ""

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
        "ends",
        "envelope",
        "lineup",
        "strategy",
        "strict",
        "tried",
        "unknown",
        "wait",
    )

    def __init__(self, clock: Clock, strict: bool, wait: Wait) -> None:
        self.clock = clock
        self.wait = wait
        self.strict = strict  # determinism is required
        self.began = self.ended = 0.0  # the former by the clock, the latter since 1970
        self.envelope = BLANK
        self.lineup = NOBODY
        self.strategy = RoutingStrategy.DIRECT
        self.unknown: str | None = None  # the strategy that was asked for and does not exist
        self.tried: list[str] = []  # who was asked
        self.ends: list[Ended] = []  # and how it went, as far as it is known

    def call(self, agent: Agent) -> AgentResponse | Coroutine[object, object, AgentResponse]:
        """Ask an agent. Whatever goes wrong in it is a failure, and an answer too.

        Who answers at once costs no coroutine.
        """
        name, envelope, began = self._begun(agent)
        answer = _asked(agent.handle, envelope)
        if type(answer) is not AgentResponse:
            return self._later(name, answer, began)
        return self._ended(name, answer, began)

    async def race(self, agent: Agent) -> AgentResponse:
        """As `call`, but a plain function holds up nobody: it runs in a thread.

        One that loses cannot be stopped; what it says in the end is not heard.
        """
        name, envelope, began = self._begun(agent)
        if is_async(agent.handle):
            answer = _asked(agent.handle, envelope)
        else:
            answer = await asyncio.to_thread(_asked, agent.handle, envelope)
        return await self._later(name, answer, began)

    def _begun(self, agent: Agent) -> tuple[str, IntentEnvelope, float]:
        envelope = self.envelope.copy()
        self.tried.append(agent.name)
        return agent.name, envelope, self.clock()

    async def _later(self, name: str, answer: object, began: float) -> AgentResponse:
        """The rest of asking somebody who did not answer at once, or not properly.

        Cancellation ends a route, even if the agent kept it to itself.
        """
        before = cancels()
        try:
            if isawaitable(answer):  # this asks for `__class__`, and that may be anybody's code
                answer = await self.wait(answer)
        except Exception as error:  # noqa: BLE001 - an agent's exception is an agent's failure
            answer = AgentResponse.failure(crash(error))
        if cancels() > before:
            raise asyncio.CancelledError
        if not issubclass(type(answer), AgentResponse):  # `isinstance` would ask for `__class__`
            answer = AgentResponse.failure(garbage(answer))
        return self._ended(name, cast(AgentResponse, answer), began)

    def _ended(self, name: str, answer: AgentResponse, began: float) -> AgentResponse:
        """Close the line of an agent. From here on nobody else can edit its answer."""
        ms = (self.clock() - began) * 1e3
        answer = answer.given()
        self.ends.append(Ended(name, answer.status, answer.error, ms))
        return answer

    def cut(self) -> None:
        """Close the lines of those who were asked and never came to an end."""
        ended = {end.agent for end in self.ends}
        self.ends += [Ended(name, "cancelled") for name in self.tried if name not in ended]


def _asked(handle: Handle, envelope: IntentEnvelope) -> object:
    """What an agent says at once."""
    try:
        return handle(envelope)
    except Exception as error:  # noqa: BLE001 - an agent's exception is an agent's failure
        return AgentResponse.failure(crash(error))


def fallback(route: Route) -> Awaitable[Outcome]:
    """One after another, until one succeeds."""
    return _walked(route, route.lineup.chain)


async def direct(route: Route) -> Outcome:
    """The named one or the first, and nobody else."""
    wanted, lineup = route.envelope.routing.target_agent, route.lineup
    if wanted and wanted not in lineup.agents:
        known = ", ".join(lineup.agents)
        message = f"{wanted!r} is no agent for {route.envelope.intent}; there are: {known}"
        raise Refused(ErrorCode.ROUTING_ERROR, message, target_agent=wanted)
    one = lineup.agents[wanted].candidate if wanted else lineup.chain[0]
    outcome = await _walked(route, (one,))
    return outcome if outcome.response.error else outcome._replace(reason="direct match")


async def _walked(route: Route, chain: tuple[Candidate, ...]) -> Outcome:
    agents, tried = route.lineup.agents, route.tried
    steps = walk(chain, _STAGE)
    try:
        step = next(steps)
        while isinstance(step, Try):
            target = step.target
            answer = route.call(agents[target.model])
            if not isinstance(answer, AgentResponse):
                answer = await answer
            error = answer.error
            if error is None:
                step = steps.send(answer)
            else:
                failed = Failed(target.key, answer, error)
                step = steps.throw(failed)
                failed.__traceback__ = None  # it would keep the walk's frames alive in a circle
    except StopIteration as end:
        return Outcome(tried[-1], end.value, f"fallback success at index {len(tried) - 1}")
    except ChainExhausted as exhausted:
        last = exhausted.exceptions[-1]
        assert isinstance(last, Failed)
        return Outcome(tried[-1], last.response, f"all of {len(tried)} failed")
    finally:
        steps.close()
    raise AssertionError(f"a walk over agents never says {step!r}")


async def broadcast(route: Route) -> Outcome:
    """Everybody in order; the last success counts, or else the last failure."""
    best: Outcome | None = None
    for agent in route.lineup.agents.values():
        answer = route.call(agent)
        if not isinstance(answer, AgentResponse):
            answer = await answer
        if answer.error is None:
            best = Outcome(agent.name, answer, "broadcast last success")
        last = Outcome(agent.name, answer, f"all of {len(route.tried)} failed")
    return best or last


async def parallel(route: Route) -> Outcome:
    """Everybody at once; the first success counts, or else the failure that came last.

    Who is async shares the event loop, plain functions run in threads of its executor.
    """
    outcome = await route.wait(_raced(route))
    assert isinstance(outcome, Outcome)
    return outcome


async def _raced(route: Route) -> Outcome:
    async def ask(agent: Agent) -> Outcome:
        return Outcome(agent.name, await route.race(agent), "parallel first success")

    route.wait = awaited  # a race has an event loop, whoever waits for its end
    tasks = [asyncio.create_task(carried(ask(agent))) for agent in route.lineup.agents.values()]
    running = set(tasks)
    try:
        while running:
            _, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            done = [arrived(task.result()) for task in tasks if task not in running]
            for outcome in done:  # in the agents' order, should two have finished together
                if outcome.response.error is None:
                    return outcome
        last = next(outcome for outcome in done if outcome.agent == route.ends[-1].agent)
        return last._replace(reason=f"all of {len(tasks)} failed")
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        route.cut()


STRATEGIES: Mapping[RoutingStrategy, Callable[[Route], Awaitable[Outcome]]] = MappingProxyType(
    {
        RoutingStrategy.DIRECT: direct,
        RoutingStrategy.FALLBACK: fallback,
        RoutingStrategy.BROADCAST: broadcast,
        RoutingStrategy.PARALLEL: parallel,
    }
)
