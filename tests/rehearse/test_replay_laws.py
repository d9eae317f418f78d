"""The same settings decide the same: crowds at a real gateway, and any simulated history."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from tests.rehearse.paper import Paper, again, crowd, froze, read, settings, stories
from tests.rig import run
from understudy import AVAILABILITY, FAIL_FAST, Cooldown, Fault, Policy
from understudy.core.target import Attempt
from understudy.core.walk import Try
from understudy.observe import journal_lines as lines
from understudy.observe.journal_lines import Chain, Done, Member
from understudy.rehearse.chance import Chance
from understudy.rehearse.flight import Flight
from understudy.rehearse.replay_report import compare, text
from understudy.rehearse.replay_settings import Changes
from understudy.rehearse.scenario import Limit, Nature, Outage, Role, Scenario, Traffic
from understudy.rehearse.simulator import Simulator


def history(path: Path, seed: int, requests: int, journal: str = "") -> int:
    """A crowd's journal; how often upstreams were asked.

    Benches here last a seventh of a second. If the process stood still for about as long in the
    midst of a decision, its lines cannot tell (ADR 17): then the crowd comes once more.
    """
    asked = run(crowd(path, seed, requests, journal))
    if froze(read(path)):
        for file in path.parent.iterdir():
            file.unlink()
        asked = run(crowd(path, seed, requests, journal))
    return asked


@pytest.mark.parametrize("seed", [1, 2])
def test_what_a_crowd_met_at_a_real_gateway_is_decided_again_as_it_was(
    tmp_path: Path, seed: int
) -> None:
    path = tmp_path / "journal.jsonl"
    asked = history(path, seed, 400)
    found = again(path)
    assert text(found).endswith("every request is decided as it was")
    assert found.before == found.after
    assert found.before.requests > 250
    assert found.before.benches > 10
    assert found.sure["known"] == found.before.attempts
    # A caller may leave before its request has reached anybody.
    assert 0 <= found.before.attempts - asked < 30


def test_a_journal_whose_beginning_is_gone_is_decided_again_from_where_it_begins(
    tmp_path: Path,
) -> None:
    path = tmp_path / "journal.jsonl"
    history(path, 3, 640, "max_bytes = 65536\nkeep = 1\n")
    library = read(path)
    assert library.files == 2
    [only] = library.runs
    assert only.begins > 0
    found = compare(library, Changes())
    assert stories(found) == []
    assert found.before == found.after
    assert any("began before the journal does" in note for note in found.notes)


class Clerk:
    """Writes a simulated history down as a gateway would."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.simulator = Simulator(scenario, seed=seed, watch=self)
        told = settings(scenario.policy, scenario.cooldown, scenario.timeout)
        members = tuple(
            Member(a.role.key, a.candidate.labels, a.role.window) for a in self.simulator.actors
        )
        self.paper = Paper(told=told, entries=[Chain(1, 0, "all", members)])
        self.stories: dict[Flight, list[Attempt]] = defaultdict(list)
        self.names: dict[Flight, str] = {}
        health = self.simulator.health
        health.listen(lambda change: self.paper.entries.append(lines.turned(change, health, 0.0)))

    def tried(self, flight: Flight, step: Try, now: float) -> None: ...
    def told(self, flight: Flight, what: object, now: float) -> None: ...

    def attempt(self, flight: Flight, attempt: Attempt) -> None:
        self.stories[flight].append(attempt)

    def ended(self, flight: Flight, outcome: str, error: Exception | None) -> None:
        attempts = tuple(lines.tried(attempt, 0.0) for attempt in self.stories[flight])
        word = "ok" if outcome == "answered" else outcome
        seconds = self.simulator.clock() - flight.arrived
        self.paper.entries.append(
            Done(f"{flight.arrived}", flight.arrived, 1, flight.stream, word, 0, seconds, attempts)
        )


FAULTS = [fault for fault in Fault if fault is not Fault.CLIENT_DISCONNECT]
spread = st.builds(
    lambda median: Chance("lognormal", median, 0.5), st.sampled_from([0.05, 0.3, 1.0])
)


@st.composite
def roles(draw: st.DrawFn) -> tuple[Role, ...]:
    found = []
    for n in range(draw(st.integers(1, 3))):
        start = draw(st.floats(0.0, 20.0))
        down = Outage(start, start + draw(st.floats(1.0, 20.0)), draw(st.sampled_from(FAULTS)))
        errors = draw(st.dictionaries(st.sampled_from(FAULTS), st.floats(0.0, 0.12), max_size=4))
        found.append(
            Role(
                f"p{n}/m",
                Nature(draw(spread), latency=draw(spread), fails_in=draw(spread)),
                (down,) if draw(st.booleans()) else (),
                tuple(errors.items()),
                draw(
                    st.none() | st.builds(Limit, st.floats(0.5, 5.0), st.just(2.0), st.booleans())
                ),
                credentials=draw(st.integers(1, 3)),
                window=draw(st.sampled_from([None, 1000, 2000])),
            )
        )
    return tuple(found)


policies = st.builds(
    lambda base, retries, on, wait: Policy(
        base.name,
        base.rules,
        transient_retries=retries,
        advance_on_permanent=on,
        max_wait=wait,
        budget_ratio=base.budget_ratio,
        degrade_seconds=7.0,
        session_seconds=11.0,
    ),
    st.sampled_from([AVAILABILITY, FAIL_FAST]),
    st.integers(0, 3),
    st.booleans(),
    st.sampled_from([0.0, 2.0]),
)
cooldowns = st.builds(
    Cooldown, st.integers(1, 4), st.floats(0.3, 6.0), st.just(2.0), st.just(30.0), st.booleans()
)
scenarios = st.builds(
    Scenario,
    st.just("any"),
    roles(),
    st.builds(
        Traffic,
        rate=st.sampled_from([2.0, 8.0]),
        streams=st.sampled_from([0.0, 0.5]),
        bad=st.sampled_from([0.0, 0.1]),
        leaves=st.sampled_from([0.0, 0.2]),
        leaves_after=spread,
    ),
    st.just(30.0),
    st.sampled_from([2.0, 20.0, math.inf]),
    policies,
    cooldowns,
)


@given(scenario=scenarios, seed=st.integers(0, 9))
@hypothesis(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_simulated_history_is_decided_again_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, scenario: Scenario, seed: int
) -> None:
    clerk = Clerk(scenario, seed)
    clerk.simulator.run()
    found = again(clerk.paper.at(tmp_path_factory.mktemp("any")))
    assert stories(found) == []
    assert found.before == found.after
    assert found.sure["inferred"] == found.sure["assumed"] == 0
