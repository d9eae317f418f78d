"""The server on a real socket: requests, wrong requests, and what is told of them."""

from __future__ import annotations

import asyncio

import pytest

from tests.agents.rig import House, later, ok, run, task
from tests.agents.server_rig import GOOD, Client, error, post, served
from tests.rig import until
from understudy.agents import AgentResponse, AgentServer, Bounds, IntentEnvelope, write
from understudy.agents.inbound import Connection, Incoming, Reply
from understudy.agents.serve import refuse


def test_an_envelope_is_answered_and_the_connection_kept() -> None:
    async def story(client: Client) -> None:
        for _ in range(3):
            client.send(post(GOOD))
            status, answer = await client.answer()
            assert (status, answer["payload"]) == (200, "a")

    served(story)


def test_it_works_on_uvloop_too() -> None:
    uvloop = pytest.importorskip("uvloop")

    async def play() -> None:
        async with AgentServer(House(a=later(ok("a"))).router) as server:
            client = await Client.of(server)
            client.send(post(GOOD) * 3)
            assert [(await client.answer())[1]["payload"] for _ in range(3)] == ["a"] * 3
            client.send(post(b"{}"))
            assert (await client.answer())[0] == 400
            client.send(b"nonsense\r\n\r\n")
            assert (await client.answer())[0] == 400
            assert await client.ended()
            client.close()

    uvloop.run(play())


def test_a_request_may_come_byte_by_byte() -> None:
    async def story(client: Client) -> None:
        for byte in post(GOOD):
            client.send(bytes([byte]))
            await client.writer.drain()
        assert (await client.answer())[0] == 200

    served(story)


def test_requests_that_come_together_are_answered_in_order() -> None:
    async def echo(envelope: IntentEnvelope) -> AgentResponse:
        return AgentResponse.success(envelope.payload)

    async def story(client: Client) -> None:
        client.send(b"".join(post(write(task(payload=n))) for n in range(20)))
        answers = [(await client.answer())[1]["payload"] for _ in range(20)]
        assert answers == list(range(20))

    served(story, House(a=later(echo)))


def test_a_chunked_body_and_a_client_that_waits_to_be_told_both_work() -> None:
    async def story(client: Client) -> None:
        half = len(GOOD) // 2
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in (GOOD[:half], GOOD[half:], b""))
        head = b"POST /route HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
        client.send(head + chunks)
        assert (await client.answer())[0] == 200

        whole = post(GOOD, "expect: 100-continue")
        client.send(whole.removesuffix(GOOD))
        assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(GOOD)
        assert (await client.answer())[0] == 200

    served(story)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", ""),
        (b"{", ""),
        (b'{"intent": {"name": 1}}', "intent.name"),
        (b'{"intent": {"name": "x"}, "routing": {"retries": 1}}', "routing.retries"),
        (b'{"intent": {"name": "x"}, "version": "9"}', "version"),
        (b'{"intent": {"name": "x"}, "payload": ' + b"[" * 90_000, ""),
    ],
)
def test_a_wrong_envelope_is_a_400_that_names_the_field(body: bytes, field: str) -> None:
    async def story(client: Client) -> None:
        client.send(post(body))
        status, answer = await client.answer()
        told = error(answer)
        assert (status, told["code"], told["details"]) == (
            400,
            "VALIDATION_ERROR",
            {"field": field},
        )
        client.send(post(GOOD))  # and the connection is as good as before
        assert (await client.answer())[0] == 200

    house = House(a=ok("a"))
    served(story, house)
    assert house.calls == ["a"]


@pytest.mark.parametrize(
    ("request_bytes", "status", "code"),
    [
        (post(GOOD, path="/nowhere"), 404, "ROUTING_ERROR"),
        (post(b"", method="GET"), 405, "ROUTING_ERROR"),
        (post(GOOD, path="/route?x=1"), 200, None),
        (b"nonsense\r\n\r\n", 400, "PROTOCOL_ERROR"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "PROTOCOL_ERROR"),
        (post(b"", "x: " + "y" * 17_000), 431, "PAYLOAD_TOO_LARGE"),
        (b"POST /route HTTP/1.1\r\nx: " + b"y" * 40_000, 431, "PAYLOAD_TOO_LARGE"),
        (b"POST /" + b"y" * 40_000, 431, "PAYLOAD_TOO_LARGE"),
        (post(b"x" * 2000), 413, "PAYLOAD_TOO_LARGE"),
        (
            b"POST /route HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n7d0\r\n"
            + b"x" * 2000,
            413,
            "PAYLOAD_TOO_LARGE",
        ),
    ],
)
def test_what_is_wrong_with_a_request_is_told_as_a_response(
    request_bytes: bytes, status: int, code: str | None
) -> None:
    async def story(client: Client) -> None:
        client.send(request_bytes)
        got, answer = await client.answer()
        assert (got, error(answer)["code"] if code else None) == (status, code)

    served(story, bounds=Bounds(body=1000))


def test_a_long_header_piece_by_piece_is_refused_before_it_ends() -> None:
    async def story(client: Client) -> None:
        client.send(b"POST /route HTTP/1.1\r\nx: ")
        for _ in range(20):
            client.send(b"y" * 1000)
            await client.writer.drain()
        assert (await client.answer())[0] == 431
        assert await client.ended()

    served(story)


def test_a_client_that_is_still_sending_hears_why_it_is_refused() -> None:
    async def story(client: Client) -> None:
        client.send(b"POST /route HTTP/1.1\r\nhost: x\r\ncontent-length: 90000000\r\n\r\n")
        client.send(b"y" * 4_000_000)
        assert (await client.answer())[0] == 413

    served(story)


class Blocked(asyncio.Transport):
    """A socket whose other end takes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def is_reading(self) -> bool:
        return True

    def pause_reading(self) -> None:
        pass

    def abort(self) -> None:
        self.aborted = True

    def write_eof(self) -> None:
        self.written.append(b"the end")


def test_a_refused_client_may_finish_sending_for_a_while_before_it_is_cut_off() -> None:
    async def play() -> None:
        async def serve(incoming: Incoming) -> Reply:
            raise AssertionError

        transport = Blocked()
        connection = Connection(serve, refuse, Bounds(patience=0.0), set())
        connection.connection_made(transport)
        connection.data_received(b"nonsense\r\n\r\n")
        connection.data_received(post(GOOD))  # heard, and ignored
        assert transport.written[1:] == [b"the end"]
        assert not transport.aborted
        await until(lambda: transport.aborted)
        connection.connection_lost(None)

    run(play())


def test_a_client_that_takes_nothing_gets_no_second_answer_and_is_cut_off() -> None:
    async def play() -> None:
        async def serve(incoming: Incoming) -> Reply:
            connection.pause_writing()
            return Reply(200, b"{}")

        transport = Blocked()
        connection = Connection(serve, refuse, Bounds(patience=0.0), set())
        connection.connection_made(transport)
        connection.data_received(post(GOOD) * 3)
        await until(lambda: transport.aborted)
        connection.connection_lost(None)
        assert len(transport.written) == 1

    run(play())


def test_a_body_just_within_the_limit_is_read() -> None:
    padded = GOOD + b" " * (1000 - len(GOOD))

    async def story(client: Client) -> None:
        client.send(post(padded))
        assert (await client.answer())[0] == 200

    served(story, bounds=Bounds(body=1000))
