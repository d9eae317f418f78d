"""From a configuration to a house: providers, aliases, policies, keys. Opens no socket."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from understudy.core.errors import SpecError, UnderstudyError
from understudy.core.health import Clock, Cooldown
from understudy.core.policy import POLICIES, Policy
from understudy.core.words import meant, meant_or_known
from understudy.driver import Cast
from understudy.gateway.config import Config, InvalidConfig, Problem
from understudy.gateway.house import ClientKey, House, Recipe, Rules
from understudy.gateway.http import ServerLimits
from understudy.gateway.limits import Allowance
from understudy.messages.capabilities import Capabilities
from understudy.observe.journal_file import Shelf
from understudy.providers.base import Patience
from understudy.providers.catalogue import VENDORS, Vendor, by_name, key_in, url_in
from understudy.providers.http import AUTH, HttpProvider, Settings
from understudy.providers.loopback import is_loopback
from understudy.providers.transport import Limits, Origin, render_head
from understudy.registry import Registry
from understudy.share.tie import Place
from understudy.testing import Fake, Http

Table = Mapping[str, object]


def house_of(
    config: Config, env: Mapping[str, str], clock: Clock, old: House | None = None
) -> House:
    """Everything a configuration names, or InvalidConfig with what cannot be built.

    Providers that `old` has and that did not change are taken over with their connections.
    """
    house, problems = furnish(config, env, clock, old)
    if problems:
        raise InvalidConfig(problems)
    return house


def furnish(
    config: Config, env: Mapping[str, str], clock: Clock, old: House | None = None
) -> tuple[House, list[Problem]]:
    """A house of what can be built, and what cannot."""
    gateway = config.gateway
    policy = bent(POLICIES[str(gateway["policy"])], config.policy)
    cooldown = Cooldown(**config.health)  # type: ignore[arg-type]
    registry = Registry(env=env, policy=policy, cooldown=cooldown, clock=clock)
    recipes, problems = _recipes(config, env)
    problems += _register(registry, recipes, old)
    for name in config.providers.keys() - registry.providers.keys():
        registry.register_provider(name, Fake(name))  # so that aliases are not blamed as well
    problems += _aliases(registry, config.aliases)
    keys = gateway["keys"]
    assert isinstance(keys, list)
    clients = tuple(ClientKey(f"client{n}", key) for n, key in enumerate(keys, 1))
    admin = str(gateway.get("admin_key", ""))
    house = House(registry, clients, admin, _rules(config, policy), _limits(gateway), recipes)
    if old is not None:
        house.inherit(old)
    return house, problems


def _rules(config: Config, policy: Policy) -> Rules:
    gateway = config.gateway
    return Rules(
        timeout=float(str(gateway["timeout"])),
        allow_specs=bool(gateway["allow_specs"]),
        policies={alias: bent(policy, table) for alias, table in config.policies.items()},
        allowance=Allowance(
            float(str(gateway.get("max_concurrent", math.inf))),
            float(str(gateway.get("rate", math.inf))),
            float(str(gateway.get("token_rate", math.inf))),
        ),
        access_log=bool(gateway["access_log"]),
        tracing=bool(gateway["tracing"]),
        keepalive=float(str(gateway["keepalive"])),
        drain_delay=float(str(gateway["drain_delay"])),
        journal=_shelf(config.journal),
        share=_place(config.share),
    )


def _shelf(journal: Table) -> Shelf | None:
    if "path" not in journal:
        return None
    most, keep = int(str(journal["max_bytes"])), int(str(journal["keep"]))
    return Shelf(Path(str(journal["path"])), most, keep)


def _place(share: Table) -> Place | None:
    if "url" not in share:
        return None
    flags = (bool(share["cluster"]), bool(share["limits"]))
    return Place(str(share["url"]), str(share["name"]), *flags)


def house_of_env(env: Mapping[str, str], clock: Clock) -> House | None:
    """A house of whatever the environment holds keys or DSNs for; None if it holds nothing."""
    registry = Registry(
        env=env, policy=POLICIES["availability"], cooldown=Cooldown(probe=True), clock=clock
    )
    keyed = [vendor.name for vendor in VENDORS if key_in(vendor, env)]
    if not keyed and not registry.providers:
        return None
    return House(registry)


def demo_house(clock: Clock) -> House:
    """Scripted providers with a flaky head: one request shows a failover, no keys needed."""
    registry = Registry(
        env={}, policy=POLICIES["availability"], cooldown=Cooldown(probe=True), clock=clock
    )
    for provider in (_Flaky("lead"), Fake("understudy"), Fake("house")):
        registry.register_provider(provider)
    registry.register_alias("demo", "lead/opera, understudy/aria, house/piano")
    registry.register_alias("steady", "understudy/aria, house/piano")
    return House(registry)


class _Flaky(Fake):
    """Fails two calls of three, for ever, so that every visitor sees a failover."""

    def capabilities(self, model: str) -> Capabilities:
        if not self._queues.get(model):
            self.script(model, Http(503, "the lead has lost her voice"), 503, "the lead sings")
        return super().capabilities(model)


def bent(policy: Policy, table: Table) -> Policy:
    """A policy with some of its numbers changed."""
    return replace(policy, **table) if table else policy  # type: ignore[arg-type]


def _recipes(config: Config, env: Mapping[str, str]) -> tuple[dict[str, Recipe], list[Problem]]:
    recipes: dict[str, Recipe] = {}
    problems = []
    for name, table in config.providers.items():
        try:
            recipe = _recipe(name, table, env)
            _sendable(recipe)
        except ValueError as error:
            problems.append(Problem(f"providers.{name}", str(error)))
        else:
            recipes[name] = recipe
    return recipes, problems


def _recipe(name: str, table: Table, env: Mapping[str, str]) -> Recipe:
    vendor = by_name().get(str(table.get("vendor", name)))
    if vendor is None and "vendor" in table:
        known = meant_or_known(str(table["vendor"]), by_name())
        raise ValueError(f"unknown vendor {table['vendor']!r}{known}")
    url = str(table.get("base_url", "")) or (url_in(vendor, env) if vendor else "")
    if not url:
        asked = "" if vendor else meant(name, by_name())
        what = "base_url is missing, and its name is no vendor that has one"
        raise ValueError(f"{what}; {asked}" if asked else what)
    dialect = str(table.get("dialect", "")) or (vendor.dialect if vendor else "openai")
    keys = _keys(table, vendor, env)
    settings = _settings(table, vendor)
    if vendor is not None and vendor.key_needed and not keys and "base_url" not in table:
        missing = f"no key for provider {name!r}; set {' or '.join(vendor.keys)}, or api_key"
        settings = replace(settings, missing=missing)
    return Recipe(dialect, url.rstrip("/"), keys, settings)


def _keys(table: Table, vendor: Vendor | None, env: Mapping[str, str]) -> tuple[str, ...]:
    """The configured ones; a vendor's from the environment only go to the vendor's own address."""
    listed = table.get("api_keys", [])
    assert isinstance(listed, list)
    keys = tuple(key for key in (str(table.get("api_key", "")), *listed) if key)
    if not keys and vendor is not None and "base_url" not in table:
        keys = tuple(key for key in (key_in(vendor, env),) if key)
    return keys


def _sendable(recipe: Recipe) -> None:
    """Raises ValueError for an address, key or header that no request could be sent with."""
    origin = Origin.from_url(recipe.base_url)
    if not all(key.strip() for key in recipe.keys):
        raise ValueError("a key of nothing but blanks; leave it out if none is needed")
    for key in recipe.keys or ("",):
        headers = {**AUTH["bearer"](key), **recipe.settings.headers}
        render_head("POST", origin, "/", headers)


def _register(
    registry: Registry, recipes: Mapping[str, Recipe], old: House | None
) -> list[Problem]:
    kept = {} if old is None else old.registry.providers
    before = {} if old is None else old.recipes
    problems = []
    for name, provider in kept.items():
        if name not in before and name not in recipes:  # from the environment, which stays
            registry.register_provider(name, provider)
    for name, recipe in recipes.items():
        if name in kept and before.get(name) == recipe:
            registry.register_provider(name, kept[name])
            continue
        try:
            registry.register_provider(name, recipe.made(name, registry.env))
        except (UnderstudyError, ValueError) as error:  # a proxy that cannot be used
            problems.append(Problem(f"providers.{name}", str(error)))
    return problems


def _settings(table: Table, vendor: Vendor | None) -> Settings:
    def seconds(name: str) -> float:
        return float(str(table[name]))

    headers, models = table.get("headers", {}), table.get("models", {})
    assert isinstance(headers, dict)
    assert isinstance(models, dict)
    auth = str(table.get("auth", "")) or (vendor.auth if vendor and "dialect" not in table else "")
    return Settings(
        auth=auth,
        headers=headers,
        patience=Patience(
            seconds("first_byte_timeout"), seconds("idle_timeout"), seconds("response_timeout")
        ),
        limits=Limits(connect=seconds("connect_timeout"), max_reply=int(seconds("max_reply"))),
        quirks=vendor.quirks if vendor else frozenset(),
        capabilities={model: _takes(row) for model, row in models.items()},
        vendor=vendor.name if vendor else "",
        root=vendor.root if vendor else "",
    )


def _takes(row: Table) -> dict[str, object]:
    return {name: tuple(v) if isinstance(v, list) else v for name, v in row.items()}


def _aliases(registry: Registry, aliases: Mapping[str, str]) -> list[Problem]:
    problems = []
    for name, spec in aliases.items():
        try:
            registry.register_alias(name, spec)
        except SpecError as error:
            problems.append(Problem(f"aliases.{name}", str(error)))
    for name in aliases:
        try:
            registry.parse(name)
        except ValueError as error:
            problems.append(Problem(f"aliases.{name}", str(error)))
    return problems


def exposed(host: str, keys: object) -> list[Problem]:
    """Without keys nobody but this machine may ask."""
    if is_loopback(host) or keys:
        return []
    return [Problem("gateway.keys", f"are needed to listen on {host}; or listen on 127.0.0.1")]


def unwritable(journal: Table) -> list[Problem]:
    """Why no journal could be written there. Nothing is made, and nothing is opened."""
    if "path" not in journal:
        return []
    path = str(journal["path"])
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        number = errno.EISDIR
    elif not os.path.isdir(folder):
        number = errno.ENOTDIR if os.path.exists(folder) else errno.ENOENT
    else:
        needed, rights = (path, os.R_OK) if os.path.exists(path) else (folder, os.X_OK)
        number = 0 if os.access(needed, rights | os.W_OK) else errno.EACCES
    why = f"cannot be written: {os.strerror(number)}"
    return [Problem("journal.path", why)] if number else []


def keyless(cast: Cast) -> dict[str, str]:
    """By target, what is missing where no call could be sent: a key, or an address."""
    providers = ((c.key, cast.providers[c.target.provider]) for c in cast.chain)
    return {
        key: provider.settings.missing
        for key, provider in providers
        if isinstance(provider, HttpProvider) and provider.settings.missing
    }


def _limits(gateway: Table) -> ServerLimits:
    return ServerLimits(
        body=int(str(gateway["max_body"])),
        connections=int(str(gateway["max_connections"])),
        read_seconds=float(str(gateway["read_timeout"])),
        drain_seconds=float(str(gateway["drain_timeout"])),
    )
