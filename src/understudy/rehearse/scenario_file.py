"""A scenario file, read and checked. Every problem is reported at once, with its path.

Settings can be overlaid before reading (`health.threshold=3`), in TOML's own words, so that a
sweep is checked by the same rules as a file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from understudy.core.errors import UnderstudyError
from understudy.core.faults import Fault
from understudy.core.health import Cooldown
from understudy.core.policy import AVAILABILITY, POLICIES
from understudy.core.words import meant_or_known
from understudy.gateway.keys import HEALTH, POLICY, Key
from understudy.providers.base import Patience
from understudy.rehearse import keys
from understudy.rehearse.chance import KINDS, Chance, constant
from understudy.rehearse.scenario import Limit, Nature, Outage, Role, Scenario, Traffic

Table = dict[str, object]


class InvalidScenario(UnderstudyError, ValueError):
    """A scenario that cannot be played; `problems` lists every reason, path first."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def read_scenario(text: str, settings: Iterable[str] = (), *, name: str = "") -> Scenario:
    """Raises InvalidScenario with all problems. `settings` are `key=value`, laid over the file."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidScenario([f"the file is not TOML: {error}"]) from None
    for setting in settings:
        _overlay(raw, read_setting(setting))
    reader = _Reader()
    scenario = reader.read(raw, name)
    if reader.problems or scenario is None:
        raise InvalidScenario(reader.problems)
    return scenario


def read_setting(setting: str) -> Table:
    """`health.threshold=3` as the table it is in TOML; a bare word is taken for a text."""
    name, equals, value = setting.partition("=")
    if equals and name.strip():
        for form in (value, f'"{value}"'):
            try:
                return tomllib.loads(f"{name} = {form}")
            except tomllib.TOMLDecodeError:
                continue
    raise InvalidScenario([f"{setting!r} is no setting; write for example health.threshold=3"])


def _overlay(table: Table, over: Table) -> None:
    for name, value in over.items():
        below = table.get(name)
        if isinstance(value, dict) and isinstance(below, dict):
            _overlay(below, value)
        else:
            table[name] = value


@dataclass(slots=True)
class _Reader:
    problems: list[str] = field(default_factory=list)

    def read(self, raw: Table, name: str) -> Scenario | None:
        for section in raw:
            if section not in keys.TOP:
                self.wrong(section, f"unknown section{meant_or_known(section, keys.TOP)}")
        head = self.section("scenario", raw.get("scenario", {}), keys.SCENARIO)
        traffic = self._traffic(raw.get("traffic", {}))
        chain = self._targets(raw.get("targets", {}))
        policy = self.section("policy", raw.get("policy", {}), POLICY)
        health = self.section("health", raw.get("health", {}), HEALTH)
        if not chain:
            self.wrong("targets", 'is empty; write for example [targets."p/a"]')
        if self.problems:
            return None
        base = POLICIES[str(head.pop("policy", AVAILABILITY.name))]
        cooldown = Cooldown(**{"probe": base is AVAILABILITY, **health})  # type: ignore[arg-type]
        named = str(head.pop("name", name or "scenario"))
        return Scenario(
            named,
            tuple(chain),
            traffic,
            policy=replace(base, **policy),  # type: ignore[arg-type]
            cooldown=cooldown,
            **head,  # type: ignore[arg-type]
        )

    def section(self, path: str, value: object, rows: tuple[Key, ...]) -> Table:
        """What is given and right."""
        if not isinstance(value, dict):
            self.wrong(path, f"is {value!r}; a table is expected")
            return {}
        known = {key.name: key for key in rows}
        found: Table = {}
        for name, given in value.items():
            if name not in known:
                self.wrong(f"{path}.{name}", f"unknown key{meant_or_known(name, known)}")
            elif known[name].kind.fits(given):
                found[name] = given
            else:
                self.wrong(f"{path}.{name}", f"is {given!r}; expected {known[name].kind.words}")
        return found

    def _traffic(self, value: object) -> Traffic:
        found = self.section("traffic", value, keys.TRAFFIC)
        for name in ("output_tokens", "leaves_after"):
            if name in found:
                found[name] = chance(found[name])
        return Traffic(**found)  # type: ignore[arg-type]

    def _targets(self, value: object) -> list[Role]:
        if not isinstance(value, dict):
            self.wrong("targets", f"is {value!r}; a table is expected")
            return []
        return [self._target(name, table) for name, table in value.items()]

    def _target(self, name: str, value: object) -> Role:
        path = f'targets."{name}"'
        provider, slash, model = name.partition("/")
        if not (provider and slash and model):
            self.wrong(path, "is no target; write provider/model")
        found = self.section(path, value, keys.TARGET)
        nature = {
            key: chance(found.pop(key))
            for key in ("first_content", "tokens_per_second", "latency", "fails_in")
            if key in found
        }
        waits = {
            key: float(str(found.pop(f"{key}_timeout")))
            for key in ("first_byte", "idle", "response")
            if f"{key}_timeout" in found
        }
        outages = found.pop("outages", [])
        assert isinstance(outages, list)
        return Role(
            name,
            Nature(**nature),
            tuple(self._outage(f"{path}.outages[{n}]", row) for n, row in enumerate(outages)),
            self._errors(f"{path}.errors", found.pop("errors", {})),
            self._limit(f"{path}.limit", found.pop("limit", None)),
            Patience(**waits),
            **found,  # type: ignore[arg-type]
        )

    def _outage(self, path: str, value: object) -> Outage:
        found = self.section(path, value, keys.OUTAGE)
        for name in ("start", "seconds"):
            if isinstance(value, dict) and name not in value:
                self.wrong(path, f"{name!r} is missing")
        if "slow" in found and "fault" in found:
            self.wrong(path, "is slow or fails; give one of the two")
        start, length = (float(str(found.get(name, 1.0))) for name in ("start", "seconds"))
        fault = None if "slow" in found else Fault(str(found.get("fault", "transient")))
        return Outage(start, start + length, fault, float(str(found.get("slow", 1.0))))

    def _errors(self, path: str, value: object) -> tuple[tuple[Fault, float], ...]:
        rows = tuple(Key(name, keys.SHARE, "") for name in keys.FAULTS)
        found = self.section(path, value, rows)
        shares = tuple((Fault(name), float(str(share))) for name, share in found.items())
        if sum(share for _, share in shares) > 1:
            self.wrong(path, "add up to more than 1")
        return shares

    def _limit(self, path: str, value: object) -> Limit | None:
        if value is None:
            return None
        found = self.section(path, value, keys.LIMIT)
        if isinstance(value, dict) and "rate" not in value:
            self.wrong(path, "'rate' is missing")
        return Limit(**{"rate": 1.0, **found})  # type: ignore[arg-type]

    def wrong(self, path: str, what: str) -> None:
        self.problems.append(f"{path}: {what}")


def chance(value: object) -> Chance:
    """A checked number or table as a distribution."""
    if not isinstance(value, dict):
        return constant(float(str(value)))
    kind = next(kind for kind, names in KINDS.items() if set(names) == set(value))
    return Chance(kind, *(float(value[name]) for name in KINDS[kind]))
