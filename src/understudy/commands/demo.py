"""`understudy demo`: a failing-over chain told scene by scene, on scripted providers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from understudy.commands import story
from understudy.commands.screen import columns
from understudy.gateway.shapes import attempt_told
from understudy.messages.response import Response
from understudy.model import Model
from understudy.registry import Registry
from understudy.testing import Fake, Http, ManualClock

Echo = Callable[[str], None]
SPEC = "lead/opera, understudy/aria, house/piano"
SCENES = (
    ("one blip is retried on the same target", 0.0),
    ("a second failure in a row benches it, the chain moves on", 0.0),
    ("meanwhile it is skipped; the next one names its own delay", 1.0),
    ("five seconds are over: the lead is asked first again", 5.0),
)


@dataclass(frozen=True, slots=True)
class Scene:
    """One request of the demo."""

    at: float  # seconds since it began
    title: str
    reply: Response

    def to_dict(self) -> dict[str, object]:
        return {
            "at": self.at,
            "title": self.title,
            "text": self.reply.text,
            "model": self.reply.model,
            "attempts": [attempt_told(attempt) for attempt in self.reply.attempts],
        }


def demo(echo: Echo) -> None:
    """Four requests while the lead fails, sits out and returns."""
    clock, model = _stage()
    echo(f"chain: {SPEC}\n")
    for scene in _played(clock, model):
        echo(f"t={scene.at:g} s  {scene.title}")
        for line in columns(story.table(scene.reply.attempts))[1:]:
            echo(f"  {line}")
        echo(f"  -> {scene.reply.model}: {scene.reply.text}\n")
    echo("what would happen to the next request:")
    echo(str(model.plan()))


def told() -> dict[str, object]:
    """The same as JSON."""
    clock, model = _stage()
    scenes = [scene.to_dict() for scene in _played(clock, model)]
    return {"chain": SPEC, "scenes": scenes, "plan": model.plan().to_dict()}


def _stage() -> tuple[ManualClock, Model]:
    clock = ManualClock()
    registry = Registry(env={}, clock=clock)
    lead = Fake("lead").script("opera", 503, "the lead sings", 503, 503, "the lead is back")
    second = Fake("understudy").script("aria", "the understudy goes on")
    second.script("aria", Http(429, "rate limit reached", {"retry-after": "60"}))
    for provider in (lead, second, Fake("house")):
        registry.register_provider(provider)
    return clock, registry.parse(SPEC)


def _played(clock: ManualClock, model: Model) -> Iterator[Scene]:
    for title, pause in SCENES:
        clock.advance(pause)
        yield Scene(clock(), title, asyncio.run(model.generate("sing")))
