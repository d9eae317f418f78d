"""A configuration file, read and checked. Every problem is reported at once, with its path.

`${VAR}` in any text reads the environment that is passed in; any other `${` is a mistake, for it
would be sent as it stands. Nothing here opens a file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from understudy.core.errors import UnderstudyError
from understudy.core.words import meant, meant_or_known
from understudy.gateway.keys import (
    GATEWAY,
    HEALTH,
    JOURNAL,
    MODEL,
    POLICY,
    PROVIDER,
    SHARE,
    Key,
)
from understudy.gateway.kinds import Kind

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
SHELL = re.compile(r"(?:^|[\s:=/])\$[A-Z_][A-Z0-9_]{2,}\b")  # what a shell would fill in as well
WORD = 20  # characters; whatever is longer may be a secret in the wrong place
BOM = "\ufeff"  # some editors begin a file with it
TOP = ("gateway", "providers", "aliases", "policy", "health", "journal", "share")


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, where, and what would be right."""

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


class InvalidConfig(UnderstudyError, ValueError):
    """A configuration that cannot be used; `problems` lists every reason."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Config:
    """Checked values by section, defaults filled in. Secrets are within: no repr."""

    gateway: Mapping[str, object] = field(repr=False)
    providers: Mapping[str, Mapping[str, object]] = field(repr=False)
    aliases: Mapping[str, str]
    policy: Mapping[str, object]
    policies: Mapping[str, Mapping[str, object]]  # by alias
    health: Mapping[str, object]
    journal: Mapping[str, object]
    share: Mapping[str, object] = field(repr=False)


def read_config(text: str, env: Mapping[str, str]) -> Config:
    """Raises InvalidConfig with all problems."""
    config, problems = examine(text, env)
    if problems:
        raise InvalidConfig(problems)
    return config


def examine(text: str, env: Mapping[str, str]) -> tuple[Config, list[Problem]]:
    """What can be read, with defaults where it cannot, and every problem."""
    reader = _Reader(env)
    try:
        raw = _parsed(text)
    except tomllib.TOMLDecodeError as error:
        reader.wrong("the file", f"is not TOML: {error}")
        raw = {}
    return reader.read(raw), reader.problems


def unfilled(text: str) -> list[str]:
    """Paths of texts with a `$NAME`, which stays as it is. Of a file that is no TOML, none."""
    try:
        raw = _parsed(text)
    except tomllib.TOMLDecodeError:
        return []
    return [path for path, value in _texts("", raw) if SHELL.search(value)]


def _parsed(text: str) -> dict[str, object]:
    return tomllib.loads(text.removeprefix(BOM))


def _texts(path: str, value: object) -> Iterator[tuple[str, str]]:
    """Every text in a value, and where it stands."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _texts(f"{path}.{name}" if path else name, item)
    elif isinstance(value, list):
        for n, item in enumerate(value):
            yield from _texts(f"{path}[{n}]", item)


@dataclass(slots=True)
class _Reader:
    env: Mapping[str, str]
    problems: list[Problem] = field(default_factory=list)

    def read(self, raw: dict[str, object]) -> Config:
        for name in raw:
            if name not in TOP:
                self.wrong(name, f"unknown section{meant_or_known(name, TOP)}")
        gateway = self.section("gateway", raw.get("gateway", {}), GATEWAY)
        policy, policies = self.policies(raw.get("policy", {}))
        config = Config(
            gateway,
            self.providers(raw.get("providers", {})),
            self.aliases(raw.get("aliases", {})),
            policy,
            policies,
            self.section("health", raw.get("health", {}), HEALTH),
            self.section("journal", raw.get("journal", {}), JOURNAL),
            self.section("share", raw.get("share", {}), SHARE),
        )
        if config.share["limits"] and "url" not in config.share:
            self.wrong("share.limits", "is for hosts that share a server; share.url names it")
        for name in policies:
            if name not in config.aliases:
                self.wrong(
                    f"policy.{name}", f"no such alias{meant_or_known(name, config.aliases)}"
                )
        return config

    def section(self, path: str, value: object, keys: tuple[Key, ...]) -> dict[str, object]:
        """A table checked against its rows; defaults for what is not given."""
        if not isinstance(value, dict):
            self.wrong(path, f"is {_shown(value)}; a table is expected")
            value = {}
        rows = {key.name: key for key in keys}
        found: dict[str, object] = {}
        for name, given in value.items():
            where = f"{path}.{name}"
            if name not in rows:
                self.wrong(where, f"unknown key{meant_or_known(name, rows)}")
                continue
            before = len(self.problems)
            expanded = self.expand(where, given)
            if len(self.problems) > before:
                continue  # a variable that is not set says enough
            if rows[name].kind.fits(expanded):
                found[name] = expanded
            else:
                self.wrong(where, _misfit(given, expanded, rows[name].kind))
        defaults = {key.name: key.default for key in keys if key.default is not None}
        return {**defaults, **found}

    def providers(self, value: object) -> dict[str, dict[str, object]]:
        providers = {}
        for name, table in self.tables("providers", value):
            path = f"providers.{name}"
            if "/" in name or "," in name or name != name.strip() or not name:
                self.wrong(path, "a provider's name has no slash, comma or blank")
                continue
            found = self.section(path, table, PROVIDER)
            models = found.get("models")
            if isinstance(models, dict):
                found["models"] = {
                    model: self.section(f"{path}.models.{model}", row, MODEL)
                    for model, row in models.items()
                }
            providers[name] = found
        return providers

    def aliases(self, value: object) -> dict[str, str]:
        if not isinstance(value, dict):
            self.wrong("aliases", f"is {_shown(value)}; a table is expected")
            return {}
        found = {}
        for name, spec in value.items():
            if isinstance(spec, str) and spec.strip():
                found[name] = str(self.expand(f"aliases.{name}", spec))
            else:
                self.wrong(f"aliases.{name}", f"is {_shown(spec)}; expected a chain as text")
        return found

    def policies(self, value: object) -> tuple[dict[str, object], dict[str, dict[str, object]]]:
        """`[policy]` for all, `[policy.ALIAS]` for one: tables within it are aliases."""
        if not isinstance(value, dict):
            self.wrong("policy", f"is {_shown(value)}; a table is expected")
            return {}, {}
        plain = {name: v for name, v in value.items() if not isinstance(v, dict)}
        nested = {name: v for name, v in value.items() if isinstance(v, dict)}
        given = self.section("policy", plain, POLICY)
        own = {name: given[name] for name in plain if name in given}
        return own, {
            alias: {n: v for n, v in self.section(f"policy.{alias}", t, POLICY).items() if n in t}
            for alias, t in nested.items()
        }

    def tables(self, path: str, value: object) -> Iterator[tuple[str, object]]:
        if isinstance(value, dict):
            yield from value.items()
        else:
            self.wrong(path, f"is {_shown(value)}; a table is expected")

    def expand(self, path: str, value: object) -> object:
        """`${VAR}` replaced, in texts, lists and tables of texts."""
        if isinstance(value, str):
            if "${" in VARIABLE.sub("", value):
                self.wrong(path, "has a ${ that begins no ${NAME}; defaults are not understood")
            return VARIABLE.sub(lambda match: self._variable(path, match[1]), value)
        if isinstance(value, list):
            return [self.expand(f"{path}[{n}]", item) for n, item in enumerate(value)]
        if isinstance(value, dict) and all(isinstance(v, str) for v in value.values()):
            return {name: self.expand(f"{path}.{name}", item) for name, item in value.items()}
        return value

    def _variable(self, path: str, name: str) -> str:
        value = self.env.get(name, "")
        if not value:
            what = "is set but empty" if name in self.env else "is not set"
            self.wrong(path, f"the variable {name} {what}")
        return value

    def wrong(self, path: str, what: str) -> None:
        self.problems.append(Problem(path, what))


def _misfit(given: object, expanded: object, kind: Kind) -> str:
    """What a value is, and what it should be. A word that is none of a few is quoted."""
    if not (kind.names and isinstance(given, str) and 0 < len(given) <= WORD):
        return f"is {_shown(expanded)}; expected {kind.words}"
    asked = meant(given, kind.names)
    return f"is {given!r}; {asked}{' ' if asked else ''}expected {kind.words}"


def _shown(value: object) -> str:
    """A value in an error. Texts may be secrets and are not quoted, wherever they stand."""
    if isinstance(value, str):
        return "a text" if value else "an empty text"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return "a table" if isinstance(value, dict) else repr(value)[:60]
