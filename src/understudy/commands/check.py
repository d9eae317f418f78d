"""`understudy check`: what is wrong with a configuration file, and what is unwise about it.

Errors are what `serve` would refuse, and, with `probe`, providers that cannot be reached: a
connection is opened and closed, nothing is sent. Warnings are lints: see `lints.py`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from understudy.commands.lints import LINTS, Scene
from understudy.core.words import plural
from understudy.gateway.build import exposed, furnish, unwritable
from understudy.gateway.config import Config, Problem, examine, unfilled
from understudy.observe import tracing
from understudy.providers.dial import dial
from understudy.providers.http import HttpProvider
from understudy.providers.pool import tls
from understudy.providers.route import choose
from understudy.providers.transport import PORTS, Origin
from understudy.providers.trouble import trouble
from understudy.share import redis

ERROR, WARNING = "error", "warning"
UNFILLED = "has a $NAME, which is sent as it stands; only ${NAME} is read from the environment"


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
    refused = (
        *exposed(host, config.gateway["keys"]),
        *unwritable(config.journal),
        *_not_installed(config),
    )
    wrong = [*problems, *more, *refused]
    errors = [Finding(ERROR, problem.path, problem.what) for problem in wrong]
    scene = Scene(config, house)
    warnings = [Finding(WARNING, *found) for lint in LINTS for found in lint(scene)]
    warnings += [Finding(WARNING, where, UNFILLED) for where in unfilled(text)]
    if probe:
        errors += asyncio.run(_probed(scene, env))
    return [*dict.fromkeys(errors), *dict.fromkeys(warnings)]


def _not_installed(config: Config) -> Iterator[Problem]:
    """Packages that a setting takes."""
    takes = (
        ("gateway.tracing", config.gateway["tracing"], tracing.needed),
        ("share.url", "url" in config.share, redis.needed),
    )
    for path, wanted, needed in takes:
        try:
            if wanted:
                needed()
        except (tracing.NoTracing, redis.NoRedis) as error:
            yield Problem(path, str(error))


def render(findings: Sequence[Finding]) -> str:
    """For people: one finding a line, then how many there are."""
    if not findings:
        return "nothing to mend"
    counts = [
        plural(count, level)
        for level in (ERROR, WARNING)
        if (count := sum(finding.level == level for finding in findings))
    ]
    return "\n".join([*map(str, findings), ", ".join(counts)])


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
