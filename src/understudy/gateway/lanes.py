"""Chains as the dashboard draws them: every target with its state, and who is asked first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from understudy.core.errors import SpecError
from understudy.core.faults import Fault
from understudy.core.health import Bench, State
from understudy.core.stage import Candidate, obstacle
from understudy.driver import Cast
from understudy.gateway.house import House

States = Mapping[str, State]


@dataclass(frozen=True, slots=True)
class Standing:
    """One target at one moment. Equal standings look alike, whatever the clock says."""

    target: str
    state: str  # a word of the legend: see `_word`
    tried: bool  # would a request try it now
    bench: Bench | None = None  # that matters most: its own, or a credential's
    failures: int = 0
    credentials_out: int = 0
    credentials: int = 1


@dataclass(frozen=True, slots=True)
class Lane:
    """One chain."""

    name: str  # an alias, or a spec as clients wrote it
    is_alias: bool
    policy: str
    standings: tuple[Standing, ...]

    @property
    def head(self) -> str:
        """Who would be called first; "" if nobody."""
        return next((s.target for s in self.standings if s.tried), "")


def lanes(house: House, named: Iterable[str], states: States) -> tuple[Lane, ...]:
    """The aliases in their order, then what else clients named lately."""
    aliases = house.registry.aliases
    others = [name for name in named if name not in aliases]
    found = (_lane(house, name, states) for name in (*aliases, *others))
    return tuple(lane for lane in found if lane is not None)


def _lane(house: House, name: str, states: States) -> Lane | None:
    try:
        cast = house.cast(name)
    except SpecError:  # named before a reload
        return None
    standings = tuple(_standing(candidate, cast, states) for candidate in cast.chain)
    return Lane(name, name in house.registry.aliases, cast.stage.policy.name, standings)


def _standing(candidate: Candidate, cast: Cast, states: States) -> Standing:
    tried = obstacle(candidate, cast.stage) is None
    if states.keys().isdisjoint(candidate.keys):
        return Standing(candidate.key, "healthy", tried, credentials=len(candidate.accounts))
    now = cast.stage.clock()
    own = states.get(candidate.key)
    out = [bench for a in candidate.accounts if (bench := _out(a.key, a.share, states, now))]
    soonest = min(out, key=lambda bench: bench.until, default=None)
    mine = None if own is None else own.bench
    serious = mine if mine is not None and (mine.until > now or soonest is None) else soonest
    return Standing(
        candidate.key,
        _word(own, out, len(candidate.accounts), now),
        tried,
        serious,
        0 if own is None else own.failures,
        len(out),
        len(candidate.accounts),
    )


def _out(key: str, share: str, states: States, now: float) -> Bench | None:
    """What keeps a credential out: of everything, or of this target."""
    for name in (key, share):
        state = states.get(name)
        if state is not None and state.bench is not None and state.bench.until > now:
            return state.bench
    return None


def _word(own: State | None, out: list[Bench], accounts: int, now: float) -> str:
    """The first that holds."""
    bench = None if own is None else own.bench
    if bench is not None and bench.until > now:
        return "benched"
    if own is not None and own.probing:
        return "probing"
    if out:
        broke = len(out) == accounts and all(b.fault is Fault.OUT_OF_CREDITS for b in out)
        return "out_of_credits" if broke else "degraded"
    if bench is not None:
        return "unproven"
    return "healthy" if own is None or not own.failures else "counting"
