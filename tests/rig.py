"""Script in, story out: a registry on fakes and a clock that is moved by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TypeVar

from understudy import FAIL_FAST, ChainExhausted, Cooldown, Policy, ProviderError, Registry
from understudy.core.target import Attempt
from understudy.messages.response import Event, Response, TextDelta
from understudy.providers.fake import Outcome
from understudy.testing import Fake, ManualClock, told

T = TypeVar("T")


async def until(condition: Callable[[], object]) -> None:
    """Let others work until something is so; bounded, and never by the clock."""
    for _ in range(10_000):
        if condition():
            return
        turn = asyncio.Event()
        asyncio.get_running_loop().call_soon(turn.set)
        await turn.wait()
    raise AssertionError("it never came to that")


def run(work: Coroutine[object, object, T]) -> T:
    return asyncio.run(work)


@dataclass
class Play:
    """A stage with two fake providers, `p` and `q`."""

    policy: Policy = FAIL_FAST
    cooldown: Cooldown = field(default_factory=Cooldown)
    credentials: tuple[str, ...] = ("default",)

    def __post_init__(self) -> None:
        self.clock = ManualClock()
        self.story: list[Attempt] = []
        self.p = Fake("p", clock=self.clock, credentials=self.credentials)
        self.q = Fake("q", clock=self.clock)
        self.registry = Registry(
            env={},
            policy=self.policy,
            cooldown=self.cooldown,
            clock=self.clock,
            observer=self.story.append,
        )
        self.registry.register_provider(self.p)
        self.registry.register_provider(self.q)

    def script(self, **outcomes: list[Outcome]) -> Play:
        """`a=[503, "hi"]` scripts model `a` of provider p; `q_a` that of provider q."""
        for name, queue in outcomes.items():
            fake = self.q if name.startswith("q_") else self.p
            fake.script(name.removeprefix("q_"), *queue)
        return self

    @property
    def health(self):  # type: ignore[no-untyped-def]
        return self.registry.health

    @property
    def called(self) -> list[str]:
        return [model for model, _ in self.p.calls]

    def ask(self, spec: str = "p/a, p/b", **options: object) -> str:
        """The text, or what was raised, in short."""
        return run(self.asked(spec, **options))

    async def asked(self, spec: str = "p/a, p/b", **options: object) -> str:
        self.story.clear()
        try:
            reply = await self.registry.parse(spec).generate("hello", **options)  # type: ignore[arg-type]
        except ChainExhausted:
            return "exhausted"
        except ProviderError as error:
            return f"stopped: {error.fault}"
        assert reply.attempts == tuple(self.story)
        return reply.text

    def watch(self, spec: str = "p/a, p/b", **options: object) -> str:
        """A stream: its text, then how it ended."""
        return run(self.watched(spec, **options))

    async def watched(self, spec: str = "p/a, p/b", **options: object) -> str:
        self.story.clear()
        heard: list[Event] = []
        try:
            async with self.registry.parse(spec).stream("hello", **options) as events:  # type: ignore[arg-type]
                async for event in events:
                    heard.append(event)
        except ChainExhausted:
            heard.append(TextDelta("|exhausted"))
        except ProviderError as error:
            heard.append(TextDelta(f"|{error.fault}"))
        finals = [event for event in heard if isinstance(event, Response)]
        if finals:
            assert heard[-1] is finals[0]
            assert len(finals) == 1
        return "".join(event.text for event in heard if isinstance(event, TextDelta))

    @property
    def told(self) -> list[str]:
        return told(self.story)
