"""Every key of a scenario file: where it stands, what it takes, what it means.

But for those of policy and health, which are the same as in a gateway's file.
"""

from __future__ import annotations

from collections.abc import Callable

from understudy.core.faults import Fault
from understudy.core.policy import POLICIES
from understudy.gateway.keys import Key
from understudy.gateway.kinds import (
    COUNT,
    FLAG,
    RETRIES,
    TEXT,
    WAIT,
    Kind,
    is_number,
    number,
    one_of,
)
from understudy.rehearse.chance import KINDS


def _chance(least: float) -> Callable[[object], bool]:
    def fits(value: object) -> bool:
        if is_number(value):
            return float(str(value)) >= least
        if not isinstance(value, dict) or tuple(value) not in _ORDERS:
            return False
        return all(is_number(n) and n >= (0 if k == "sigma" else least) for k, n in value.items())

    return fits


_ORDERS = {order for keys in KINDS.values() for order in (keys, keys[::-1])}
_SHAPES = "{ low, high }, { mean } or { median, sigma }"
TABLE = Kind("a table", lambda v: isinstance(v, dict))
TABLES = Kind("a list of tables", lambda v: isinstance(v, list) and all(map(TABLE.fits, v)))
SECONDS = number(1e-6, "seconds above 0")
SHARE = number(0, "a share from 0 to 1", 1)
PRICE = number(0, "dollars, 0 or more")
TIMES = Kind(f"seconds, or {_SHAPES}", _chance(0.0))
AMOUNT = Kind(f"a number above 0, or {_SHAPES}", _chance(1e-9))
# The caller's leaving is the traffic's doing; a cut stream can befall any target.
FAULTS = tuple(str(fault) for fault in Fault if fault is not Fault.CLIENT_DISCONNECT)

# fmt: off
SCENARIO = (
    Key("name", TEXT, "what the report calls it"),
    Key("seconds", SECONDS, "how long requests come"),
    Key("timeout", SECONDS, "of a whole request; without one there is no limit"),
    Key("policy", one_of(*sorted(POLICIES)), "which table decides"),
    Key("seed", RETRIES, "one seed, one history"),
)
TRAFFIC = (
    Key("rate", number(1e-6, "requests a second, above 0"), "requests a second"),
    Key("pattern", one_of("poisson", "constant", "bursts"), "how they come"),
    Key("burst", COUNT, "requests at once, with bursts"),
    Key("streams", SHARE, "share of requests that stream"),
    Key("concurrency", COUNT, "requests at once; who comes later waits for a place"),
    Key("input_tokens", RETRIES, "of a request"),
    Key("output_tokens", AMOUNT, "of an answer"),
    Key("bad", SHARE, "share of requests that no target accepts"),
    Key("leaves", SHARE, "share of callers that do not wait for the end"),
    Key("leaves_after", TIMES, "when those leave"),
)
TARGET = (
    Key("first_content", TIMES, "until the first content"),
    Key("tokens_per_second", AMOUNT, "after that"),
    Key("latency", TIMES, "of a plain answer, instead of the two above"),
    Key("fails_in", TIMES, "how long a refusal takes"),
    Key("outages", TABLES, "times in which it fails or is slow"),
    Key("errors", TABLE, "share of attempts that fail, by fault"),
    Key("limit", TABLE, "its rate limit"),
    Key("first_byte_timeout", WAIT, "streams: our wait for the first content"),
    Key("idle_timeout", WAIT, "streams: silence after it"),
    Key("response_timeout", WAIT, "plain requests: the whole answer"),
    Key("credentials", COUNT, "how many keys we have"),
    Key("window", COUNT, "tokens"),
    Key("input_price", PRICE, "for a million tokens"),
    Key("output_price", PRICE, "for a million tokens"),
)
OUTAGE = (
    Key("start", WAIT, "seconds from the beginning"),
    Key("seconds", SECONDS, "how long"),
    Key("fault", one_of(*FAULTS), "how it fails"),
    Key("slow", number(1, "a factor, 1 or more"), "it answers, so many times as slowly"),
)
LIMIT = (
    Key("rate", number(1e-6, "requests a second, above 0"), "for one credential"),
    Key("burst", number(1, "a number, 1 or more"), "how many at once"),
    Key("hint", FLAG, "does it say when to come back"),
)
# fmt: on
TOP = ("scenario", "traffic", "targets", "policy", "health")
