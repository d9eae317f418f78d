"""`understudy check`: what is wrong with a configuration file, and what is unwise about it.

Errors are what `serve` would refuse, and, with `probe`, providers that cannot be reached: a
connection is opened and closed, nothing is sent. Warnings are lints: a table of small functions.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from understudy.core.errors import SpecError
from understudy.core.spec import elements
from understudy.core.target import Target
from understudy.gateway.build import exposed, furnish
from understudy.gateway.config import Config, examine
from understudy.gateway.house import House
from understudy.providers.catalogue import on_loopback
from understudy.providers.dial import dial
from understudy.providers.http import HttpProvider
from understudy.providers.pool import tls
from understudy.providers.route import choose
from understudy.providers.transport import PORTS, Origin
from understudy.providers.trouble import trouble

ERROR, WARNING = "error", "warning"
OWN_PATHS = {"anthropic": ("/v1",), "gemini": ("/v1", "/v1beta"), "ollama": ("/api", "/v1")}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to mend, and where. Never quotes a key."""

    level: str  # "error" or "warning"
    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.level:<7}  {self.path}: {self.what}"

    def to_dict(self) -> dict[str, str]:
        return {"level": self.level, "path": self.path, "what": self.what}


def check(path: Path | str, env: Mapping[str, str], probe: bool = False) -> list[Finding]:
    """Every finding, errors first. An empty list means that nothing is wrong."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        return [Finding(ERROR, "the file", f"cannot be read: {why}")]
    config, problems = examine(text, env)
    house, unbuilt = furnish(config, env, time.monotonic)
    # What a key already told of is not told of the table it stands in as well.
    more = [p for p in unbuilt if not any(q.path.startswith(f"{p.path}.") for q in problems)]
    host = str(config.gateway["host"])
    wrong = [*problems, *more, *exposed(host, config.gateway["keys"])]
    errors = [Finding(ERROR, problem.path, problem.what) for problem in wrong]
    scene = Scene(config, house)
    warnings = [Finding(WARNING, *found) for lint in LINTS for found in lint(scene)]
    if probe:
        errors += asyncio.run(_probed(scene, env))
    return [*dict.fromkeys(errors), *dict.fromkeys(warnings)]


def render(findings: Sequence[Finding]) -> str:
    """For people: one finding a line, then how many there are."""
    if not findings:
        return "nothing to mend"
    counts = [
        f"{count} {level}" + ("s" if count > 1 else "")
        for level in (ERROR, WARNING)
        if (count := sum(finding.level == level for finding in findings))
    ]
    return "\n".join([*map(str, findings), ", ".join(counts)])


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


# -- lints ------------------------------------------------------------------------------------


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


def _in_clear(scene: Scene) -> Found:
    for name, recipe in scene.house.recipes.items():
        url = urlsplit(recipe.base_url)
        if url.scheme == "http" and recipe.keys and not on_loopback(url.netloc):
            yield f"providers.{name}.base_url", "is http; its key travels in the clear"


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
    _in_clear,
)


# -- probing ----------------------------------------------------------------------------------


async def _probed(scene: Scene, env: Mapping[str, str]) -> list[Finding]:
    """A connection, with TLS where it is due, to every provider; all at once."""
    used = [(name, p) for name, p in scene.used.items() if p.base_url]
    said = await asyncio.gather(*(_reached(provider, env) for _, provider in used))
    return [
        Finding(ERROR, f"providers.{name}", why)
        for (name, _), why in zip(used, said, strict=True)
        if why
    ]


async def _reached(provider: HttpProvider, env: Mapping[str, str]) -> str:
    """Why it cannot be reached, "" if it can. Behind a proxy only the proxy can be tried."""
    origin = Origin.from_url(provider.base_url)
    if (proxy := choose(env, origin)) is not None:
        parts = urlsplit(proxy)  # with a password, perhaps, which an origin refuses
        port = parts.port or PORTS[parts.scheme]
        origin = Origin(parts.scheme, parts.hostname or "", port)
    context = tls() if origin.scheme == "https" else None
    seconds = provider.settings.limits.connect
    try:
        async with asyncio.timeout(seconds):
            await dial(asyncio.get_running_loop(), origin, context, _Caller)
    except TimeoutError:
        return f"{origin.authority} gave no connection within {seconds:g} s"
    except (OSError, UnicodeError) as error:
        return trouble(error, origin, sent=False).message
    return ""


class _Caller(asyncio.Protocol):
    """Hangs up as soon as somebody answers."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()
