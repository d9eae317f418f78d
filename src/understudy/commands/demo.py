"""`understudy demo`: a failing-over chain told line by line, on scripted providers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from understudy.core.errors import ChainExhausted
from understudy.core.target import Attempt
from understudy.registry import Registry
from understudy.testing import Fake, Http, ManualClock

Echo = Callable[[str], None]
SPEC = "lead/opera, understudy/aria, house/piano"


def demo(echo: Echo) -> None:
    """Four requests while the lead fails, sits out and returns."""
    clock = ManualClock()
    registry = Registry(env={}, clock=clock)
    lead = Fake("lead").script("opera", 503, "the lead sings", 503, 503, "the lead is back")
    second = Fake("understudy").script("aria", "the understudy goes on")
    second.script("aria", Http(429, "rate limit reached", {"retry-after": "60"}))
    for provider in (lead, second, Fake("house")):
        registry.register_provider(provider)
    model = registry.parse(SPEC)
    echo(f"chain: {SPEC}\n")
    scenes = [
        ("one blip is retried on the same target", 0.0),
        ("a second failure in a row benches it, the chain moves on", 0.0),
        ("meanwhile it is skipped; the next one names its own delay", 1.0),
        ("five seconds are over: the lead is asked first again", 5.0),
    ]
    for title, pause in scenes:
        clock.advance(pause)
        echo(f"t={clock():g} s  {title}")
        try:
            reply = asyncio.run(model.generate("sing"))
        except ChainExhausted as error:
            echo(f"  {error}")
            continue
        for attempt in reply.attempts:
            echo(f"  {line(attempt)}")
        echo(f"  -> {reply.model}: {reply.text}\n")
    echo("what would happen to the next request:")
    echo(str(model.plan()))


def line(attempt: Attempt) -> str:
    """One attempt as a row of the story."""
    reason = f"  {attempt.reason}" if attempt.reason else ""
    then = f"  -> {attempt.then}" if attempt.then else ""
    return f"{attempt.target:<18} {attempt.word:<22}{reason}{then}"
