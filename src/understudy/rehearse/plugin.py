"""A pytest plugin: `@pytest.mark.understudy("p/a: 503 503; p/b: 'hello'")` and its fixture.

The fixture is a registry on scripted fakes with a clock that is moved by hand: a minute of
silence takes no time, and nothing leaves the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from understudy.core.health import Cooldown
from understudy.core.policy import FAIL_FAST, POLICIES, Policy
from understudy.messages.response import Response
from understudy.model import Model
from understudy.registry import Registry
from understudy.rehearse.cues import scripted
from understudy.rehearse.script import Clause, parse
from understudy.rehearse.story import Story
from understudy.testing import Fake, ManualClock

MARK = (
    "understudy(script, policy='fail_fast', cooldown=Cooldown()): scripted providers for the "
    "`understudy` fixture, e.g. \"p/a: 503 503; p/b: 'hello'\""
)


class Rehearsal:
    """What the fixture gives: a registry on fakes, the clock, and the story so far."""

    def __init__(
        self,
        clauses: tuple[Clause, ...] = (),
        policy: Policy = FAIL_FAST,
        cooldown: Cooldown = Cooldown(),  # noqa: B008 - frozen
    ) -> None:
        self.clock = ManualClock()
        self.story = Story()
        names = dict.fromkeys(clause.target.partition("/")[0] for clause in clauses)
        self.fakes = {name: Fake(name, clock=self.clock) for name in names}
        self.targets = scripted(clauses, self.fakes)
        self.registry = Registry(
            env={},
            policy=policy,
            cooldown=cooldown,
            clock=self.clock,
            observer=self.story.append,
        )
        for fake in self.fakes.values():
            self.registry.register_provider(fake)

    @property
    def spec(self) -> str:
        """The chain of all scripted targets, in the order of the script."""
        return ", ".join(self.targets)

    @property
    def model(self) -> Model:
        """That chain, ready to be asked."""
        return self.registry.parse(self.spec)

    def ask(self, prompt: str = "hello", **options: Any) -> Response:
        """One request to the chain, for tests that need no more than that."""
        return self.model.generate_sync(prompt, **options)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARK)


@pytest.fixture
def understudy(request: pytest.FixtureRequest) -> Iterator[Rehearsal]:
    """A registry on scripted fakes; the script is the test's `understudy` mark."""
    mark = request.node.get_closest_marker("understudy")
    rehearsal = _made(*mark.args, **mark.kwargs) if mark else Rehearsal()
    yield rehearsal
    rehearsal.registry.close()


def _made(
    script: str, policy: str | Policy = FAIL_FAST, cooldown: Cooldown | None = None
) -> Rehearsal:
    if isinstance(policy, str):
        if policy not in POLICIES:
            known = ", ".join(sorted(POLICIES))
            raise ValueError(f"unknown policy {policy!r}; known: {known}")
        policy = POLICIES[policy]
    return Rehearsal(parse(script), policy, cooldown or Cooldown())
