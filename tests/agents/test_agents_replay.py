"""A record is played again: the same events, or where they part."""

from __future__ import annotations

import pytest

from tests.agents.rig import House, agent, fails, gives, later, ok, raises, task
from understudy.agents import AgentResponse, ErrorCode, ErrorInfo, read_record, replay, write

HOUSES = [
    House(a=fails(), b=ok({"text": "b"}), c=ok()),
    House(a=raises(ValueError("x")), b=gives(None), c=fails("last")),
    House(agent("far", ok("far"), node_id="n", node_priority=0), near=fails()),
    House(a=later(ok())),
    House(),
]


@pytest.mark.parametrize("house", HOUSES)
@pytest.mark.parametrize("strategy", ["fallback", "direct", "broadcast", "fancy", "parallel", ""])
def test_a_record_replays_to_the_same_events(house: House, strategy: str) -> None:
    house.route(task(strategy))
    record = house.recorder.records[-1]
    again = replay(record)
    assert again.same, str(again)
    assert again.record.response.payload == record.response.payload  # type: ignore[union-attr]
    assert str(again) == f"the same {len(record.events)} events"


@pytest.mark.parametrize("house", HOUSES)
def test_a_record_from_a_file_replays_too_and_asks_nobody(house: House) -> None:
    house.route()
    record = read_record(write(house.recorder.records[-1]))
    asked = len(house.calls)
    assert replay(record).same
    assert len(house.calls) == asked


def test_a_record_replays_against_the_agents_of_today() -> None:
    house = House(a=fails(), b=later(ok()))
    house.route()
    again = replay(house.record, house.registry)
    assert again.same
    assert house.calls == ["a", "b", "a", "b"]


def test_agents_that_changed_are_found_at_the_event_where_it_shows() -> None:
    house = House(a=fails("no"), b=ok())
    house.route()
    recovered = House(a=ok(), b=ok())
    again = replay(house.record, recovered.registry)
    assert not again.same
    assert str(again) == "recorded: 3 END a error AGENT_ERROR: no; replayed: 3 END a success"


def test_an_agent_that_came_later_is_found() -> None:
    house = House(b=fails("no"))
    house.route()
    grown = House(b=fails("no"), c=ok())
    difference = replay(house.record, grown.registry).difference
    assert str(difference) == (
        "recorded: 4 DECISION b all of 1 failed; replayed: 4 TRIGGERED b -> c"
    )


def test_other_outcomes_can_be_tried_out() -> None:
    house = House(a=ok(), b=ok(), c=ok())
    house.route()
    outage = AgentResponse.failure(ErrorInfo(ErrorCode.AGENT_UNAVAILABLE, "down"))
    again = replay(house.record, {"a": outage, "b": outage, "c": AgentResponse.success("c")})
    assert again.record.path == ("a", "b", "c")
    assert not again.same


def test_what_nobody_knows_is_a_failure() -> None:
    house = House(a=ok(), b=ok())
    house.route()
    again = replay(house.record, {})
    assert again.record.path == ("a", "b")
    assert again.record.response is not None
    assert again.record.response.error is not None
    assert again.record.response.error.code is ErrorCode.AGENT_UNAVAILABLE


def test_a_race_cannot_be_replayed() -> None:
    house = House(a=ok(), require_determinism=False)
    house.route(task("parallel"))
    with pytest.raises(ValueError, match="ran in parallel"):
        replay(house.record)


def test_a_cancelled_route_cannot_be_replayed() -> None:
    house = House(a=raises(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        house.route()
    with pytest.raises(ValueError, match="was cancelled"):
        replay(house.record)
