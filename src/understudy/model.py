"""A chain that answers. One target or many, plain or streaming, async or not: the same object."""

from __future__ import annotations

import math
from typing import TypeVar

from understudy.core.errors import ProviderError
from understudy.core.plan import Plan, plan
from understudy.core.target import Attempt
from understudy.core.walk import Step, Try, Wait, walk
from understudy.driver import Cast, capabilities_of, drive, guard, tell
from understudy.messages.capabilities import Capabilities, refusal
from understudy.messages.fences import bare
from understudy.messages.request import Prompt, Request
from understudy.messages.response import Response
from understudy.portal import Portal
from understudy.stream import Stream, SyncStream
from understudy.timers import sleep

T = TypeVar("T")


class Model:
    """What `parse` gives. `timeout` bounds a whole request; other options act on a copy of it."""

    def __init__(self, spec: str, cast: Cast, portal: Portal) -> None:
        self.spec = spec
        self.targets = tuple(candidate.key for candidate in cast.chain)
        self.cast = cast
        self._portal = portal

    def __repr__(self) -> str:
        return f"<Model {', '.join(self.targets)}>"

    @property
    def capabilities(self) -> Capabilities:
        """Those of the head: what a caller should prepare for. Each attempt is fitted anew."""
        head = self.cast.chain[0].target
        return capabilities_of(self.cast.providers[head.provider], head.model)

    async def generate(
        self, prompt: Prompt, *, timeout: float | None = None, **options: object
    ) -> Response:
        """The answer of the first target that can, with the story of how it came about."""
        take = _Take(self.cast, _request(prompt, options))
        return await take.answer(self._deadline(timeout))

    async def generate_as(
        self, kind: type[T], prompt: Prompt, *, timeout: float | None = None, **options: object
    ) -> T:
        """An answer as a value of the caller's type: dataclass, msgspec Struct, pydantic model."""
        from understudy.structured import generate_as  # needs msgspec: only for those who ask

        return await generate_as(self, kind, prompt, timeout=timeout, **options)

    def stream(self, prompt: Prompt, *, timeout: float | None = None, **options: object) -> Stream:
        """An async context manager over events; the last one is the whole `Response`."""
        return Stream(self.cast, _request(prompt, options), self._deadline(timeout))

    def generate_sync(
        self, prompt: Prompt, *, timeout: float | None = None, **options: object
    ) -> Response:
        """`generate` for callers that cannot await; works inside a running event loop too."""
        return self._portal.run(self.generate(prompt, timeout=timeout, **options))

    def stream_sync(
        self, prompt: Prompt, *, timeout: float | None = None, **options: object
    ) -> SyncStream:
        """`stream` for callers that cannot await."""
        return SyncStream(self._portal, self.stream(prompt, timeout=timeout, **options))

    def plan(self, prompt: Prompt | None = None, *, timeout: float | None = None) -> Plan:
        """What would happen to a request now, target by target, and why."""
        refused = {} if prompt is None else refusals(self.cast, Request.of(prompt))
        return plan(self.cast.chain, self.cast.stage, timeout=timeout, refusals=refused)

    def _deadline(self, timeout: float | None) -> float:
        if timeout is None:
            return math.inf
        if not timeout > 0:
            raise ValueError(f"timeout is {timeout!r}; give seconds above 0, or None for no limit")
        return self.cast.stage.clock() + timeout


def refusals(cast: Cast, request: Request) -> dict[str, str]:
    """Who of a chain cannot take this request, and why."""
    targets = [candidate.target for candidate in cast.chain]
    asked = {
        t.key: refusal(request, capabilities_of(cast.providers[t.provider], t.model))
        for t in targets
    }
    return {key: reason for key, reason in asked.items() if reason}


class _Take:
    """One plain request being answered."""

    __slots__ = ("cast", "request", "story")

    def __init__(self, cast: Cast, request: Request) -> None:
        self.cast = cast
        self.request = request
        self.story: list[Attempt] = []

    async def answer(self, deadline: float) -> Response:
        cast = self.cast
        note = self.story.append if cast.observer is None else self._note
        steps = walk(cast.chain, cast.stage, deadline=deadline, observe=note)
        response = await drive(steps, self._act)
        assert isinstance(response, Response)
        served = self.story[-1].target
        return _credited(response, served, tuple(self.story))

    async def _act(self, step: Step) -> object:
        clock = self.cast.stage.clock
        if isinstance(step, Wait):
            await sleep(clock, step.seconds)
            return None
        assert isinstance(step, Try)
        step, provider, call, patience = await self.cast.called(step, self.request)
        with guard(clock, step, patience.response, "pre_first_byte", self.cast.watches):
            response = await provider.generate(call)
        if reason := response.blank:
            raise ProviderError(response.void, message=reason)
        return response if self.request.output is None else bare(response)

    def _note(self, attempt: Attempt) -> None:
        self.story.append(attempt)
        assert self.cast.observer is not None
        tell(self.cast.observer, attempt)


def _request(prompt: Prompt, options: dict[str, object]) -> Request:
    request = Request.of(prompt)
    return request.having(**options) if options else request


def _credited(response: Response, model: str, attempts: tuple[Attempt, ...]) -> Response:
    """A copy that tells who served and how. `replace` would work the parts out anew, at 4 us."""
    told = object.__new__(Response)
    vars(told).update(vars(response), model=model, attempts=attempts)
    return told
