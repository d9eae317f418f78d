"""Names to providers, aliases to chains; one tracker and one policy for all models of a registry.

Two registries share nothing. Parsing does no I/O, except that a resolver may.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple

from understudy.core.budget import RetryBudget
from understudy.core.errors import InvalidDSN, SpecError, UnknownProvider, text_of
from understudy.core.faults import Fault, Verdict
from understudy.core.health import Clock, Cooldown, HealthTracker
from understudy.core.policy import FAIL_FAST, Policy
from understudy.core.spec import check_alias_name, expand
from understudy.core.stage import Candidate, Stage
from understudy.core.target import Observer, Target
from understudy.core.words import nearest
from understudy.driver import Cast, capabilities_of
from understudy.judge import classify as by_rules
from understudy.model import Model
from understudy.portal import Portal
from understudy.providers.base import Closable, Described, Provider
from understudy.providers.builtin import built_in, schemes
from understudy.providers.credentials import redact
from understudy.providers.dsn import DSN, provider_names, read_dsn, variable_for

MEMO_MAX = 4096  # specs; clients of a gateway may send any number of different ones
Build = Callable[[str, DSN], Provider]
Resolver = Callable[[str], str | None]
Classifier = Callable[[Exception], Verdict | Fault]


class _Problem(NamedTuple):
    """A variable that could not be read; a scheme that is registered later may read it."""

    error: InvalidDSN
    variable: str
    text: str


@dataclass(slots=True)
class _Names:
    """What is registered. Replaced values, never half-written ones: readers take no lock."""

    providers: dict[str, Provider] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    resolvers: tuple[Resolver, ...] = ()
    schemes: dict[str, Build] = field(default_factory=dict)
    problems: dict[str, _Problem] = field(default_factory=dict)


class Registry:
    """Where programs register providers and aliases, and parse specs into models."""

    def __init__(
        self,
        *,
        env: Mapping[str, str] | None = None,
        policy: Policy = FAIL_FAST,
        cooldown: Cooldown = Cooldown(),  # noqa: B008 - frozen
        clock: Clock = time.monotonic,
        observer: Observer | None = None,
        classify: Classifier | None = None,
    ) -> None:
        self.health = HealthTracker(cooldown, clock=clock)
        self.policy = policy
        self.env = os.environ if env is None else env  # noqa: TID251 - the documented default
        self._names = _Names(schemes=dict(schemes(self.env)))
        self._observer = observer
        self._stage = Stage(
            policy,
            _judge(classify) if classify else by_rules,
            clock,
            self.health,
            _budget(policy, clock),
        )
        self._portal = Portal()
        self._models: dict[str, Model] = {}
        self._lock = Lock()
        self.load_env(self.env)

    def register_provider(self, provider: Provider | str, named: Provider | None = None) -> None:
        """`register_provider(provider)`, or under another name: `register_provider("m1", p)`."""
        if isinstance(provider, str):
            if named is None:
                raise TypeError(f"no provider given for the name {provider!r}")
            name, provider = provider, _able(named)
        else:
            name = _able(provider).name
        if not name or "/" in name or "," in name or name != name.strip():
            raise SpecError(
                f"bad provider name {name!r}; use a word without slash, comma or blank"
            )
        with self._lock:
            self._names.providers[name] = provider
            self._names.problems.pop(name, None)
            self._models = {}

    def register_alias(self, name: str, spec: str) -> None:
        """Let a bare word stand for a spec. Checked when used, so order does not matter."""
        check_alias_name(name)
        if not isinstance(spec, str):
            raise TypeError(
                f"alias {name!r} needs a spec as text, such as 'a/x, b/y', not {spec!r}"
            )
        with self._lock:
            self._names.aliases[name] = spec
            self._models = {}

    def register_resolver(self, resolver: Resolver) -> None:
        """Ask `resolver` for names that are no static alias; first answer wins."""
        with self._lock:
            self._names.resolvers = (*self._names.resolvers, resolver)
            self._models = {}

    def register_scheme(self, scheme: str, build: Build) -> None:
        """Let DSNs of this scheme be built by `build(name, dsn)`."""
        with self._lock:
            self._names.schemes[scheme.lower()] = build  # as schemes are read
            unread = tuple(self._names.problems.values())
        self.load_env({problem.variable: problem.text for problem in unread})

    @property
    def aliases(self) -> dict[str, str]:
        return dict(self._names.aliases)

    @property
    def providers(self) -> dict[str, Provider]:
        """The registered ones; built-ins appear once they are used."""
        return dict(self._names.providers)

    def load_env(self, env: Mapping[str, str]) -> list[InvalidDSN]:
        """Register every `LLM_*` DSN; returns the problems, the good ones are loaded anyway."""
        problems = []
        for name, variable in provider_names(env).items():
            try:
                provider = self._from_dsn(name, env[variable], variable)
            except InvalidDSN as problem:
                problems.append(problem)
                self._names.problems[name] = _Problem(problem, variable, env[variable])
            else:
                self.register_provider(name, provider)
        return problems

    def parse(self, spec: str) -> Model:
        """The model a spec stands for; the same object while nothing is registered in between."""
        if not isinstance(spec, str):
            raise TypeError(f"a spec is text, such as 'openai/gpt-5.5, thinking', not {spec!r}")
        model = self._models.get(spec)
        return model if model is not None else self._parse(spec)

    def close(self) -> None:
        """End the thread behind the blocking calls, if it was ever started."""
        self._portal.close()

    async def aclose(self) -> None:
        """Close every connection that is kept, too. What comes afterwards opens new ones."""
        for provider in self.providers.values():
            if isinstance(provider, Closable):
                await provider.aclose()
        self.close()

    def _parse(self, spec: str) -> Model:
        models = self._models  # registering replaces it, so nothing stale is ever kept
        asked = _Asked(self._names)
        targets = expand(spec, asked, self._names.aliases)
        providers = {target.provider: self._provider(target.provider, spec) for target in targets}
        chain = tuple(_candidate(target, providers[target.provider]) for target in targets)
        cast = Cast(chain, providers, self._stage, self._observer)
        model = Model(spec, cast, self._portal)
        if not asked.resolved:  # a resolver may answer differently next time
            if len(models) >= MEMO_MAX:
                models.clear()
            models[spec] = model
        return model

    def _provider(self, name: str, spec: str) -> Provider:
        names = self._names
        found = names.providers.get(name)
        if found is not None:
            return found
        variable = variable_for(name)
        vendor = built_in(name, self.env)
        if name in names.problems and not (vendor and "://" not in self.env.get(variable, "")):
            # A word in a vendor's variable is somebody else's (E7). A new error each time: one
            # that is raised again and again grows with each traceback.
            raise InvalidDSN(*names.problems[name].error.args)
        provider = vendor if name in names.problems else self._lazy(name, variable) or vendor
        if provider is None:
            known = sorted({*names.providers, *names.schemes})
            near = nearest(name, known)
            asked = f"did you mean {near!r}? {name!r}" if near else "it"
            listed = "" if near else f" (known: {', '.join(known)})"
            raise UnknownProvider(
                f"unknown provider {name!r} in {spec!r}; {asked} is not registered{listed} "
                f"and {variable} is not set"
            )
        with self._lock:
            return names.providers.setdefault(name, provider)

    def _lazy(self, name: str, variable: str) -> Provider | None:
        text = self.env.get(variable)
        return self._from_dsn(name, text, variable) if text else None

    def _from_dsn(self, name: str, text: str, variable: str) -> Provider:
        dsn = read_dsn(text, variable)
        build = self._names.schemes.get(dsn.scheme)
        if build is None:
            known = ", ".join(sorted(self._names.schemes))
            raise InvalidDSN(f"unknown scheme {dsn.scheme!r} in {variable}; known: {known}")
        try:
            return _able(build(name, dsn))
        except Exception as error:  # noqa: BLE001 - one bad entry must not cost the others
            said = redact(text_of(error), (dsn.token,))
            raise InvalidDSN(f"invalid DSN in {variable}: {said}") from None


class _Asked:
    """Looks names up: static aliases first, then resolvers in order, without a lock held."""

    __slots__ = ("names", "resolved")

    def __init__(self, names: _Names) -> None:
        self.names = names
        self.resolved = False

    def __call__(self, name: str) -> str | None:
        found = self.names.aliases.get(name)
        if found is not None:
            return found
        for resolver in self.names.resolvers:
            answer = resolver(name)
            if answer is not None:
                if not isinstance(answer, str):
                    raise TypeError(f"a resolver must give text or None for {name!r}: {answer!r}")
                self.resolved = True
                return answer
        return None


def _able(provider: Provider) -> Provider:
    """The same, if it is a provider at all: told where it is given, not where it is used."""
    if not callable(getattr(provider, "generate", None)):
        raise TypeError(f"no provider: {provider!r} has no method `generate`")
    return provider


def _candidate(target: Target, provider: Provider) -> Candidate:
    labels = provider.credentials if isinstance(provider, Described) else ()

    def window() -> int | None:
        return capabilities_of(provider, target.model).context_window

    return Candidate(target, labels or ("default",), window)


def _budget(policy: Policy, clock: Clock) -> RetryBudget | None:
    if policy.budget_ratio is None:
        return None
    return RetryBudget(policy.budget_ratio, policy.budget_rate, clock=clock)


def _judge(classifier: Classifier) -> Callable[[Exception], Verdict]:
    def judge(error: Exception) -> Verdict:
        said = classifier(error)
        return said if isinstance(said, Verdict) else Verdict(Fault(said))

    return judge


class _Default:
    """The registry behind `understudy.parse`, built when first asked for."""

    registry: Registry | None = None
    lock = Lock()


def default_registry() -> Registry:
    """One registry for programs that need no more than one; reads the process environment."""
    with _Default.lock:
        if _Default.registry is None:
            _Default.registry = Registry()
        return _Default.registry


def parse(spec: str) -> Model:
    """Parse a spec with the default registry."""
    return default_registry().parse(spec)
