"""Everything one configuration stands for. Replaced whole on reload; requests keep theirs."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from understudy.core.errors import SpecError
from understudy.core.policy import POLICIES, Policy
from understudy.driver import Cast
from understudy.gateway.http import ServerLimits
from understudy.registry import Registry


@dataclass(frozen=True, slots=True)
class ClientKey:
    """A key clients may use. Never shown; its label is."""

    label: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Rules:
    """How requests are treated."""

    timeout: float = 600.0  # seconds, a whole request
    allow_specs: bool = True
    policies: Mapping[str, Policy] = field(default_factory=dict)  # by alias, where it differs


@dataclass(slots=True)
class House:
    """A registry, who may use it, and how."""

    registry: Registry
    keys: tuple[ClientKey, ...] = ()
    admin_key: str = field(default="", repr=False)
    rules: Rules = field(default_factory=Rules)
    limits: ServerLimits = field(default_factory=ServerLimits)
    _bent: dict[tuple[str, str], tuple[Cast, Cast]] = field(default_factory=dict)

    def who(self, secret: str) -> ClientKey | None:
        """Whose key this is; every key is compared, so the time tells nothing."""
        given = secret.encode()
        found = None
        for key in self.keys:
            if hmac.compare_digest(key.secret.encode(), given):
                found = key
        return found

    def is_admin(self, secret: str) -> bool:
        return bool(self.admin_key) and hmac.compare_digest(self.admin_key, secret)

    def cast(self, model: str, wish: str = "") -> Cast:
        """The chain for what a client named; `wish` is the policy it asks for, if any."""
        if not self.rules.allow_specs and model not in self.registry.aliases:
            names = ", ".join(sorted(self.registry.aliases)) or "none"
            raise SpecError(f"unknown model {model!r}; the models here are: {names}")
        cast = self.registry.parse(model).cast
        if not wish and model not in self.rules.policies:
            return cast
        plain, bent = self._bent.get((model, wish), (None, cast))
        if plain is not cast:  # registering makes new chains
            policy = self._policy(model, wish, cast.stage.policy)
            bent = replace(cast, stage=replace(cast.stage, policy=policy))
            self._bent[model, wish] = (cast, bent)
        return bent

    def _policy(self, model: str, wish: str, standard: Policy) -> Policy:
        ours = self.rules.policies.get(model, standard)
        if not wish:
            return ours
        if wish not in POLICIES or wish == "deterministic":
            known = "availability, fail_fast"
            raise SpecError(f"unknown policy {wish!r} in x-understudy-policy; known: {known}")
        # A client may ask for the stricter table, never for the more generous one.
        if wish == "fail_fast" and ours.name == "availability":
            return replace(ours, name="fail_fast", rules=POLICIES["fail_fast"].rules)
        return ours
