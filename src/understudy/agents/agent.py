"""Somebody who can be asked: a name, what it can do, where it lives, and a function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator

from understudy.agents.capability import Capability
from understudy.agents.envelope import IntentEnvelope
from understudy.agents.response import AgentResponse
from understudy.core.stage import Candidate
from understudy.core.target import Target

Handle = Callable[[IntentEnvelope], AgentResponse | Awaitable[AgentResponse]]
Capable = str | Capability

PROVIDER = "agents"  # what stands before the slash in a candidate's key


class Agent:
    """A callable, sync or async, with a name and capabilities. A `node_id` makes it remote."""

    def __init__(
        self,
        name: str,
        handle: Handle,
        capabilities: Iterable[Capable] = (),
        *,
        node_id: str | None = None,
        node_priority: int = 100,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise ValueError(f"an agent's name is a text of at least one character, not {name!r}")
        if not callable(handle):
            raise TypeError(f"agent {name!r} needs something to call, not {handle!r}")
        if not isinstance(node_priority, int):
            raise TypeError(f"agent {name!r}: node_priority is an int, not {node_priority!r}")
        self.name = name
        self.handle = handle
        self.capabilities = tuple(_capabilities(name, capabilities))
        self.node_id = node_id or None
        self.node_priority = node_priority
        self.candidate = Candidate(Target(PROVIDER, name))  # as the walk sees it

    def __repr__(self) -> str:
        where = self.node_id or "local"
        can = ", ".join(map(str, self.capabilities))
        return f"<Agent {self.name} {where} {self.node_priority} {can}>"

    @property
    def rank(self) -> tuple[bool, int, str]:
        """Local before remote, then the lower priority, then the name by code point."""
        return self.node_id is not None, self.node_priority, self.name

    def can(self, name: str, version: str) -> bool:
        return any(capability.covers(name, version) for capability in self.capabilities)


def _capabilities(name: str, given: Iterable[Capable]) -> Iterator[Capability]:
    if isinstance(given, str):  # iterating it would make an agent for every letter
        given = (given,)
    for each in given:
        if not isinstance(each, (str, Capability)):
            raise TypeError(f"agent {name!r}: a capability is a text or Capability, not {each!r}")
        yield Capability.of(each) if isinstance(each, str) else each
