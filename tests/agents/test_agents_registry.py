"""Registering: what is refused, what is matched, and many threads at once."""

from __future__ import annotations

import threading

import pytest

from tests.agents.rig import TASK, agent, fails, ok, run, task
from understudy.agents import Agent, AgentRegistry, AgentResponse, Capability, Intent, Router
from understudy.agents.registry import REMEMBERED


def test_a_name_is_given_once() -> None:
    registry = AgentRegistry([agent("a")])
    with pytest.raises(ValueError, match="already an agent named 'a'"):
        registry.register(agent("a"))


def test_an_agent_without_a_capability_is_refused() -> None:
    with pytest.raises(ValueError, match="agent 'a' has no capability"):
        AgentRegistry().register(Agent("a", ok()))


@pytest.mark.parametrize("name", ["", None, 3])
def test_an_agent_needs_a_name(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        Agent(name, ok(), [TASK])


def test_an_agent_needs_something_to_call() -> None:
    with pytest.raises(TypeError, match="something to call"):
        Agent("a", "not callable", [TASK])  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "@1.0", "sum@", "@"])
def test_a_capability_needs_a_name_and_a_version(text: str) -> None:
    with pytest.raises(ValueError, match="a capability needs a name and a version"):
        Capability.of(text)


def test_one_text_is_one_capability_not_one_per_letter() -> None:
    assert Agent("a", ok(), "sum").capabilities == (Capability("sum", "1.0"),)


def test_the_decorator_registers_and_leaves_the_function_as_it_is() -> None:
    registry = AgentRegistry()

    @registry.agent("a", capabilities=["sum@2.0"], node_priority=5, node_id="n")
    def add(envelope: object) -> AgentResponse:
        return AgentResponse.success("added")

    assert add(None).payload == "added"
    (registered,) = registry.agents
    assert registered.rank == (True, 5, "a")
    assert "a" in registry
    assert repr(registered) == "<Agent a n 5 sum@2.0>"


def test_who_is_gone_is_not_asked_and_gone_twice_is_an_error() -> None:
    registry = AgentRegistry([agent("a", fails()), agent("b")])
    registry.unregister("a")
    assert run(Router(registry).route(task())).decision_path == ("b",)
    with pytest.raises(KeyError, match="no agent named 'a'; there are: b"):
        registry.unregister("a")


def test_line_ups_are_not_remembered_without_end() -> None:
    registry = AgentRegistry([agent("a")])
    for n in range(REMEMBERED * 2):
        registry.lineup(Intent(f"unheard of {n}"))
    assert len(registry._roster.lineups) <= REMEMBERED
    assert run(Router(registry).route(task())).ok


def test_registering_while_somebody_looks_for_candidates_disturbs_nobody() -> None:
    registry = AgentRegistry()

    class Meddling(Capability, frozen=True):
        def covers(self, name: str, version: str) -> bool:
            registry.register(agent(f"new-{len(registry.agents)}"))
            return True

    registry.register(Agent("a", ok(), [Meddling("x")]))
    registry.register(agent("b"))
    assert [each.name for each in registry.candidates(task().intent)] == ["a", "b"]
    assert "new-2" in registry


def test_registering_from_many_threads_while_others_route_breaks_nothing() -> None:
    registry = AgentRegistry([agent("a", fails()), agent("zz")])
    router = Router(registry)
    wrong: list[object] = []

    def registers(thread: int) -> None:
        for n in range(50):
            registry.register(agent(f"m-{thread}-{n}", fails()))

    def routes() -> None:
        for _ in range(50):
            response = router.route_sync(task())
            path = response.decision_path
            if not response.ok or list(path) != sorted(path) or path[-1] != "zz":
                wrong.append(response)

    threads = [threading.Thread(target=registers, args=(n,)) for n in range(4)]
    threads += [threading.Thread(target=routes) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(registry.agents) == 202


@pytest.mark.parametrize("wrong", [42, None, ("task", "1.0")])
def test_what_is_no_capability_is_refused_at_once_and_named(wrong: object) -> None:
    with pytest.raises(TypeError, match=r"agent 'bad': a capability is a text or Capability, not"):
        Agent("bad", ok(), [wrong])  # type: ignore[list-item]


def test_a_capability_is_made_of_texts() -> None:
    with pytest.raises(TypeError, match="a capability's name and version are texts, not 3 and"):
        Capability(3)  # type: ignore[arg-type]
