"""Streams as the contract tells them (T1-T9): failover until the first content, never after."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.rig import Play, run, until
from understudy import (
    FAIL_FAST,
    Capabilities,
    Fault,
    ProviderError,
    ReasoningDelta,
    Response,
    TextDelta,
    ToolCall,
)
from understudy.messages.response import BEAT
from understudy.testing import HANG, Chunks, Pause

BROKEN = ConnectionResetError("reset by peer")


def test_a_stream_gives_its_pieces_and_then_one_whole_response() -> None:
    play = Play().script(a=[Chunks("hel", "lo")])

    async def scene() -> list[object]:
        async with play.registry.parse("p/a").stream("hi") as events:
            return [event async for event in events]

    *deltas, last = run(scene())
    assert deltas == [TextDelta("hel"), TextDelta("lo")]
    assert isinstance(last, Response)
    assert (last.text, last.model, last.finish_reason) == ("hello", "p/a", "stop")
    assert [a.word for a in last.attempts] == ["ok"]


def test_a_failure_to_open_fails_over_like_a_plain_request() -> None:
    play = Play().script(a=[503, 503], b=[Chunks("hi")])
    assert play.watch() == "hi"
    assert play.told == ["p/a=transient", "p/a=transient", "p/b=ok"]


def test_a_target_that_does_not_stream_is_passed_over_for_streams_only() -> None:
    play = Play()
    play.p.describe("a", Capabilities(streaming=False))
    play.script(a=["whole"], b=[Chunks("hi")])
    assert play.watch() == "hi"
    assert (play.told, play.called) == (["p/a=unsupported", "p/b=ok"], ["b"])
    assert play.ask() == "whole"


@pytest.mark.parametrize("before", [(), (" ", "\n"), (ReasoningDelta(""),)])
def test_a_stream_that_dies_before_content_fails_over_and_nothing_of_it_is_seen(before) -> None:  # type: ignore[no-untyped-def]
    play = Play(replace(FAIL_FAST, transient_retries=0))
    play.script(a=[Chunks(*before, BROKEN)], b=[Chunks("hi")])
    assert play.watch() == "hi"
    assert play.told == ["p/a=transient", "p/b=ok"]


@pytest.mark.parametrize(
    "content", ["x", ReasoningDelta("hmm"), ToolCall("1", "t")], ids=["text", "thinking", "tool"]
)
def test_after_the_first_content_no_other_target_is_ever_called(content: object) -> None:
    play = Play().script(a=[Chunks(content, BROKEN)])  # type: ignore[arg-type]
    assert play.watch().endswith("|transient")
    assert (play.told, play.called) == (["p/a=transient"], ["a"])


def test_a_broken_stream_is_one_failure_told_at_its_end() -> None:
    play = Play().script(a=[Chunks("x", BROKEN)])
    play.watch()
    assert play.health.snapshot()["p/a"].failures == 1
    assert play.story[0].first_content == 0


def test_a_complete_stream_clears_the_target() -> None:
    play = Play().script(a=[503, Chunks("hi")])
    play.watch()
    assert play.health.snapshot() == {}


def test_blank_text_before_content_is_delivered_once_content_comes() -> None:
    play = Play().script(a=[Chunks("\n", " hi")])
    assert play.watch() == "\n hi"


def test_no_content_in_time_is_a_stall_and_the_chain_advances() -> None:
    play = Play().script(a=[Chunks(" ", Pause(14.9), "\n", Pause(9), "late")], b=[Chunks("hi")])
    assert play.watch() == "hi"
    assert play.told == ["p/a=stall_pre_first_byte", "p/b=ok"]
    assert play.clock() == 15
    assert play.health.snapshot()["p/a"].failures == 1


def test_silence_after_content_is_an_error_to_the_caller_and_stops() -> None:
    play = Play().script(a=[Chunks("x", HANG)])
    assert play.watch() == "x|stall_mid_stream"
    assert play.told == ["p/a=stall_mid_stream"]
    assert play.clock() == 60


def test_steady_pieces_never_trip_the_watchdog_however_long_it_runs() -> None:
    pieces = [piece for n in range(100) for piece in (Pause(59), str(n))]
    play = Play().script(a=[Chunks("go", *pieces)])
    assert play.watch().endswith("99")
    assert play.clock() == 5900


def test_the_whole_requests_deadline_ends_a_stream_and_blames_nobody() -> None:
    pieces = [piece for _ in range(100) for piece in (Pause(10), "x")]
    play = Play().script(a=[Chunks("go", *pieces)])
    assert play.watch(timeout=35) == "goxxx|stall_mid_stream"
    assert play.clock() == 35
    assert play.health.snapshot() == {}


def test_an_empty_stream_is_empty_content_and_fails_over() -> None:
    play = Play().script(a=[Chunks()], b=[Chunks("hi")])
    assert play.watch() == "hi"
    assert play.told == ["p/a=empty_content", "p/b=ok"]


def test_a_stream_without_its_end_is_an_error_never_a_finish() -> None:
    class Cut:
        name = "cut"

        async def generate(self, call: object) -> Response:
            raise NotImplementedError

        async def stream(self, call: object):  # type: ignore[no-untyped-def]
            yield TextDelta("half of")

    play = Play()
    play.registry.register_provider(Cut())  # type: ignore[arg-type]
    assert play.watch("cut/x, p/b") == "half of|stall_mid_stream"


def test_error_events_before_content_fail_over_with_their_own_fault() -> None:
    limited = ProviderError(Fault.RATE_LIMIT, status_code=200, retry_after=9)
    play = Play().script(a=[Chunks(limited)], b=[Chunks("hi")])
    assert play.watch() == "hi"
    assert play.told == ["p/a=rate_limit", "p/b=ok"]


def test_error_events_after_content_are_passed_on() -> None:
    play = Play().script(a=[Chunks("x", ProviderError(Fault.OUT_OF_CREDITS))])
    assert play.watch() == "x|out_of_credits"


def test_tool_calls_arrive_whole() -> None:
    call = ToolCall("1", "weather", '{"city":"Bern"}')
    play = Play().script(a=[Chunks(call)])

    async def scene() -> list[object]:
        async with play.registry.parse("p/a").stream("hi") as events:
            return [event async for event in events]

    first, last = run(scene())
    assert first == call
    assert isinstance(last, Response)
    assert (last.tool_calls, last.finish_reason) == ((call,), "tool_calls")


def test_a_caller_who_leaves_marks_nobody_and_leaves_no_task() -> None:
    play = Play().script(a=[503, Chunks("x", "y", "z")])
    closed = []

    async def scene() -> int:
        real = play.p.stream

        async def watched(call):  # type: ignore[no-untyped-def]
            try:
                async for event in real(call):
                    yield event
            finally:
                closed.append(True)

        play.p.stream = watched  # type: ignore[method-assign]
        async with play.registry.parse("p/a").stream("hi") as events:
            async for _ in events:
                break
        return len(asyncio.all_tasks()) - 1

    assert run(scene()) == 0
    assert closed == [True, True]
    assert play.told == ["p/a=transient", "p/a=cancelled"]
    assert play.health.snapshot()["p/a"].failures == 1  # the blip before, nothing since


def test_closing_twice_is_harmless_and_a_closed_stream_is_over() -> None:
    play = Play().script(a=[Chunks("x", "y")])

    async def scene() -> list[object]:
        async with play.registry.parse("p/a").stream("hi") as events:
            await events.aclose()
            await events.aclose()
            return [event async for event in events]

    assert run(scene()) == []


def test_cancellation_while_waiting_for_content_reaches_the_caller() -> None:
    play = Play().script(a=[HANG])
    play.p.clock = None

    async def scene() -> None:
        task = asyncio.ensure_future(play.watched())
        await until(lambda: play.called)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(scene())
    assert (play.called, play.told) == (["a"], ["p/a=cancelled"])
    assert play.health.snapshot() == {}


def test_a_stall_while_the_caller_also_cancels_is_the_callers() -> None:
    play = Play().script(a=[HANG])
    play.p.clock = None

    async def scene() -> None:
        task = asyncio.ensure_future(play.watched())
        await until(lambda: play.called)
        play.clock.advance(15)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(scene())
    assert play.health.snapshot() == {}


def test_blocking_callers_stream_for_real_also_inside_a_running_loop() -> None:
    play = Play().script(a=[503, 503], b=[Chunks("hel", "lo")] * 2)

    async def scene() -> list[object]:
        with play.registry.parse("p/a, p/b").stream_sync("hi") as events:
            return list(events)

    inside = run(scene())
    with play.registry.parse("p/b").stream_sync("hi") as events:
        first = next(events)
    assert [type(event).__name__ for event in inside] == ["TextDelta", "TextDelta", "Response"]
    assert first == TextDelta("hel")
    play.registry.close()


def test_blocking_and_async_calls_tell_the_same_story() -> None:
    plays = [Play().script(a=[503, 503], b=["hi"]) for _ in range(2)]
    blocking = plays[0].registry.parse("p/a, p/b").generate_sync("hi")
    awaited = run(plays[1].registry.parse("p/a, p/b").generate("hi"))
    assert blocking == awaited
    plays[0].registry.close()


def test_a_blocking_call_raises_what_the_async_one_would() -> None:
    play = Play().script(a=[400])
    with pytest.raises(ProviderError, match="permanent"):
        play.registry.parse("p/a").generate_sync("hi")
    play.registry.close()


def test_pieces_of_a_tool_call_are_a_sign_of_life_and_never_seen() -> None:
    call = ToolCall("1", "write", '{"text":"long"}')
    pieces = [piece for _ in range(20) for piece in (Pause(50), BEAT)]
    play = Play().script(a=[Chunks(BEAT, *pieces, call)])

    async def scene() -> list[object]:
        async with play.registry.parse("p/a").stream("hi") as events:
            return [event async for event in events]

    first, last = run(scene())
    assert first == call
    assert isinstance(last, Response)
    assert play.clock() == 1000


def test_a_stream_that_was_begun_may_be_entered_after_all() -> None:
    play = Play().script(a=[Chunks("hel", "lo", ConnectionResetError("gone"))])
    events = play.registry.parse("p/a, p/b").stream_sync("hi")
    assert next(events) == TextDelta("hel")
    with pytest.raises(ProviderError, match="gone"), events:
        list(events)
    assert play.told == ["p/a=transient"]
    assert play.health.snapshot()["p/a"].failures == 1
    play.registry.close()


def test_a_stream_that_failed_to_open_is_not_entered_again_as_if_it_had_nothing_to_say() -> None:
    play = Play().script(a=[400, "hello"])
    events = play.registry.parse("p/a").stream_sync("hi")
    with pytest.raises(ProviderError), events:
        pass
    with pytest.raises(RuntimeError, match="ask the model for another"), events:
        pass
    play.registry.close()
