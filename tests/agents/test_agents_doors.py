"""Who is let in, for how long, and how the server ends."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.agents.rig import House, ok, run
from tests.agents.server_rig import GOOD, Client, Json, error, post, served
from understudy.agents import AgentResponse, AgentServer, Bounds, IntentEnvelope


def test_a_request_that_never_comes_to_its_end_is_cut_off() -> None:
    async def story(client: Client) -> None:
        client.send(b"POST /route HTTP/1.1\r\nhost: x\r\n")
        status, answer = await client.answer()
        assert (status, error(answer)["retryable"]) == (408, True)
        assert await client.ended()

    served(story, bounds=Bounds(patience=0.02))


def test_an_idle_connection_is_closed_without_a_word() -> None:
    async def story(client: Client) -> None:
        assert await client.ended()

    served(story, bounds=Bounds(patience=0.01))


def test_more_connections_than_there_is_room_for_are_refused() -> None:
    async def story(client: Client) -> None:
        status, _ = await client.answer()
        assert status == 503

    served(story, bounds=Bounds(connections=0))


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("x: y", 401),
        ("authorization: Bearer wrong", 401),
        ("authorization: hunter2", 401),
        ("authorization: Bearer hunter2", 200),
    ],
)
def test_with_a_key_only_those_who_have_it_are_served(header: str, status: int) -> None:
    async def story(client: Client) -> None:
        client.send(post(GOOD, header))
        got, answer = await client.answer()
        assert got == status
        assert "hunter2" not in json.dumps(answer)
        client.send(post(b"", path="/healthz", method="GET"))
        assert await client.answer() == (200, {"status": "ok"})

    served(story, key="hunter2")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_without_a_key_only_loopback_may_be_listened_on(host: str) -> None:
    with pytest.raises(ValueError, match="only loopback"):
        run(AgentServer(House().router).start(host))


def test_the_agents_can_be_listed() -> None:
    async def story(client: Client) -> None:
        client.send(post(b"", path="/agents", method="GET"))
        _, answer = await client.answer()
        assert answer == {
            "agents": [
                {
                    "name": "a",
                    "capabilities": ["task@1.0"],
                    "node_id": None,
                    "node_priority": 100,
                }
            ]
        }

    served(story)


def test_a_payload_that_cannot_leave_is_the_failure_of_its_agent() -> None:
    async def story(client: Client) -> None:
        client.send(post(GOOD))
        status, answer = await client.answer()
        assert (status, error(answer)["code"]) == (200, "INTERNAL_AGENT_ERROR")
        assert answer["decision_path"] == ["a"]

    served(story, House(a=ok(object())))


def test_closing_lets_the_request_at_work_finish() -> None:
    async def play() -> tuple[int, Json]:
        begun, go = asyncio.Event(), asyncio.Event()

        async def waits(envelope: IntentEnvelope) -> AgentResponse:
            begun.set()
            await go.wait()
            return AgentResponse.success("after all")

        server = AgentServer(House(a=waits).router)
        await server.start()
        client = await Client.of(server)
        client.send(post(GOOD))
        await begun.wait()
        closing = asyncio.create_task(server.aclose())
        go.set()
        answer = await client.answer()
        assert await client.ended()
        await closing
        client.close()
        return answer

    status, answer = run(play())
    assert (status, answer["payload"]) == (200, "after all")


def test_closing_does_not_wait_for_ever() -> None:
    async def play() -> None:
        begun = asyncio.Event()

        async def hangs(envelope: IntentEnvelope) -> AgentResponse:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError

        server = AgentServer(House(a=hangs).router)
        await server.start()
        client = await Client.of(server)
        client.send(post(GOOD))
        await begun.wait()
        await server.aclose(grace=0.01)
        client.close()

    run(play())
