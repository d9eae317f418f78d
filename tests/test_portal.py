"""Blocking calls: from inside others, from forked processes, from what is closed or forgotten."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import AsyncGenerator, Callable

import pytest

from tests.rig import Play
from understudy import Registry, Response, TextDelta
from understudy.messages.response import Event
from understudy.providers.base import Call
from understudy.testing import HANG, Chunks, Fake

PATIENCE = 30  # seconds; only ever waited for by a test that fails


class Calling:
    """A provider that does something of its own before it answers."""

    name = "calling"

    def __init__(self, act: Callable[[], str]) -> None:
        self._act = act

    async def generate(self, call: Call) -> Response:
        return Response(self._act())

    async def stream(self, call: Call) -> AsyncGenerator[Event, None]:
        yield await self.generate(call)


def inside(threads: list[threading.Thread]) -> list[threading.Thread]:
    return [thread for thread in threads if thread.name == "understudy-portal"]


def registry_of(*providers: Calling | Fake) -> Registry:
    registry = Registry(env={})
    for provider in providers:
        registry.register_provider(provider)
    return registry


def test_a_provider_may_itself_ask_the_same_registry_and_wait() -> None:
    registry = registry_of(Fake("p").script("a", "from within"))
    registry.register_provider(Calling(lambda: registry.parse("p/a").generate_sync("hi").text))
    assert registry.parse("calling/x").generate_sync("hi").text == "from within"
    registry.close()


def test_who_is_asked_from_within_may_ask_in_turn() -> None:
    registry = registry_of(Fake("p").script("a", "from deep within"))
    asks = [lambda: registry.parse("p/a").generate_sync("hi").text]
    asks += [lambda: registry.parse("deep/x").generate_sync("hi").text]
    registry.register_provider("deep", Calling(asks[0]))
    registry.register_provider("deeper", Calling(asks[1]))
    heard: list[str] = []
    asking = threading.Thread(
        target=lambda: heard.append(registry.parse("deeper/x").generate_sync("hi").text),
        daemon=True,  # or a test that fails would never end
    )
    asking.start()
    asking.join(PATIENCE)
    assert heard == ["from deep within"]
    registry.close()


def test_a_stream_may_be_read_from_within() -> None:
    before = inside(threading.enumerate())
    registry = registry_of(Fake("p").script("a", Chunks("from ", "within")))

    def read() -> str:
        with registry.parse("p/a").stream_sync("hi") as events:
            return "".join(event.text for event in events if isinstance(event, TextDelta))

    registry.register_provider(Calling(read))
    assert registry.parse("calling/x").generate_sync("hi").text == "from within"
    registry.close()
    assert set(inside(threading.enumerate())) <= set(before)


def test_an_error_from_within_comes_out() -> None:
    registry = registry_of(Fake("p").script("a", 400))
    registry.register_provider(Calling(lambda: registry.parse("p/a").generate_sync("hi").text))
    with pytest.raises(Exception, match="status=400"):
        registry.parse("calling/x").generate_sync("hi")
    registry.close()


def test_a_forked_process_can_ask_as_well() -> None:
    registry = registry_of(Fake("p"))
    model = registry.parse("p/a")
    assert model.generate_sync("hi").text == "hello from p/a"
    child = os.fork()
    if child == 0:  # nothing of pytest may go on in here
        ended = threading.Timer(PATIENCE, os._exit, (3,))
        ended.daemon = True
        ended.start()
        os._exit(0 if model.generate_sync("hi").text == "hello from p/a" else 2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert model.generate_sync("still here?").text == "hello from p/a"
    registry.close()


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_program_is_raised_to_the_caller_and_ends_nobody_else(
    end: type[BaseException],
) -> None:
    play = Play().script(a=[end()], b=["hi"])
    with pytest.raises(end):
        play.registry.parse("p/a").generate_sync("hi")
    assert play.registry.parse("p/b").generate_sync("hi").text == "hi"
    play.registry.close()


def test_who_waits_when_the_registry_is_closed_is_told() -> None:
    registry = registry_of(Fake("p").script("a", HANG))
    outcome: list[object] = []

    def ask() -> None:
        try:
            registry.parse("p/a").generate_sync("hi")
        except RuntimeError as error:
            outcome.append(str(error))

    waiting = threading.Thread(target=ask)
    waiting.start()
    fake = registry.providers["p"]
    assert isinstance(fake, Fake)
    while not fake.calls:
        waiting.join(0.001)
    registry.close()
    waiting.join(PATIENCE)
    assert outcome == ["closed while this was being answered"]
    assert registry.parse("p/b").generate_sync("hi").text == "hello from p/b"
    registry.close()


def test_a_registry_that_is_forgotten_ends_its_thread() -> None:
    registry = registry_of(Fake("p"))
    before = inside(threading.enumerate())
    registry.parse("p/a").generate_sync("hi")
    (mine,) = set(inside(threading.enumerate())) - set(before)
    del registry
    gc.collect()
    mine.join(PATIENCE)
    assert not mine.is_alive()
