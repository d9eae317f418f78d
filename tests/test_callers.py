"""What callers do that nobody asked for: wrong prompts, odd observers, streams not entered."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.rig import Play, run, until
from understudy import (
    AVAILABILITY,
    FAIL_FAST,
    Attempt,
    ChainExhausted,
    HttpProvider,
    Image,
    InvalidRequest,
    Message,
    Model,
    Registry,
    Request,
    Response,
    TextDelta,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
    assistant,
)
from understudy.messages.parts import Text
from understudy.messages.request import user
from understudy.providers.base import Call
from understudy.testing import HANG, Chunks, Fake, ManualClock


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        (["hello"], r"messages\[0\] is a str"),
        ([user("a"), {"role": "user", "content": "hi"}], r"messages\[1\] is a dict"),
        (Request(messages="hi"), r"messages is a str; it must be a tuple"),  # type: ignore[arg-type]
        (b"hi", "not a bytes"),
        ({"role": "user"}, "not a dict"),
        (5, "not an int"),
    ],
)
def test_a_prompt_that_is_none_is_refused_before_anybody_is_blamed(
    prompt: object, said: str
) -> None:
    play = Play()
    with pytest.raises(InvalidRequest, match=said):
        run(play.registry.parse("p/a").generate(prompt))  # type: ignore[arg-type]
    assert (play.called, play.health.snapshot()) == ([], {})


TOOL = Tool("f")
HI: dict[str, object] = {"messages": (user("hi"),)}


@pytest.mark.parametrize(
    ("built", "said"),
    [
        ({"messages": (user(None),)}, r"messages\[0\].parts\[0\] is a NoneType"),  # type: ignore[arg-type]
        ({"messages": (Message("user", "hi"),)}, r"messages\[0\].parts is a str"),  # type: ignore[arg-type]
        ({"messages": (Message("robot"),)}, r"messages\[0\].role is 'robot'; it must be one of"),  # type: ignore[arg-type]
        ({"messages": (user(Image("x")),)}, r"parts\[0\].data is a str; it must be bytes"),  # type: ignore[arg-type]
        ({"messages": (user(ToolResult("1", content=(3,))),)}, r"content\[0\] is an int"),  # type: ignore[arg-type]
        ({"messages": (assistant(ToolCall("1", "f", {})),)}, r"arguments is a dict"),  # type: ignore[arg-type]
        ({**HI, "tools": TOOL}, "tools is a Tool; it must be a tuple"),
        ({**HI, "tools": ({"name": "f"},)}, r"tools\[0\] is a dict; make one with Tool"),
        ({**HI, "tools": (Tool("f", parameters="{}"),)}, r"tools\[0\].parameters is a str"),  # type: ignore[arg-type]
        ({**HI, "tool_choice": ToolChoice("any")}, r"tool_choice.mode is 'any'"),  # type: ignore[arg-type]
        ({**HI, "output": {"type": "object"}}, "output is a dict; it must be Schema or None"),
        ({**HI, "stop": (1,)}, r"stop\[0\] is an int; it must be a text"),
        ({**HI, "max_tokens": "5"}, "max_tokens is a str; it must be int or None"),
    ],
)
def test_what_is_built_wrongly_is_named_before_anybody_is_blamed(
    built: dict[str, object], said: str
) -> None:
    play, options = Play(), {name: value for name, value in built.items() if name != "messages"}
    model = play.registry.parse("p/a")
    with pytest.raises(InvalidRequest, match=said):
        run(model.generate(Request(**built)))  # type: ignore[arg-type]
    if options:
        with pytest.raises(InvalidRequest, match=said):
            run(model.generate("hi", **options))
    assert (play.called, play.health.snapshot()) == ([], {})


def test_short_forms_of_options_are_what_they_look_like() -> None:
    play = Play()
    run(
        play.registry.parse("p/a").generate("hi", stop="END", tool_choice="required", tools=[TOOL])
    )
    [(_, request)] = play.p.calls
    assert (request.stop, request.tool_choice) == (("END",), ToolChoice("required"))


def test_one_message_alone_is_a_prompt() -> None:
    play = Play()
    run(play.registry.parse("p/a").generate(Message("user", (Text("hi"),))))
    assert play.p.calls[0][1].messages[0].text == "hi"


# -- observers --------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_an_observer_that_breaks_changes_nothing_and_is_reported(stream: bool) -> None:
    reported: list[dict[str, object]] = []

    def observe(_: Attempt) -> None:
        raise RuntimeError("looking away")

    registry = Registry(env={}, observer=observe)
    registry.register_provider(Fake("p").script("a", 503, "hi"))

    async def scene() -> str:
        asyncio.get_running_loop().set_exception_handler(lambda _, told: reported.append(told))
        model = registry.parse("p/a")
        if not stream:
            return (await model.generate("x")).text
        async with model.stream("x") as events:
            return "".join([e.text async for e in events if isinstance(e, TextDelta)])

    assert run(scene()) == "hi"
    assert [str(told["exception"]) for told in reported] == ["looking away", "looking away"]


@pytest.mark.parametrize("stream", [False, True])
def test_who_cancels_between_two_attempts_is_heeded_before_the_second(stream: bool) -> None:
    registry = Registry(env={}, observer=lambda _: tasks[0].cancel())
    fake = Fake("p").script("a", 503, 503)
    registry.register_provider(fake)
    tasks: list[asyncio.Task[object]] = []

    async def ask(model: Model) -> object:
        if not stream:
            return await model.generate("x")
        async with model.stream("x") as events:
            return [event async for event in events]

    async def scene() -> None:
        tasks.append(asyncio.create_task(ask(registry.parse("p/a, p/b"))))
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]

    run(scene())
    assert fake.count("a") == 1
    assert fake.count("b") == 0


# -- streams ----------------------------------------------------------------------------------


def test_a_stream_may_be_iterated_without_being_entered() -> None:
    play = Play().script(a=[503, 503], b=[Chunks("hel", "lo")])

    async def scene() -> list[object]:
        return [event async for event in play.registry.parse("p/a, p/b").stream("hi")]

    *deltas, last = run(scene())
    assert deltas == [TextDelta("hel"), TextDelta("lo")]
    assert isinstance(last, Response)
    assert last.model == "p/b"


def test_so_may_a_blocking_one() -> None:
    play = Play().script(a=[Chunks("hi")])
    first, last = play.registry.parse("p/a").stream_sync("hi")
    assert first == TextDelta("hi")
    assert isinstance(last, Response)
    play.registry.close()


def silent_after(*pieces: str) -> Play:
    """A clock of its own would run through the silence."""
    play = Play()
    play.p.clock = None
    return play.script(a=[Chunks(*pieces, HANG)])


def test_closing_a_stream_that_somebody_waits_for_ends_the_waiting_and_marks_nobody() -> None:
    play = silent_after("x")

    async def scene() -> list[object]:
        heard: list[object] = []
        async with play.registry.parse("p/a").stream("hi") as events:

            async def listen() -> None:
                heard.extend([event async for event in events])
                heard.append("the end")

            listening = asyncio.create_task(listen())
            await until(lambda: events._reading is not None)
            await events.aclose()
            await events.aclose()
            await listening
        return heard

    assert run(scene())[-1] == "the end"
    assert [attempt.outcome for attempt in play.story] == ["cancelled"]
    assert play.health.snapshot() == {}


def test_who_is_cancelled_while_the_stream_is_closed_stays_cancelled() -> None:
    play = silent_after("x")

    async def scene() -> None:
        async with play.registry.parse("p/a").stream("hi") as events:

            async def listen() -> None:
                async for _ in events:
                    pass

            listening = asyncio.create_task(listen())
            await until(lambda: events._reading is not None)
            listening.cancel()
            await events.aclose()
            with pytest.raises(asyncio.CancelledError):
                await listening

    run(scene())


def test_a_blocking_stream_may_be_closed_from_another_thread() -> None:
    play = silent_after("x")
    heard: list[object] = []
    with play.registry.parse("p/a").stream_sync("hi") as events:
        listening = threading.Thread(target=lambda: heard.extend(events))
        listening.start()
        while events._stream._reading is None:
            listening.join(0.001)
        events.close()
        listening.join(30)
    assert heard == [TextDelta("x")]
    play.registry.close()


# -- clocks, timeouts, what is told at last ----------------------------------------------------


def test_a_clock_moved_in_one_thread_wakes_who_waits_in_another() -> None:
    clock = ManualClock()
    registry = Registry(env={}, policy=AVAILABILITY, clock=clock)
    registry.register_provider(Fake("p"))
    registry.health.bench("p/a", 1)
    heard: list[str] = []
    asking = threading.Thread(
        target=lambda: heard.append(registry.parse("p/a").generate_sync("hi").text)
    )
    asking.start()
    while not clock.waiting:
        asking.join(0.001)
    clock.advance(1)
    asking.join(30)
    assert heard == ["hello from p/a"]
    registry.close()


def test_ten_tenths_are_a_whole() -> None:
    clock = ManualClock()
    registry = Registry(env={}, clock=clock)
    registry.health.bench("k", 5)
    for _ in range(50):
        clock.advance(0.1)
    assert registry.health.available("k")


def test_the_soonest_return_is_told_though_somebody_else_failed_without_a_bench() -> None:
    play = Play().script(b=[""])
    play.health.bench("p/a", 30)
    with pytest.raises(ChainExhausted) as caught:
        run(play.registry.parse("p/a, p/b").generate("hi"))
    assert caught.value.retry_after == 30


def test_only_who_answered_has_no_fault() -> None:
    play = Play()
    play.health.bench("p/a", 30, why="maintenance")
    reply = run(play.registry.parse("p/a, p/b").generate("hi"))
    assert [attempt.fault is None for attempt in reply.attempts] == [False, True]


class Told(Exception):
    """Somebody else's error, with a status."""

    status_code = 400


def test_the_status_of_a_foreign_error_is_told() -> None:
    play = Play().script(a=[Told("no such thing")])
    with pytest.raises(Exception, match="status=400: no such thing"):
        run(play.registry.parse("p/a").generate("hi"))
    assert play.story[0].status == 400


def test_a_target_that_says_the_caller_left_does_not_end_the_chain() -> None:
    play = Play(replace(FAIL_FAST, transient_retries=0)).script(
        a=[RuntimeError("context canceled")], b=["hi"]
    )
    assert play.ask() == "hi"
    assert play.told == ["p/a=transient", "p/b=ok"]


def test_limits_of_time_have_the_names_of_the_configuration() -> None:
    provider = HttpProvider(
        "up", base_url="http://127.0.0.1:1", first_byte_timeout=1, idle_timeout=2,
        response_timeout=3, connect_timeout=4,
    )  # fmt: skip
    patience = provider.patience
    assert (patience.first_byte, patience.idle, patience.response) == (1, 2, 3)
    assert provider.settings.limits.connect == 4


def test_a_limit_that_is_none_is_named() -> None:
    with pytest.raises(TypeError, match="'timeout' of a provider; of time it has connect_timeout"):
        HttpProvider("up", base_url="http://127.0.0.1:1", timeout=1)  # type: ignore[call-arg]


class Stubborn(Fake):
    """Makes of a cancellation what libraries like to make of it."""

    async def generate(self, call: Call) -> Response:
        try:
            return await super().generate(call)
        except asyncio.CancelledError:
            raise RuntimeError("interrupted") from None


def test_who_leaves_is_gone_though_the_provider_calls_it_something_else() -> None:
    registry = Registry(env={})
    fake = Stubborn("p").script("a", HANG)
    registry.register_provider(fake)

    async def scene() -> None:
        asking = asyncio.create_task(registry.parse("p/a, p/b").generate("hi"))
        await until(lambda: fake.calls)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    run(scene())
    assert (fake.count("a"), fake.count("b")) == (1, 0)
    assert registry.health.snapshot() == {}


def test_who_has_overcome_an_earlier_cancellation_is_served_like_anybody() -> None:
    play = Play().script(a=[503, 503], b=["hello"])

    async def scene(here: asyncio.Event) -> str:
        try:
            here.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return (await play.registry.parse("p/a, p/b").generate("hi")).text
        raise AssertionError

    async def stage() -> str:
        here = asyncio.Event()
        task = asyncio.create_task(scene(here))
        await here.wait()
        task.cancel()
        return await task

    assert run(stage()) == "hello"


# -- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "passed_on", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))]
)
def test_an_error_tells_elsewhere_what_it_tells_here(
    passed_on: Callable[[object], object],
) -> None:
    play = Play().script(a=[ConnectionResetError("no line"), OSError("disk")])
    with pytest.raises(ChainExhausted) as caught:
        run(play.registry.parse("p/a").generate("hi"))
    [one] = caught.value.exceptions
    assert str(one) == "failover[p/transient]: status=0: disk"
    assert str(passed_on(one)) == str(one)
    assert str(passed_on(caught.value)) == str(caught.value)
