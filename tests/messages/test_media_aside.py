"""Changing a picture takes long; whoever else uses the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from tests.messages.pictures import picture
from understudy import Capabilities, Image, Registry, user
from understudy.testing import Fake

SMALL = Capabilities(image_types=("image/jpeg",), max_image_pixels=300)
PLENTY = 20  # turns of the loop; a request of its own takes half a dozen


@pytest.mark.parametrize("streams", [False, True])
def test_the_event_loop_turns_while_a_picture_is_changed(streams: bool) -> None:
    async def work() -> tuple[int, int]:
        registry = Registry(env={})
        registry.register_provider(fake := Fake("p", capabilities=SMALL))
        model = registry.parse("p/m")
        asked = [user("what is this?", Image(picture("image/png", (2000, 2000))))]
        turns, loop = [0], asyncio.get_running_loop()

        def turn() -> None:
            turns[0] += 1
            beat.append(loop.call_soon(turn))

        beat = [loop.call_soon(turn)]
        if streams:
            async with model.stream(asked) as events:
                async for _ in events:
                    break
        else:
            await model.generate(asked)
        beat[-1].cancel()
        [(_, request)] = fake.calls
        [part] = [p for p in request.messages[0].parts if isinstance(p, Image)]
        return turns[0], len(part.data)

    turned, size = asyncio.run(work())
    assert turned > PLENTY
    assert 0 < size < 300 * 300
