"""Who takes part in a soak, what they are called, and what is drawn for them. Values only.

Everything here is known to all sides: targets and checker must agree on names without talking.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from understudy.core.faults import Fault
from understudy.rehearse.catalogue import CATALOGUE
from understudy.rehearse.named import Named
from understudy.rehearse.script import Cue, Timed

MIB = 1 << 20
# provider -> dialect; each listens on a port of its own
PROVIDERS = {"a": "openai", "b": "anthropic", "c": "gemini", "d": "openai", "e": "openai"}
PATIENT = "e"  # with this one only the request's own deadline ends a wait
# Planted: whoever finds one of these in anything the gateway emits has found a leak (R10).
CLIENT_KEY = "client-planted-51e27f3a9c"
ADMIN_KEY = "admin-planted-f6aab81d04"
PROVIDER_KEYS = {name: f"plain.{name}.provider.secret.0c9e77" for name in PROVIDERS}
PLANTED = {"client": CLIENT_KEY, "admin": ADMIN_KEY, **PROVIDER_KEYS}

WELL, QUOTES, TEN_BYTES, TALKS = "well", "quotes", "ten-bytes", "talks"
MODELS = 12  # of the moody kind at each provider; a bench of one leaves the others
MOODY = ("mixed", "other", "alike")  # chains of them, one for each model
CHAINS: dict[str, tuple[str, ...]] = {
    **{f"mixed{n}": (f"a/m{n}", f"b/m{n}", f"c/m{n}", f"d/m{n}") for n in range(MODELS)},
    **{f"other{n}": (f"b/m{n}", f"d/m{n}", f"a/m{n}") for n in range(MODELS)},
    **{f"alike{n}": (f"a/m{n}", f"d/m{n}") for n in range(MODELS)},
    "outage": ("a/503-empty", "d/well"),
    "spent": ("a/500", "b/529", "c/503-page"),
    "bad": ("a/400", "d/well"),
    "drips": ("e/ten-bytes", "b/ten-bytes"),
    "talk": ("e/talks", "d/well"),
    "indiscreet": ("a/quotes", "b/quotes", "d/well"),
    "huge": ("a/gzip-bomb", "d/well"),
    "larger": ("d/too-large", "b/well"),
}
# How often each is asked for, in parts.
SHARES = {
    "mixed": 25,
    "other": 15,
    "alike": 15,
    "outage": 15,
    "spent": 3,
    "bad": 5,
    "drips": 2,
    "talk": 2,
    "indiscreet": 2,
    "huge": 0.1,
    "larger": 0.1,
}
GOOD = 0.65  # share of good answers of a moody target
HEAVY = frozenset(("gzip-bomb", "too-large", "endless-line"))  # only where asked for by name
# Names of connection troubles that only a dialler can show, not a server that was reached.
UNREACHED = frozenset(("refused", "unknown-host", "bad-certificate"))
# A refused key takes a whole provider out of all chains, so that must stay rare.
RARE = {Fault.AUTH: 0.05, Fault.OUT_OF_CREDITS: 0.05, Fault.RATE_LIMIT: 0.4}
TIMEOUT = 4.0  # seconds of a whole request
MAX_REPLY = MIB


@dataclass(frozen=True, slots=True)
class Wish:
    """One request as its client means it."""

    id: str
    surface: str
    model: str  # an alias
    stream: bool
    way: str  # stays, leaves, slow, trickles or tight
    after: float = 0.0  # seconds until it leaves
    deadline: float = TIMEOUT


WAYS = {"stays": 70, "leaves": 12, "slow": 2, "trickles": 4, "tight": 10}
SURFACES = ("openai", "anthropic", "responses", "gemini")


def draw(luck: Random, number: int) -> Wish:
    way = luck.choices(list(WAYS), list(WAYS.values()))[0]
    model = luck.choices(list(SHARES), list(SHARES.values()))[0]
    if model in MOODY:
        model += str(luck.randrange(MODELS))
    name = f"rq{'big' if way == 'slow' else ''}-{number:x}-{luck.getrandbits(24):06x}"
    return Wish(
        name,
        luck.choice(SURFACES),
        "alike0" if way == "slow" else model,
        luck.random() < 0.6,
        way,
        luck.uniform(0.0, 1.2),
        luck.choice([0.5, 1.0, 2.0]) if way == "tight" else TIMEOUT,
    )


def cue(target: str, stream: bool, luck: Random) -> tuple[str, Cue | None]:
    """What a target does with one request: a name for it, and the cue; None is a good answer."""
    provider, _, model = target.partition("/")
    if model == TEN_BYTES:
        return model, Timed("drip", 0.1)
    if model == TALKS:
        return model, None
    if model in CATALOGUE:
        return model, CATALOGUE[model]
    if not model.startswith("m") or luck.random() < GOOD:
        return WELL, None
    rows = _showable(PROVIDERS[provider], stream)
    row = luck.choices(rows, [RARE.get(row.fault, 1.0) if row.fault else 1.0 for row in rows])[0]
    return row.name, row


def _showable(dialect: str, stream: bool) -> list[Named]:
    return [
        row
        for row in CATALOGUE.values()
        if row.name not in HEAVY | UNREACHED
        and dialect in row.dialects
        and row.steps(stream=stream) is not None
    ]


QUICK = "first_byte_timeout = 0.8\nidle_timeout = 0.8\nresponse_timeout = 1.2\n"


def config(ports: dict[str, int], turn: int) -> str:
    """The gateway's file; every turn changes what a reload has to act on."""
    rows = [
        f'[gateway]\nkeys = ["{CLIENT_KEY}"]\nadmin_key = "{ADMIN_KEY}"\n'
        f"timeout = {TIMEOUT}\ndrain_timeout = 5\n",
        "[health]\nbase = 2\ncap = 4\n",
        "[policy]\nmax_delay = 2\ndegrade_seconds = 2\nsession_seconds = 2\nmax_wait = 1\n",
    ]
    for name, dialect in PROVIDERS.items():
        path = "/v1" if dialect == "openai" else ""
        rows.append(
            f'[providers.{name}]\ndialect = "{dialect}"\n'
            f'base_url = "http://127.0.0.1:{ports[name]}{path}"\n'
            f'api_key = "{PROVIDER_KEYS[name]}"\nheaders = {{ x-turn = "{turn}" }}\n'
            f"max_reply = {MAX_REPLY}\nconnect_timeout = 1\n" + ("" if name == PATIENT else QUICK)
        )
    chains = "".join(f'{name} = "{", ".join(chain)}"\n' for name, chain in CHAINS.items())
    return "\n".join(rows) + f"\n[aliases]\n{chains}"
