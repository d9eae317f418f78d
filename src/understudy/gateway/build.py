"""From a configuration to a house: providers, aliases, policies, keys. Opens no socket."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from ipaddress import ip_address

from understudy.core.errors import SpecError
from understudy.core.health import Clock, Cooldown
from understudy.core.policy import POLICIES, Policy
from understudy.gateway.config import Config, InvalidConfig, Problem
from understudy.gateway.house import ClientKey, House, Rules
from understudy.gateway.http import ServerLimits
from understudy.messages.capabilities import Capabilities
from understudy.providers.base import Patience, Provider
from understudy.providers.catalogue import VENDORS, Vendor, by_name, key_in, url_in
from understudy.providers.http import HttpProvider, Settings
from understudy.providers.transport import Limits
from understudy.registry import Registry
from understudy.testing import Fake, Http

Table = Mapping[str, object]


def house_of(config: Config, env: Mapping[str, str], clock: Clock) -> House:
    """Everything a configuration names, or InvalidConfig with what cannot be built."""
    gateway = config.gateway
    policy = bent(POLICIES[str(gateway["policy"])], config.policy)
    cooldown = Cooldown(**config.health)  # type: ignore[arg-type]
    registry = Registry(env=env, policy=policy, cooldown=cooldown, clock=clock)
    problems = [
        *_providers(registry, config, env),
        *_aliases(registry, config.aliases),
        *_exposed(gateway),
    ]
    if problems:
        raise InvalidConfig(problems)
    rules = Rules(
        float(str(gateway["timeout"])),
        bool(gateway["allow_specs"]),
        {alias: bent(policy, table) for alias, table in config.policies.items()},
    )
    keys = gateway["keys"]
    assert isinstance(keys, list)
    clients = tuple(ClientKey(f"client{n}", key) for n, key in enumerate(keys, 1) if key)
    return House(registry, clients, str(gateway.get("admin_key", "")), rules, _limits(gateway))


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


def _providers(registry: Registry, config: Config, env: Mapping[str, str]) -> list[Problem]:
    problems = []
    for name, table in config.providers.items():
        try:
            registry.register_provider(name, _provider(name, table, env))
        except ValueError as error:
            problems.append(Problem(f"providers.{name}", str(error)))
    return problems


def _provider(name: str, table: Table, env: Mapping[str, str]) -> Provider:
    vendor = by_name().get(str(table.get("vendor", name)))
    if vendor is None and "vendor" in table:
        known = ", ".join(sorted(by_name()))
        raise ValueError(f"unknown vendor {table['vendor']!r}; known: {known}")
    url = str(table.get("base_url", "")) or (url_in(vendor, env) if vendor else "")
    if not url:
        raise ValueError("base_url is missing, and its name is no vendor that has one")
    dialect = str(table.get("dialect", "")) or (vendor.dialect if vendor else "openai")
    listed = table.get("api_keys", [])
    assert isinstance(listed, list)
    keys = [str(table.get("api_key", "")), *listed]
    if not any(keys) and vendor is not None and "base_url" not in table:
        keys = [key_in(vendor, env)]
    return HttpProvider(
        name,
        dialect=dialect,
        base_url=url,
        api_keys=[key for key in keys if key],
        settings=_settings(table, vendor),
    )


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
        capabilities={model: _capabilities(row) for model, row in models.items()},
        vendor=vendor.name if vendor else "",
    )


def _capabilities(row: Table) -> Capabilities:
    given = {name: tuple(v) if isinstance(v, list) else v for name, v in row.items()}
    return Capabilities(**given)  # type: ignore[arg-type]


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


def _exposed(gateway: Table) -> list[Problem]:
    """Without keys nobody but this machine may ask."""
    host = str(gateway["host"])
    if is_loopback(host) or gateway["keys"]:
        return []
    return [Problem("gateway.keys", f"are needed to listen on {host}; or listen on 127.0.0.1")]


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _limits(gateway: Table) -> ServerLimits:
    return ServerLimits(
        body=int(str(gateway["max_body"])),
        connections=int(str(gateway["max_connections"])),
        read_seconds=float(str(gateway["read_timeout"])),
        drain_seconds=float(str(gateway["drain_timeout"])),
    )
