"""Targets that answer only whole: a stream goes to somebody else, and nobody is blamed."""

from __future__ import annotations

import pytest

from tests.rig import run
from tests.served import house, listening, provider
from understudy import Capabilities, Registry
from understudy.messages.response import TextDelta
from understudy.providers.base import Provider
from understudy.providers.http import Settings
from understudy.testing import Fake

WHOLE = Settings(capabilities={"m": {"streaming": False}})


@pytest.mark.parametrize("over_http", [True, False])
def test_a_stream_goes_past_a_target_that_does_not_stream(over_http: bool) -> None:
    async def scene() -> tuple[str, str]:
        async with listening(house(Fake("far"), m="far/m")) as far:
            fake = Fake("head", capabilities=Capabilities(streaming=False))
            head: Provider = provider("openai", far, "head", WHOLE) if over_http else fake
            async with listening(house(head, Fake("next"), chat="head/m, next/m")) as address:
                registry = Registry(env={})
                registry.register_provider(provider("openai", address))
                model = registry.parse("up/chat")
                async with model.stream("hi") as events:
                    said = [e.text async for e in events if isinstance(e, TextDelta)]
                whole = await model.generate("hi")
                await registry.aclose()
        return "".join(said), whole.text

    first = "far" if over_http else "head"
    assert run(scene()) == ("hello from next/m", f"hello from {first}/m")
