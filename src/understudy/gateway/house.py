"""Everything one configuration stands for. Replaced whole on reload; requests keep theirs."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from understudy.core.errors import InvalidRequest, SpecError, UnderstudyError
from understudy.core.policy import POLICIES, Policy
from understudy.driver import Cast
from understudy.gateway.http import ServerLimits
from understudy.gateway.keys import NAMED
from understudy.gateway.limits import UNLIMITED, Allowance, Gate
from understudy.observe.journal_file import Shelf
from understudy.providers.http import HttpProvider, Settings, transport_to, vendor_of
from understudy.registry import Registry
from understudy.share.tie import Place

BENT_MOST = 1024  # chains under another policy that are kept; clients may name them without end


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
    allowance: Allowance = UNLIMITED  # of each client key
    access_log: bool = True
    tracing: bool = False
    keepalive: float = 0.0  # seconds between comments to a client that waits for a stream
    drain_delay: float = 0.0  # seconds of service after the signal to stop
    journal: Shelf | None = None
    share: Place | None = None


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a provider was made; equal recipes make equal providers."""

    dialect: str
    base_url: str
    keys: tuple[str, ...] = field(repr=False)
    settings: Settings = field(repr=False)  # its headers may hold a key

    def made(self, name: str, env: Mapping[str, str]) -> HttpProvider:
        """The provider, behind the proxy that the environment names, if it names one."""
        return HttpProvider(
            name,
            dialect=self.dialect,
            base_url=self.base_url,
            api_keys=self.keys,
            settings=replace(self.settings, transport=transport_to(self.base_url, env)),
        )


@dataclass(slots=True)
class House:
    """A registry, who may use it, and how."""

    registry: Registry
    keys: tuple[ClientKey, ...] = ()
    admin_key: str = field(default="", repr=False)
    rules: Rules = field(default_factory=Rules)
    limits: ServerLimits = field(default_factory=ServerLimits)
    recipes: Mapping[str, Recipe] = field(default_factory=dict, repr=False)
    running: int = 0  # requests inside
    emptied: Callable[[], None] | None = None  # called when the last of a replaced house is out
    gates: dict[str, Gate] = field(init=False)  # by label; none where nothing is limited
    _bent: dict[tuple[str, str], tuple[Cast, Cast]] = field(default_factory=dict)
    _who: dict[str, ClientKey] = field(init=False, repr=False)  # by secret

    def __post_init__(self) -> None:
        self._who = {key.secret: key for key in self.keys}
        labels = [key.label for key in self.keys] or [""]
        allowance, clock = self.rules.allowance, self.registry.health.clock
        self.gates = {x: Gate(allowance, clock) for x in labels} if allowance.limited else {}

    def inherit(self, old: House) -> None:
        """Take over the gates of keys that are still there: a reload is no fresh start."""
        secrets = {key.secret: key.label for key in old.keys} or {"": ""}
        for key in self.keys or (ClientKey("", ""),):
            gate = old.gates.get(secrets.get(key.secret, "?"))
            if gate is not None and gate.allowance == self.rules.allowance:
                self.gates[key.label] = gate

    def leave(self) -> None:
        """A request is out."""
        self.running -= 1
        if not self.running and self.emptied is not None:
            self.emptied()

    def who(self, *secrets: str) -> ClientKey | None:
        """Whose key one of these is; the first that is anybody's counts.

        Looked up by a keyed hash, so the time tells nothing of any key.
        """
        for secret in secrets:
            known = self._who.get(secret)
            if known is not None:
                return known
        return None

    def is_admin(self, secret: str) -> bool:
        own = self.admin_key.encode()
        return bool(own) and hmac.compare_digest(own, secret.encode())

    def vendor(self, provider: str) -> str:
        return vendor_of(self.registry.providers.get(provider), provider)

    def cast(self, model: str, wish: str = "") -> Cast:
        """The chain for what a client named; `wish` is the policy it asks for, if any."""
        if not self.rules.allow_specs and model not in self.registry.aliases:
            names = ", ".join(sorted(self.registry.aliases)) or "none"
            raise SpecError(f"unknown model {model!r}; the models here are: {names}")
        cast = self._parsed(model)
        if not wish and model not in self.rules.policies:
            return cast
        plain, bent = self._bent.get((model, wish), (None, cast))
        if plain is not cast:  # registering makes new chains
            policy = self._policy(model, wish, cast.stage.policy)
            bent = replace(cast, stage=replace(cast.stage, policy=policy))
            if len(self._bent) >= BENT_MOST:
                self._bent.clear()
            self._bent[model, wish] = (cast, bent)
        return bent

    def _parsed(self, model: str) -> Cast:
        try:
            return self.registry.parse(model).cast
        except SpecError:
            raise
        except (
            UnderstudyError
        ) as error:  # a DSN or a proxy that is of no use: the operator's fault
            raise SpecError(str(error)) from error

    def _policy(self, model: str, wish: str, standard: Policy) -> Policy:
        ours = self.rules.policies.get(model, standard)
        if not wish:
            return ours
        if wish not in NAMED:
            known = ", ".join(NAMED)
            raise InvalidRequest(f"x-understudy-policy is {wish[:40]!r}; known: {known}")
        # A client may ask for the stricter table, never for the more generous one.
        if wish == "fail_fast" and ours.name == "availability":
            return replace(ours, name="fail_fast", rules=POLICIES["fail_fast"].rules)
        return ours
