"""Agents and routers elsewhere, over real sockets; and A7, when the line is down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from tests.agents.rig import TASK, House, agent, fails, gives, later, ok, raises, run, task
from tests.transport.rig import Script, Server, close, hang, request
from understudy.agents import (
    AgentResponse,
    AgentServer,
    ErrorCode,
    IntentEnvelope,
    Line,
    RemoteAgent,
    RemoteRouter,
    Router,
)
from understudy.agents.agent import Handle


def bare(response: AgentResponse) -> AgentResponse:
    """A response without what differs from run to run."""
    metadata = {k: v for k, v in response.metadata.items() if k != "timestamp"}
    return replace(response, metadata=metadata)


def elsewhere(house: House, story: Callable[[str], Awaitable[AgentResponse]]) -> AgentResponse:
    """Serve a house, and tell a story about its address."""

    async def play() -> AgentResponse:
        async with AgentServer(house.router) as server:
            return await story(server.url)

    return run(play())


async def over_http(url: str, envelope: IntentEnvelope, line: Line | None = None) -> AgentResponse:
    router = RemoteRouter(url, line=line or Line())
    try:
        return await router.route(envelope)
    finally:
        await router.aclose()


CASES: list[dict[str, Handle]] = [
    {"a": ok({"text": "\u00e9\U0001f600", "n": [1, 2.5, None]})},
    {"a": fails(), "b": later(ok("b"))},
    {"a": fails(), "b": raises(ValueError("fell over"))},
    {"a": gives(3)},
    {},
]


@pytest.mark.parametrize("handles", CASES)
@pytest.mark.parametrize("strategy", ["fallback", "direct", "broadcast", "parallel", "fancy", ""])
def test_a_router_elsewhere_answers_as_if_it_were_here(
    handles: dict[str, Handle], strategy: str
) -> None:
    house = House(*(agent(name, handle) for name, handle in handles.items()))
    envelope = task(strategy, payload={"deep": [{}]}, trace_id="t")
    here = house.route(envelope)
    there = elsewhere(house, lambda url: over_http(url, envelope))
    assert bare(there) == bare(here)


@pytest.mark.parametrize("handle", [ok({"text": "x"}), fails("no"), raises(ValueError("x"))])
def test_a_remote_agent_answers_as_if_it_were_here(handle: Handle) -> None:
    house = House(a=handle, b=ok("not asked: the remote agent stands for one agent"))
    here = House(a=handle).route(task(trace_id="t"))

    async def story(url: str) -> AgentResponse:
        remote = RemoteAgent(url, "a", [TASK], "node")
        try:
            return await House(remote).router.route(task(trace_id="t"))
        finally:
            await remote.aclose()

    assert bare(elsewhere(house, story)) == bare(here)
    assert house.calls == ["a"]


def test_a_remote_agent_ranks_as_remote_whatever_its_priority() -> None:
    far = RemoteAgent("http://127.0.0.1:1/", "a", [TASK], node_priority=0)
    assert far.node_id == "127.0.0.1:1"
    house = House(far, agent("b", ok("b"), node_priority=9000))
    assert house.route().decision_path == ("b",)


def test_who_asked_through_whom_is_in_the_identity_chain() -> None:
    seen: list[IntentEnvelope] = []

    def notes(envelope: IntentEnvelope) -> AgentResponse:
        seen.append(envelope)
        return AgentResponse.success()

    async def story(url: str) -> AgentResponse:
        remote = RemoteAgent(url, "a", [TASK], "node")
        try:
            return await House(remote).router.route(task(payload=[1], trace_id="t"))
        finally:
            await remote.aclose()

    elsewhere(House(a=notes), story)
    (envelope,) = seen
    assert envelope.metadata.identity_chain == ("node/a",)
    assert (envelope.payload, envelope.metadata.trace_id) == ([1], "t")


def test_routers_that_point_at_each_other_stop() -> None:
    async def story() -> AgentResponse:
        house = House()
        async with AgentServer(house.router) as server:
            mirror = RemoteAgent(server.url, "mirror", [TASK])
            house.registry.register(mirror)
            try:
                return await house.router.route(task())
            finally:
                await mirror.aclose()

    response = run(story())
    assert response.error is not None
    assert "circle" in response.error.message


# -- A7: the line is down -------------------------------------------------------------------------

REFUSED = "http://127.0.0.1:1"
HTML = (b"HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>",)
DOWN: dict[str, Script] = {
    "closed without an answer": [request, close],
    "broken off": [request, b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{", close],
    "a proxy speaks": [request, *HTML],
    "silence": [request, hang],
}


@pytest.mark.parametrize("script", DOWN.values(), ids=DOWN)
def test_a7_a_line_that_fails_between_client_and_router_is_a_transport_error(
    script: Script,
) -> None:
    async def story() -> AgentResponse:
        async with Server(script) as server:
            line = Line(timeout=0.05)
            response = await over_http(str(server.origin), task(), line)
            assert len(server.peers) == 1  # nobody asks again
            return response

    response = run(story())
    assert response.error is not None
    assert (response.error.code, response.error.retryable) == (ErrorCode.TRANSPORT_ERROR, True)
    assert response.decision_path == ()


@pytest.mark.parametrize("blocking", [True, False])
def test_a7_a_router_that_is_not_there_is_a_transport_error(blocking: bool) -> None:
    envelope = task(trace_id="t")
    if blocking:
        router = RemoteRouter(REFUSED)
        response = router.route_sync(envelope)
        router.close()
    else:
        response = run(over_http(REFUSED, envelope))
    assert response.error is not None
    assert response.error.code is ErrorCode.TRANSPORT_ERROR
    assert "refused the connection" in response.error.message
    assert list(response.metadata) == ["agent", "trace_id", "timestamp"]
    assert (response.metadata["agent"], response.metadata["trace_id"]) == ("router", "t")


def test_a7_a_trace_that_never_reached_a_router_has_an_id_too() -> None:
    bare_envelope = IntentEnvelope(intent=task().intent)
    assert run(over_http(REFUSED, bare_envelope)).metadata["trace_id"]


def test_a7_inside_a_router_a_remote_agent_that_cannot_be_reached_is_passed_over() -> None:
    house = House(RemoteAgent(REFUSED, "a", [TASK], "n1"), agent("b", ok("b"), node_id="n2"))
    response = house.route()
    assert (response.payload, response.decision_path) == ("b", ("a", "b"))
    assert house.record.ends[0].error.code is ErrorCode.TRANSPORT_ERROR


def test_an_answer_that_is_something_else_is_a_protocol_error() -> None:
    page = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>"

    async def story() -> AgentResponse:
        async with Server([request, page]) as server:
            return await over_http(str(server.origin), task())

    response = run(story())
    assert response.error is not None
    assert response.error.code is ErrorCode.PROTOCOL_ERROR


def test_a_payload_that_is_no_json_never_leaves() -> None:
    response = run(over_http(REFUSED, task(payload=object())))
    assert response.error is not None
    assert response.error.code is ErrorCode.VALIDATION_ERROR


@pytest.mark.parametrize("change", [{"intent": None}, {"metadata": 3}, {"routing": "direct"}])
def test_a_wrong_envelope_is_refused_on_either_side_in_the_same_words(
    change: dict[str, object],
) -> None:
    wrong = task().having(**change)
    here, there = House(a=ok()).route(wrong), run(over_http(REFUSED, wrong))
    assert here.error == there.error
    assert there.error is not None
    assert there.error.details == {"field": next(iter(change))}
    assert there.metadata["trace_id"]


def test_an_answer_with_a_number_that_json_has_not_is_an_error_and_no_null() -> None:
    house = House(a=ok({"score": float("nan")}))
    response = elsewhere(house, lambda url: over_http(url, task()))
    assert response.error is not None
    assert response.error.code is ErrorCode.INTERNAL_AGENT_ERROR
    assert "neither NaN nor infinities" in response.error.message
    assert (response.payload, response.decision_path) == (None, ("a",))


def test_a_path_before_the_route_is_kept_and_the_key_is_sent() -> None:
    ok_body = b'{"status":"success","payload":1}'
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(ok_body), ok_body)

    async def story() -> bytes:
        async with Server([request, answer]) as server:
            line = Line(key="hunter2")
            assert "hunter2" not in repr(line)
            response = await over_http(f"{server.origin}/agents/", task(), line)
            assert response.payload == 1
            return server.peers[0].requests[0]

    sent = run(story())
    assert sent.startswith(b"POST /agents/route HTTP/1.1\r\n")
    assert b"authorization: Bearer hunter2\r\n" in sent


def test_a_caller_that_leaves_cancels_the_agent_over_there() -> None:
    async def story() -> list[str]:
        told: list[str] = []
        begun, ended = asyncio.Event(), asyncio.Event()

        async def hangs(envelope: IntentEnvelope) -> AgentResponse:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                told.append("cancelled")
                ended.set()
            raise AssertionError

        house = House(a=hangs)
        async with AgentServer(Router(house.registry)) as server:
            asking = asyncio.create_task(over_http(server.url, task()))
            await begun.wait()
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            await ended.wait()
        return told

    assert run(story()) == ["cancelled"]


class Panic(BaseException):
    """What extensions written in Rust raise, for one."""


@pytest.mark.parametrize(
    ("problem", "code", "said"),
    [
        (asyncio.CancelledError(), ErrorCode.WORKFLOW_ABORTED, "cancelled"),
        (Panic("at the disco"), ErrorCode.TRANSPORT_ERROR, "closed the connection"),
    ],
)
def test_a_client_hears_of_an_agent_that_ends_in_what_is_no_failure(
    problem: BaseException, code: ErrorCode, said: str
) -> None:
    house = House(a=later(raises(problem)), b=ok("never asked"))
    line = Line(timeout=1)
    response = elsewhere(house, lambda url: over_http(url, task(), line))
    assert response.error is not None
    assert response.error.code is code
    assert said in response.error.message
    assert house.calls == ["a"]
