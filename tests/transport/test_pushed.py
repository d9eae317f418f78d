"""Answers that are pushed, paused, finished and closed."""

from __future__ import annotations

import asyncio

import pytest

from transport.rig import (
    LIMITS,
    OK,
    TURN,
    Script,
    Server,
    close,
    get,
    play,
    request,
    soon,
    until,
)
from transport.test_answers import CHUNKED, length, stillness
from understudy.core.errors import ProviderError
from understudy.providers.answer import LEFTOVER
from understudy.providers.pool import Pool


class Recorder:
    """A sink that writes down what it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[bytes | None, bool]] = []
        self.ended = asyncio.Event()

    def __call__(self, data: bytes | None, done: bool) -> None:
        self.calls.append((data, done))
        if done:
            self.ended.set()

    @property
    def body(self) -> bytes:
        return b"".join(data or b"" for data, _ in self.calls)


def test_pushed_bytes_come_as_they_arrive_and_end_once() -> None:
    async def story(pool: Pool) -> None:
        more = asyncio.Event()
        script: Script = [request, CHUNKED + b"1\r\na\r\n", until(more), b"1\r\nb\r\n0\r\n\r\n"]
        async with Server(script) as server:
            answer = await pool.send(server.ask(), LIMITS)
            sink = Recorder()
            answer.push(sink)
            assert sink.calls == [(b"a", False)]
            more.set()
            await sink.ended.wait()
            assert sink.calls == [(b"a", False), (b"b", True)]

    play(story)


def test_an_answer_that_is_all_there_is_pushed_at_once() -> None:
    async def story(pool: Pool) -> None:
        async with Server([request, OK]) as server:
            answer = await pool.send(server.ask(), LIMITS)
            sink = Recorder()
            answer.push(sink)
            assert sink.calls == [(b"{}", True)]

    play(story)


def test_a_pushed_answer_that_breaks_off_says_why() -> None:
    async def story(pool: Pool) -> None:
        async with Server([request, CHUNKED + b"1\r\na\r\n", close]) as server:
            answer = await pool.send(server.ask(), LIMITS)
            sink = Recorder()
            answer.push(sink)
            await sink.ended.wait()
            assert sink.calls == [(b"a", False), (None, True)]
            assert isinstance(answer.error, ProviderError)

    play(story)


def test_a_paused_push_is_silent_and_stops_the_sender_until_resumed() -> None:
    async def story(pool: Pool) -> None:
        body = bytes(4_000_000)
        async with Server([request, length(body), request, OK]) as server:
            answer = await pool.send(server.ask(), LIMITS)
            sink = Recorder()
            answer.push(sink)
            answer.pause()
            before = len(sink.calls)
            await stillness(server.peers[0].writer.transport.get_write_buffer_size)
            assert len(sink.calls) == before
            assert not answer.done
            answer.resume()
            await sink.ended.wait()
            assert sink.body == body
            assert await get(pool, server) == b"{}"
            assert len(server.peers) == 1

    play(story)


def test_what_happens_during_a_pause_is_told_on_resume() -> None:
    async def story(pool: Pool) -> None:
        async with Server([request, CHUNKED + b"1\r\na\r\n"]) as server:
            answer = await pool.send(server.ask(), LIMITS)
            sink = Recorder()
            answer.push(sink)
            answer.pause()
            answer.arrive(b"b", False)  # read before the pause took effect
            await pool.aclose()
            assert sink.calls == [(b"a", False)]
            answer.resume()
            assert sink.calls == [(b"a", False), (b"b", False), (None, True)]

    play(story)


def test_a_closed_answer_calls_nobody() -> None:
    async def story(pool: Pool) -> None:
        async with Server([request, CHUNKED + b"1\r\na\r\n"]) as server:
            answer = await pool.send(server.ask(), LIMITS)
            sink = Recorder()
            answer.push(sink)
            answer.close()
            answer.resume()
            assert sink.calls == [(b"a", False)]
            assert await soon(server.peers[0].gone.is_set)

    play(story)


def test_a_sink_may_close_the_answer_it_is_given() -> None:
    async def story(pool: Pool) -> None:
        more = asyncio.Event()
        script: Script = [request, CHUNKED + b"1\r\na\r\n", until(more), b"1\r\nb\r\n1\r\nc\r\n"]
        async with Server(script) as server:
            answer = await pool.send(server.ask(), LIMITS)
            heard: list[bytes | None] = []

            def sink(data: bytes | None, done: bool) -> None:
                heard.append(data)
                if data == b"bc":
                    answer.close()

            answer.push(sink)
            more.set()
            assert await soon(server.peers[0].gone.is_set)
            assert heard == [b"a", b"bc"]

    play(story)


def test_a_finished_stream_keeps_its_connection_when_its_end_comes_late() -> None:
    async def story(pool: Pool) -> None:
        end = asyncio.Event()
        script: Script = [request, CHUNKED + b"1\r\na\r\n", until(end), b"0\r\n\r\n", *TURN]
        async with Server(script) as server:
            answer = await pool.send(server.ask(), LIMITS)
            assert await anext(answer.chunks()) == b"a"
            answer.finish()
            end.set()
            assert await soon(lambda: answer.done)
            answer.finish()
            assert await get(pool, server) == b"{}"
            assert len(server.peers) == 1

    play(story)


@pytest.mark.parametrize("early", [True, False], ids=["in hand", "still to come"])
def test_a_finished_stream_that_goes_on_is_closed(early: bool) -> None:
    async def story(pool: Pool) -> None:
        gate = asyncio.Event()
        flood = b"%x\r\n%b\r\n" % (2 * LEFTOVER, bytes(2 * LEFTOVER))
        script: Script = [request, CHUNKED + b"1\r\na\r\n", until(gate), flood]
        async with Server(script) as server:
            answer = await pool.send(server.ask(), LIMITS)
            assert await anext(answer.chunks()) == b"a"
            if early:
                answer.arrive(bytes(2 * LEFTOVER), False)
            answer.finish(3600)
            gate.set()
            assert await soon(server.peers[0].gone.is_set)

    play(story)


def test_a_finished_stream_that_is_silent_is_closed_after_a_moment() -> None:
    async def story(pool: Pool) -> None:
        async with Server([request, CHUNKED + b"1\r\na\r\n"]) as server:
            answer = await pool.send(server.ask(), LIMITS)
            assert await anext(answer.chunks()) == b"a"
            answer.finish(0.01)
            assert not answer.done
            assert answer.error is None
            await server.peers[0].gone.wait()
            assert answer.error is not None

    play(story)


def test_two_readers_of_one_answer_are_a_mistake() -> None:
    async def story(pool: Pool) -> None:
        async with Server([request, CHUNKED]) as server:
            answer = await pool.send(server.ask(), LIMITS)
            first = asyncio.create_task(answer.read())
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="somebody else"):
                await answer.read()
            first.cancel()
            assert await soon(first.cancelled)

    play(story)
