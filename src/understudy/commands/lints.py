"""What is unwise about a configuration that could be served: a table of small functions.

A lint yields where something stands and what is odd about it, and never quotes a key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import urlsplit

from understudy.core.errors import SpecError
from understudy.core.spec import elements
from understudy.core.target import Target
from understudy.core.words import meant
from understudy.gateway.config import Config
from understudy.gateway.house import House
from understudy.gateway.keys import PROVIDER
from understudy.providers.catalogue import VENDORS
from understudy.providers.http import HttpProvider
from understudy.providers.loopback import on_loopback

OWN_PATHS = {"anthropic": ("/v1",), "gemini": ("/v1", "/v1beta"), "ollama": ("/api", "/v1")}
BELOW = ("openai", "responses")  # dialects whose base URL has a path, as a rule
ENDPOINT = re.compile(
    r"(/chat/completions|/v1/messages|/messages|/responses|/embeddings|/api/chat|/api/generate"
    r"|(/v1\w*)?/models/[^/]+:\w+)$"
)
WORKERS = 256  # more processes than any machine has cores for
DEFAULTS = {key.name: key.default for key in PROVIDER}

Found = Iterator[tuple[str, str]]  # path, what


class Scene:
    """A configuration and what could be built of it, as lints look at it."""

    def __init__(self, config: Config, house: House) -> None:
        self.config = config
        self.house = house
        self.chains: dict[str, tuple[Target, ...]] = {}  # of aliases that can be parsed
        for alias in config.aliases:
            try:
                chain = house.registry.parse(alias).cast.chain
            except (SpecError, ValueError):
                continue
            self.chains[alias] = tuple(candidate.target for candidate in chain)

    def provider(self, name: str) -> HttpProvider | None:
        found = self.house.registry.providers.get(name)
        return found if isinstance(found, HttpProvider) else None

    @property
    def used(self) -> dict[str, HttpProvider]:
        """Everybody configured or named by an alias."""
        named = {target.provider for chain in self.chains.values() for target in chain}
        names = sorted(named | set(self.house.recipes))
        return {name: p for name in names if (p := self.provider(name)) is not None}

    @property
    def parts(self) -> set[str]:
        """Aliases that others are made of."""
        specs = self.config.aliases.items()
        return {e for name, spec in specs for e in elements(spec) if e != name}


# -- chains -----------------------------------------------------------------------------------


def _lonely(scene: Scene) -> Found:
    for alias, chain in scene.chains.items():
        if len(chain) == 1 and alias not in scene.parts:
            yield f"aliases.{alias}", f"has one target, {chain[0]}; nobody takes over if it fails"


def _one_domain(scene: Scene) -> Found:
    """Targets that fall together: at one host, of one vendor, on one account."""
    for alias, chain in scene.chains.items():
        if len(chain) < 2:
            continue
        for word, shared in (
            ("at one host", _common(chain, lambda t: _host(scene, t))),
            ("of one vendor", _common(chain, lambda t: scene.house.vendor(t.provider))),
            ("on one account", _common(chain, lambda t: _account(scene, t))),
        ):
            if shared:
                name = "" if word == "on one account" else f", {shared}"
                yield (
                    f"aliases.{alias}",
                    f"its {len(chain)} targets are all {word}{name}, and fail together",
                )
                break


def _common(chain: Iterable[Target], trait: Callable[[Target], str]) -> str:
    traits = {trait(target) for target in chain}
    return traits.pop() if len(traits) == 1 else ""


def _host(scene: Scene, target: Target) -> str:
    provider = scene.provider(target.provider)
    return urlsplit(provider.base_url).hostname or "" if provider else ""


def _account(scene: Scene, target: Target) -> str:
    recipe = scene.house.recipes.get(target.provider)
    return "|".join(recipe.keys) if recipe else ""


def _twice(scene: Scene) -> Found:
    for alias, spec in scene.config.aliases.items():
        parts = elements(spec)
        for part in dict.fromkeys(p for p in parts if parts.count(p) > 1):
            yield f"aliases.{alias}", f"names {part!r} twice; the second is never reached"


def _swallowed(scene: Scene) -> Found:
    """Within a chain an alias whose targets all stand before it."""
    for alias, spec in scene.config.aliases.items():
        before: set[Target] = set()
        for part in dict.fromkeys(elements(spec)):
            chain = scene.chains.get(part)
            if chain and before.issuperset(chain):
                what = f"{part!r} adds nobody: all its targets stand before it"
                yield f"aliases.{alias}", what
            before.update(chain or _target(part))


def _target(part: str) -> tuple[Target, ...]:
    provider, slash, model = part.partition("/")
    return (Target(provider, model),) if slash else ()


def _unreachable(scene: Scene) -> Found:
    """Where clients may name aliases only, whatever no alias leads to is never used."""
    if scene.house.rules.allow_specs:
        return
    named = {target.provider for chain in scene.chains.values() for target in chain}
    for name in scene.config.providers:
        if name not in named:
            what = "no alias leads to it, and clients may name only aliases (allow_specs = false)"
            yield f"providers.{name}", what


def _nothing(scene: Scene) -> Found:
    if not scene.house.rules.allow_specs and not scene.config.aliases:
        yield "aliases", "are missing, and clients may name nothing else (allow_specs = false)"


# -- keys and addresses -----------------------------------------------------------------------


def _reused_keys(scene: Scene) -> Found:
    house = scene.house
    secrets = [key.secret for key in house.keys]
    if len(set(secrets)) < len(secrets):
        yield "gateway.keys", "the same key stands there twice"
    if house.admin_key and house.admin_key in secrets:
        yield "gateway.admin_key", "is a client key too; every client may bench targets"
    for name, recipe in house.recipes.items():
        if {house.admin_key, *secrets} & set(recipe.keys):
            yield f"providers.{name}", "its key is also a key of the gateway; clients know it"
        if len(set(recipe.keys)) < len(recipe.keys):
            yield f"providers.{name}.api_keys", "the same key stands there twice"


def _shared_accounts(scene: Scene) -> Found:
    seen: dict[str, str] = {}
    for name, recipe in scene.house.recipes.items():
        for key in dict.fromkeys(recipe.keys):
            if key in seen:
                yield f"providers.{name}", f"has the key of {seen[key]!r}; they share its limits"
            seen.setdefault(key, name)


def _keyless(scene: Scene) -> Found:
    for name, provider in scene.used.items():
        if provider.settings.missing:
            yield f"providers.{name}", provider.settings.missing


def _doubled_path(scene: Scene) -> Found:
    for name, recipe in scene.house.recipes.items():
        for path in OWN_PATHS.get(recipe.dialect, ()):
            if recipe.base_url.endswith(path):
                what = f"ends in {path}, which the dialect {recipe.dialect!r} adds by itself"
                yield f"providers.{name}.base_url", what


def _no_path(scene: Scene) -> Found:
    usual = {vendor.base_url for vendor in VENDORS}
    for name, recipe in scene.house.recipes.items():
        bare = recipe.base_url not in usual and not urlsplit(recipe.base_url).path
        if bare and recipe.dialect in BELOW and not recipe.settings.root:
            what = f"has no path; most servers of the dialect {recipe.dialect!r} are below /v1"
            yield f"providers.{name}.base_url", what


def _in_clear(scene: Scene) -> Found:
    for name, recipe in scene.house.recipes.items():
        url = urlsplit(recipe.base_url)
        if url.scheme == "http" and recipe.keys and not on_loopback(url.netloc):
            yield f"providers.{name}.base_url", "is http; its key travels in the clear"


def _whole_path(scene: Scene) -> Found:
    for name, recipe in scene.house.recipes.items():
        url = urlsplit(recipe.base_url)
        if found := ENDPOINT.search(url.path.rstrip("/")):
            what = f"ends in {found[0]}, which is added for each request; leave that part out"
            yield f"providers.{name}.base_url", what
        if url.query or url.fragment:
            mark = "?" if url.query else "#"
            yield f"providers.{name}.base_url", f"what stands behind its {mark} is never sent"


# -- names ------------------------------------------------------------------------------------


def _odd_names(scene: Scene) -> Found:
    for name in scene.config.providers:
        if "#" in name or len(name.split()) > 1:
            what = "a name with a blank or # is hard to write: keys look like provider#credential"
            yield f"providers.{name}", what


def _unused_models(scene: Scene) -> Found:
    """Settings of a model that no alias leads to, though one leads to another of its provider."""
    for name, table in scene.config.providers.items():
        chains = scene.chains.values()
        used = {target.model for chain in chains for target in chain if target.provider == name}
        models = table.get("models", {})
        assert isinstance(models, dict)
        for model in models:
            if model not in used and (used or not scene.house.rules.allow_specs):
                what, asked = "no alias leads to this model", meant(model, used)
                yield f"providers.{name}.models.{model}", f"{what}; {asked}" if asked else what


# -- numbers ----------------------------------------------------------------------------------


def _cut_short(scene: Scene) -> Found:
    """Limits of time that another one is always quicker than. Defaults are nobody's mistake."""
    for name, table in scene.config.providers.items():
        limits = {key: float(str(table[key])) for key in ("connect_timeout", "first_byte_timeout")}
        own = {key for key in limits if table[key] != DEFAULTS[key]}
        connect, first = limits.values()
        if "connect_timeout" in own and 0 < first < connect:
            what = f"is {connect:g}; first_byte_timeout ({first:g}) is over before that"
            yield f"providers.{name}.connect_timeout", what
        if "first_byte_timeout" in own and first > scene.house.rules.timeout:
            what = f"is {first:g}; gateway.timeout ({scene.house.rules.timeout:g}) is over before"
            yield f"providers.{name}.first_byte_timeout", what


def _upside_down(scene: Scene) -> Found:
    base, cap = (float(str(scene.config.health[key])) for key in ("base", "cap"))
    if cap < base:
        yield "health.cap", f"is {cap:g}, less than base ({base:g}): every bench takes {cap:g} s"


def _crowd(scene: Scene) -> Found:
    workers = int(str(scene.config.gateway["workers"]))
    if workers > WORKERS:
        yield "gateway.workers", f"are {workers} processes; more than there are cores gain nothing"


LINTS: tuple[Callable[[Scene], Found], ...] = (
    _lonely,
    _one_domain,
    _twice,
    _swallowed,
    _unreachable,
    _nothing,
    _reused_keys,
    _shared_accounts,
    _keyless,
    _doubled_path,
    _no_path,
    _in_clear,
    _whole_path,
    _odd_names,
    _unused_models,
    _cut_short,
    _upside_down,
    _crowd,
)
