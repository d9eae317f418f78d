"""Every order of registration, every script, up to five agents: the router against six lines."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agents.rig import House, agent, error, gives, later, run, task
from tests.rig import until
from understudy.agents import Agent, AgentResponse, ErrorCode, ErrorInfo, IntentEnvelope, replay
from understudy.agents.agent import Handle

SCRIPT = st.sampled_from(["ok", "error", "raise", "garbage", "hang"])


@dataclass(frozen=True)
class Role:
    name: str
    node_id: str | None
    priority: int
    does: str
    later: bool


ROLES = st.lists(
    st.builds(
        Role,
        st.text("abAB\u00e9\U0001f600", min_size=1, max_size=2),
        st.sampled_from([None, "", "n1", "n2"]),
        st.integers(-1, 2),
        SCRIPT,
        st.booleans(),
    ),
    max_size=5,
    unique_by=lambda role: role.name,
).flatmap(st.permutations)


def oracle(roles: list[Role]) -> tuple[list[str], str, str | None]:
    """Who is asked, how it ends, and what is said then."""
    path, said = [], "no agent can do task@1.0"
    for role in sorted(roles, key=lambda r: (bool(r.node_id), r.priority, r.name)):
        path.append(role.name)
        if role.does in ("ok", "hang"):
            return path, role.does, None
        said = MESSAGES[role.does].format(role.name)
    return path, "error", said


MESSAGES = {
    "error": "{} said no",
    "raise": "{} fell over",
    "garbage": "the agent returned int, not an AgentResponse",
}


def actor(role: Role, hanging: asyncio.Event) -> Agent:
    def falls(envelope: IntentEnvelope) -> AgentResponse:
        raise RuntimeError(f"{role.name} fell over")

    async def hangs(envelope: IntentEnvelope) -> AgentResponse:
        hanging.set()
        await asyncio.Event().wait()
        raise AssertionError

    says_no = AgentResponse.failure(error(f"{role.name} said no", ErrorCode.RATE_LIMIT))
    handles: dict[str, Handle] = {
        "ok": gives(AgentResponse.success(role.name)),
        "error": gives(says_no),
        "raise": falls,
        "garbage": gives(7),
        "hang": hangs,
    }
    handle = handles[role.does]
    return agent(
        role.name,
        later(handle) if role.later else handle,
        node_id=role.node_id,
        node_priority=role.priority,
    )


async def played(roles: list[Role]) -> tuple[House, AgentResponse | None]:
    """The house after one route; who hangs is cancelled by the caller."""
    hanging = asyncio.Event()
    house = House(*(actor(role, hanging) for role in roles))
    route = asyncio.create_task(house.router.route(task()))
    await until(lambda: route.done() or hanging.is_set())
    route.cancel()
    (response,) = await asyncio.gather(route, return_exceptions=True)
    return house, response if isinstance(response, AgentResponse) else None


@settings(max_examples=300)
@given(ROLES)
def test_the_router_agrees_with_the_oracle(roles: list[Role]) -> None:
    path, ends, said = oracle(roles)
    house, response = run(played(roles))
    assert house.calls == path
    assert list(house.span.path) == path
    assert house.span.attempts == len(path)
    assert house.span.status == ("ok" if ends == "ok" else "error")
    if ends == "hang":
        assert response is None
        return
    assert response is not None
    assert list(response.decision_path) == path
    assert response.status == ("success" if ends == "ok" else "error")
    assert response.payload == (path[-1] if ends == "ok" else None)
    assert (response.error.message if response.error else None) == said
    assert replay(house.record).same


@settings(max_examples=100)
@given(ROLES, st.booleans())
def test_a_broadcast_asks_everybody_in_the_same_order(roles: list[Role], last: bool) -> None:
    roles = [role for role in roles if role.does != "hang"]
    ordered = sorted(roles, key=lambda r: (bool(r.node_id), r.priority, r.name))
    wins = [role.name for role in ordered if role.does == "ok"]
    house = House(*(actor(role, asyncio.Event()) for role in roles))
    response = house.route(task("broadcast"))
    assert house.calls == [role.name for role in ordered]
    assert response.payload == (wins[-1] if wins else None)


@settings(max_examples=100)
@given(ROLES)
def test_blocking_callers_and_awaiting_callers_see_the_same(roles: list[Role]) -> None:
    roles = [role for role in roles if role.does != "hang"]
    house = House(*(actor(role, asyncio.Event()) for role in roles))
    envelope = task()
    house.route(envelope)
    house.router.route_sync(envelope)
    house.router.close()
    awaited, blocked = house.recorder.records
    assert awaited.events == blocked.events


def test_the_oracle_can_be_wrong() -> None:
    """The check above is a check: another order is noticed."""
    roles = [Role("a", None, 0, "ok", False), Role("b", None, -1, "ok", False)]
    house, _ = run(played(roles))
    assert house.calls != [roles[0].name]


def test_the_errors_of_scripts_are_what_they_should_be() -> None:
    roles = [Role("a", None, 0, "garbage", True), Role("b", None, 1, "error", True)]
    _, response = run(played(roles))
    assert response is not None
    assert response.error == ErrorInfo(ErrorCode.RATE_LIMIT, "b said no")
