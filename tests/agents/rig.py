"""Script in, path out: agents that do what they are told, and a router over them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from inspect import isawaitable
from typing import TypeVar

from understudy.agents import (
    Agent,
    AgentRegistry,
    AgentResponse,
    ErrorCode,
    ErrorInfo,
    IntentEnvelope,
    MemorySink,
    Recorder,
    Router,
)
from understudy.agents.agent import Handle
from understudy.agents.blocking import is_async

T = TypeVar("T")

TASK = "task"


def run(work: Coroutine[object, object, T]) -> T:
    return asyncio.run(work)


def task(strategy: str | None = "fallback", payload: object = None, **more: str) -> IntentEnvelope:
    return IntentEnvelope.new(TASK, payload, strategy=strategy, **more)  # type: ignore[arg-type]


def error(message: str = "no", code: ErrorCode = ErrorCode.AGENT_ERROR) -> ErrorInfo:
    return ErrorInfo(code, message)


def ok(payload: object = "done") -> Handle:
    return lambda envelope: AgentResponse.success(payload)


def fails(message: str = "no", code: ErrorCode = ErrorCode.AGENT_ERROR) -> Handle:
    return lambda envelope: AgentResponse.failure(error(message, code))


def raises(problem: BaseException) -> Handle:
    def handle(envelope: IntentEnvelope) -> AgentResponse:
        raise problem

    return handle


def gives(value: object) -> Handle:
    return lambda envelope: value  # type: ignore[return-value]


def later(handle: Handle) -> Handle:
    """The same agent, but async, and it really suspends."""

    async def handle_later(envelope: IntentEnvelope) -> AgentResponse:
        turn = asyncio.Event()
        asyncio.get_running_loop().call_soon(turn.set)
        await turn.wait()
        answer = handle(envelope)
        return await answer if isawaitable(answer) else answer

    return handle_later


class House:
    """A router over the given agents, all of them able to do `task`, with everybody watching."""

    def __init__(
        self, *agents: Agent, require_determinism: bool = True, **handles: Handle
    ) -> None:
        self.calls: list[str] = []
        named = [Agent(name, handle, [TASK]) for name, handle in handles.items()]
        self.registry = AgentRegistry(_counted(agent, self.calls) for agent in [*agents, *named])
        self.sink = MemorySink()
        self.recorder = Recorder()
        self.router = Router(
            self.registry,
            sinks=[self.sink],
            recorder=self.recorder,
            require_determinism=require_determinism,
        )

    def route(self, envelope: IntentEnvelope | None = None) -> AgentResponse:
        return run(self.router.route(envelope or task()))

    @property
    def span(self):  # type: ignore[no-untyped-def]
        (span,) = self.sink.spans
        return span

    @property
    def record(self):  # type: ignore[no-untyped-def]
        (record,) = self.recorder.records
        return record


def agent(name: str, handle: Handle | None = None, **where: object) -> Agent:
    return Agent(name, handle or ok(name), [TASK], **where)  # type: ignore[arg-type]


def _counted(agent: Agent, calls: list[str]) -> Agent:
    handle: Callable[..., object] = agent.handle

    def counted(envelope: IntentEnvelope) -> object:
        calls.append(agent.name)
        return handle(envelope)

    async def counted_later(envelope: IntentEnvelope) -> object:
        answer = counted(envelope)
        return await answer if isawaitable(answer) else answer

    agent.handle = counted_later if is_async(handle) else counted  # type: ignore[assignment]
    return agent
