"""Every way a provider writes "come back in N seconds". Reads no clock and caps nothing.

Absolute times count from the response's own `Date`, or from `now` if the caller knows it; without
either they say nothing. Zero, negative and endless values are ways of not answering.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Protocol, runtime_checkable

from understudy.core.evidence import Facts

MS_FROM = 1e11  # epochs above this are in milliseconds
EPOCH_FROM = 1e9  # numbers above this are epochs, below it they are seconds to wait
UNITS = {
    "ms": 0.001,
    "millisecond": 0.001,
    "毫秒": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "second": 1.0,
    "秒": 1.0,
    "秒钟": 1.0,
    "m": 60.0,
    "min": 60.0,
    "minute": 60.0,
    "分": 60.0,
    "分钟": 60.0,
    "h": 3600.0,
    "hr": 3600.0,
    "hour": 3600.0,
    "小时": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
    "天": 86400.0,
    "w": 604800.0,
    "week": 604800.0,
}
_PART = re.compile(
    r"(\d{1,15}(?:\.\d{1,12})?)\s?(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h"
    r"|days?|d|weeks?|w|毫秒|秒钟?|分钟?|小时|天)(?![a-z])[\s,]{0,2}(?:and )?",
    re.I,
)
_NUMBER = re.compile(r"[+-]?\d{1,18}(?:\.\d{1,18})?(?:e[+-]?\d{1,2})?", re.I)
_COUNT = re.compile(
    r"(?<![\w.:/-])\d{1,15}(?:\.\d{1,12})?(?![\d:/-])"
    r"(\s?(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?)(?![a-z]))?",
    re.I,
)
# Words of waiting before a number; `retrying in` is a client's own plan.
_WAIT = re.compile(
    r"\b(?:retry|try|wait|resets?|available|again|refresh(?:es)?|restored|lifted|back off)\b"
    r"[^\n.;!?\d]{0,48}$",
    re.I,
)
_BARE = re.compile(r"retry.?after\W{0,4}$", re.I)
_SPAN = re.compile(r"\bin (?:(\d{1,4})\.)?(\d{1,2}):([0-5]\d):([0-5]\d)\b")  # .NET: days.h:m:s
_PROTO = re.compile(r"retry_delay \{\s{0,4}seconds: (\d{1,9})(?:\s{1,4}nanos: (\d{1,9}))?")
_PROSE_CN = re.compile(r"(\d{1,9})\s?(毫秒|秒|分钟|小时|天)\s?(?:之?后|内)")
_HTTP_DATE = re.compile(r"(\d{1,2})[ -]([A-Za-z]{3})[ -](\d{2,4}) (\d\d):(\d\d):(\d\d)")
_RFC3339 = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)? ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)", re.I
)
_RESET_WORD = re.compile(r"reset|again|regain|retry|until|available", re.I)
_BAR_EPOCH = re.compile(r"limit reached\|(\d{10})\b", re.I)
_MONTHS = "janfebmaraprmayjunjulaugsepoctnovdec"

IN_MS = frozenset(("retryafterms",))


@runtime_checkable
class _HasItems(Protocol):
    def items(self) -> Iterable[object]: ...


def pairs(headers: object) -> dict[str, str]:
    """Headers in any form as lower-case text; garbage is dropped."""
    if headers is None:
        return {}
    # A dict first: asking whether something follows a protocol takes 15 us.
    items: object = headers
    if isinstance(headers, dict) or isinstance(headers, Mapping | _HasItems):  # noqa: SIM101
        items = headers.items()
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        return {}
    out: dict[str, str] = {}
    for item in islice(items, 200):
        if isinstance(item, tuple | list) and len(item) == 2:
            out[_text(item[0]).strip().lower()] = _text(item[1]).strip()
    return out


def _text(value: object) -> str:
    if isinstance(value, bytes | bytearray):
        return value[:2_000].decode("latin-1")
    return str(value)[:2_000] if isinstance(value, str | int | float) else ""


def retry_after(
    headers: Mapping[str, str], facts: Facts, now: float | None = None
) -> tuple[float | None, str]:
    """Seconds to wait and where they were written ("header", "body"), or (None, "")."""
    date = headers.get("date")
    base = (epoch_of(date) if date else None) or now
    found = _from_headers(headers, base)
    if found is not None:
        return found, "header"
    quoted = pairs(facts.headers) if facts.headers else {}
    found = _from_fields(facts.delays, base) or _from_headers(quoted, base)
    found = found or _from_prose((*facts.messages, *facts.asides), base)
    return found, "body" if found is not None else ""


def duration_of(text: str) -> float | None:
    """Seconds in `1h2m3.5s`, `120ms`, `34s`, `6hr 29min`; None when it is something else."""
    text = text.strip()
    at, total = 0, 0.0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            return None
        total += _seconds(part[1], part[2])
        at = part.end()
    return _sane(total)


def number_of(text: str) -> float | None:
    """A plain number, sentinels included; None when it is something else."""
    text = text.strip()  # of more than `float` takes for blank
    return float(text) if _NUMBER.fullmatch(text) else None


def epoch_of(text: str) -> float | None:
    """Epoch seconds of an HTTP date or an RFC 3339 time with a zone."""
    match = _HTTP_DATE.search(text)
    try:
        if match:
            year = int(match[3]) + (2000 if len(match[3]) == 2 else 0)
            month = _MONTHS.index(match[2].lower()) // 3 + 1
            clock = (int(match[4]), int(match[5]), int(match[6]))
            return datetime(year, month, int(match[1]), *clock, tzinfo=UTC).timestamp()
        zoned = _RFC3339.search(text)
        if zoned is None:
            return None
        iso = re.sub(r" ?(?:utc|gmt|z)$", "+00:00", zoned[0], flags=re.I)
        return datetime.fromisoformat(iso.replace(" ", "T", 1)).timestamp()
    except (ValueError, OverflowError):
        return None


def _from_headers(headers: Mapping[str, str], base: float | None) -> float | None:
    for name, read in PLAIN:
        found = read(headers[name], base) if name in headers else None
        if found is not None:
            return found
    for name, value in headers.items():
        if name.endswith("-retry-after"):  # `x-ai-ratelimit-retry-after`
            return _moment(value, base)
    resets = {name: value for name, value in headers.items() if "-reset" in name}
    if not resets:
        return None
    return (
        _codex(headers, base)
        or _buckets(headers, resets, base)
        or _moment(headers.get("ratelimit-reset", ""), base)
        or _moment(headers.get("x-ratelimit-reset", ""), base)
        or _unified(headers, base)
    )


def _buckets(
    headers: Mapping[str, str], resets: Mapping[str, str], base: float | None
) -> float | None:
    """The reset of the exhausted bucket; the latest one when several are."""
    found: list[float] = []
    for name, value in resets.items():
        if "ratelimit" not in name or "unified" in name:
            continue
        if number_of(headers.get(name.replace("-reset", "-remaining"), "")) == 0:
            found += _listed(_moment(value, base))
    return max(found, default=None)


def _unified(headers: Mapping[str, str], base: float | None) -> float | None:
    """Claude plans: one reset for all, or that of the window that turned the request down."""
    prefix = "anthropic-ratelimit-unified"
    windows = [
        name.removesuffix("-status")
        for name, value in headers.items()
        if name.startswith(prefix + "-") and name.endswith("-status") and value == "rejected"
    ]
    resets = (_moment(headers.get(f"{w}-reset", ""), base) for w in (prefix, *windows))
    return next((r for r in resets if r is not None), None)


def _codex(headers: Mapping[str, str], base: float | None) -> float | None:
    """ChatGPT plans: two windows with the share used of each; the full one counts."""
    found: list[float] = []
    for window in ("x-codex-primary", "x-codex-secondary"):
        used = number_of(headers.get(f"{window}-used-percent", "100"))
        if used is not None and used >= 100:
            wait = _moment(headers.get(f"{window}-reset-after-seconds", ""), base)
            found += _listed(wait or _moment(headers.get(f"{window}-reset-at", ""), base))
    return max(found, default=None)


def _from_fields(delays: Iterable[tuple[str, object]], base: float | None) -> float | None:
    for key, value in delays:
        if isinstance(value, str) or (isinstance(value, int | float) and abs(value) < 1e15):
            text = str(value)[:60]
            found = _millis(text, base) if key in IN_MS else _moment(text, base)
            if found is not None:
                return found
    return None


def _from_prose(messages: Iterable[str], base: float | None) -> float | None:
    for text in messages:
        found = _spoken(text) or _spoken_moment(text, base)
        if found is not None:
            return found
    return None


def _spoken(text: str) -> float | None:
    proto = _PROTO.search(text) if "retry_delay" in text else None  # Google's clients in Python
    if proto:
        return _sane(float(proto[1]) + float(proto[2] or 0) / 1e9)
    for match in islice(_COUNT.finditer(text), 16):
        before = text[max(0, match.start() - 64) : match.start()]
        if (_WAIT if match[1] else _BARE).search(before):  # a bare number needs plainer words
            found = _parts(text, match.start()) if match[1] else _sane(float(match[0]))
            if found is not None:
                return found
    span = _SPAN.search(text)
    if span:
        days, hours, minutes, seconds = (float(part or 0) for part in span.groups())
        return _sane(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
    chinese = None if text.isascii() else _PROSE_CN.search(text)
    return _sane(_seconds(chinese[1], chinese[2])) if chinese else None


def _parts(text: str, at: int) -> float | None:
    """All parts of a duration that begins here: `6hr 29min`."""
    total = 0.0
    while part := _PART.match(text, at):
        total += _seconds(part[1], part[2])
        at = part.end()
    return _sane(total)


def _spoken_moment(text: str, base: float | None) -> float | None:
    if base is None:
        return None
    epoch = _BAR_EPOCH.search(text)
    if epoch:
        return _until(float(epoch[1]), base)
    return _until(epoch_of(text), base) if _RESET_WORD.search(text) else None


def _moment(text: str, base: float | None) -> float | None:
    """Seconds from a number, a duration, a date or an epoch."""
    number = number_of(text) if text else None
    if number is None:
        return (duration_of(text) or _until(epoch_of(text), base)) if text else None
    if number < EPOCH_FROM:
        return _sane(number)
    return _until(number / 1000 if number > MS_FROM else number, base)


def _millis(text: str, base: float | None) -> float | None:
    number = number_of(text)
    return None if number is None else _sane(number / 1000)


def _until(epoch: float | None, base: float | None) -> float | None:
    return None if epoch is None or base is None else _sane(epoch - base)


def _seconds(number: str, unit: str) -> float:
    unit = unit.lower()
    return float(number) * (UNITS.get(unit) or UNITS[unit.removesuffix("s")])


def _sane(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) and seconds > 0 else None


def _listed(seconds: float | None) -> list[float]:
    return [] if seconds is None else [seconds]


# Headers that say it outright, the most exact first (official SDKs read them in this order).
PLAIN: tuple[tuple[str, Callable[[str, float | None], float | None]], ...] = (
    ("retry-after-ms", _millis),
    ("x-ms-retry-after-ms", _millis),
    ("retry-after", _moment),
    ("x-ratelimit-reset-after", _moment),
)
