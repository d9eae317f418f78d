"""`--set health.threshold=3`: what is to be different, checked by the rows a scenario has."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from understudy.core.health import Cooldown
from understudy.core.policy import POLICIES, Policy
from understudy.core.words import meant_or_known
from understudy.gateway.keys import HEALTH, NAMED, POLICY
from understudy.gateway.kinds import one_of
from understudy.observe.journal_lines import NUMBERS, Rules, Settings, cooldown_of, policy_of
from understudy.rehearse import keys
from understudy.rehearse.scenario_file import InvalidScenario, read_setting

TABLES = {
    "policy": {key.name: key for key in POLICY},
    "health": {key.name: key for key in HEALTH},
    "gateway": {key.name: key for key in keys.SCENARIO if key.name == "timeout"},
}
NAMES = one_of(*NAMED)


@dataclass(frozen=True, slots=True)
class Changes:
    """What is different in a replay. Without any, everything is as it was."""

    settings: tuple[str, ...] = ()  # as they were written
    policy: str = ""  # the name of another table
    tables: dict[str, dict[str, object]] = field(default_factory=dict)

    def cooldown(self, then: Settings) -> Cooldown:
        return replace(cooldown_of(then.cooldown), **self.tables.get("health", {}))  # type: ignore[arg-type]

    def timeout(self, then: Settings) -> float:
        given = self.tables.get("gateway", {}).get("timeout")
        if given is not None:
            return float(str(given))
        return math.inf if then.timeout is None else then.timeout

    def rules(self, then: Rules) -> Policy:
        """The policy as it was, but for what is different. Its own numbers stay."""
        policy = policy_of(then)
        if self.policy and self.policy != policy.name:
            known, other = POLICIES.get(policy.name, policy), POLICIES[self.policy]
            own = {
                n: getattr(policy, n) for n in NUMBERS if getattr(policy, n) != getattr(known, n)
            }
            policy = replace(other, **own)
        return replace(policy, **self.tables.get("policy", {}))  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return bool(self.settings)


def read_changes(settings: Iterable[str]) -> Changes:
    """Raises InvalidScenario naming every wrong key and the nearest right one."""
    given, problems = tuple(settings), list[str]()
    name, tables = "", dict[str, dict[str, object]]()
    for setting in given:
        for section, value in read_setting(setting).items():
            if section == "policy" and isinstance(value, str):
                name = value
                if not NAMES.fits(value):
                    problems.append(f"policy: is {value!r}; expected {NAMES.words}")
            elif section in TABLES and isinstance(value, dict):
                tables.setdefault(section, {}).update(value)
                problems += _problems(section, value)
            else:
                problems.append(f"{section}: unknown setting{meant_or_known(section, TABLES)}")
    if problems:
        raise InvalidScenario(problems)
    return Changes(given, name, tables)


def _problems(section: str, table: dict[str, object]) -> list[str]:
    rows, found = TABLES[section], list[str]()
    for name, value in table.items():
        if name not in rows:
            found.append(f"{section}.{name}: unknown key{meant_or_known(name, rows)}")
        elif not rows[name].kind.fits(value):
            found.append(f"{section}.{name}: is {value!r}; expected {rows[name].kind.words}")
    return found
