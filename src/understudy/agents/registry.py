"""Who is there. Registering replaces the roster, so a route keeps the one it started with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeVar

import msgspec

from understudy.agents.agent import Agent, Capable, Handle
from understudy.agents.envelope import Intent
from understudy.core.stage import Candidate

H = TypeVar("H", bound=Handle)

REMEMBERED = 1024  # line-ups kept; intents come from outside and have no end


class Ranked(msgspec.Struct, frozen=True):
    """Where an agent stood in the order, for the record."""

    name: str
    node_id: str | None = None
    node_priority: int = 100


@dataclass(frozen=True, slots=True)
class Lineup:
    """The candidates for one intent, in order. Worked out once, then shared by its routes."""

    agents: dict[str, Agent]
    chain: tuple[Candidate, ...]
    ranks: tuple[Ranked, ...]

    @classmethod
    def of(cls, agents: Iterable[Agent]) -> Lineup:
        ordered = sorted(agents, key=lambda agent: agent.rank)
        return cls(
            {agent.name: agent for agent in ordered},
            tuple(agent.candidate for agent in ordered),
            tuple(Ranked(a.name, a.node_id, a.node_priority) for a in ordered),
        )


@dataclass(frozen=True, slots=True)
class _Roster:
    """All agents at one moment, never changed; the line-ups are only a memory of the answers."""

    agents: dict[str, Agent] = field(default_factory=dict)
    lineups: dict[tuple[str, str], Lineup] = field(default_factory=dict)


class AgentRegistry:
    """Names to agents. Safe to register in from many threads while others route."""

    def __init__(self, agents: Iterable[Agent] = ()) -> None:
        self._roster = _Roster()
        self._lock = Lock()
        for agent in agents:
            self.register(agent)

    def __contains__(self, name: str) -> bool:
        return name in self._roster.agents

    @property
    def agents(self) -> tuple[Agent, ...]:
        """Everybody, as of now."""
        return tuple(self._roster.agents.values())

    def register(self, agent: Agent) -> Agent:
        if not agent.capabilities:
            raise ValueError(f"agent {agent.name!r} has no capability, so no intent can reach it")
        with self._lock:
            agents = self._roster.agents
            if agent.name in agents:
                raise ValueError(f"there is already an agent named {agent.name!r}")
            self._roster = _Roster({**agents, agent.name: agent})
        return agent

    def unregister(self, name: str) -> Agent:
        """Routes under way still know it."""
        with self._lock:
            agents = dict(self._roster.agents)
            if name not in agents:
                raise KeyError(f"no agent named {name!r}; there are: {', '.join(sorted(agents))}")
            agent = agents.pop(name)
            self._roster = _Roster(agents)
        return agent

    def agent(
        self,
        name: str,
        *,
        capabilities: Iterable[Capable],
        node_id: str | None = None,
        node_priority: int = 100,
    ) -> Callable[[H], H]:
        """Decorates a function and leaves it as it is."""

        def decorate(handle: H) -> H:
            self.register(
                Agent(name, handle, capabilities, node_id=node_id, node_priority=node_priority)
            )
            return handle

        return decorate

    def candidates(self, intent: Intent) -> tuple[Agent, ...]:
        """Who would be asked, in order."""
        return tuple(self.lineup(intent).agents.values())

    def lineup(self, intent: Intent) -> Lineup:
        roster = self._roster
        key = (intent.name, intent.version)
        lineup = roster.lineups.get(key)
        if lineup is None:
            lineup = Lineup.of(agent for agent in roster.agents.values() if agent.can(*key))
            if len(roster.lineups) >= REMEMBERED:
                roster.lineups.clear()
            roster.lineups[key] = lineup
        return lineup
