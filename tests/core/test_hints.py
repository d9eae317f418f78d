"""Every way of writing a delay, read back; and no text that makes the reader stumble."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from understudy.core.evidence import read_body
from understudy.core.hints import duration_of, epoch_of, number_of, pairs, retry_after

DATE = {"date": "Wed, 21 Oct 2026 07:28:00 GMT"}
NOW = 1_792_567_680.0  # the same moment


def delay(
    headers: Mapping[str, str] | None = None, body: object = None, now: float | None = None
) -> tuple[float | None, str]:
    return retry_after(pairs(headers or {}), read_body(body), now)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "2"}, 2.0),
        ({"retry-after": "24367"}, 24367.0),
        ({"RETRY-AFTER": "1.5"}, 1.5),
        ({"retry-after": "2", "retry-after-ms": "1250"}, 1.25),
        ({"retry-after": "1m30s"}, 90.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:29:30 GMT", **DATE}, 90.0),
        ({"retry-after": "Wednesday, 21-Oct-26 07:29:30 GMT", **DATE}, 90.0),
        ({"x-ratelimit-reset-after": "12"}, 12.0),
        ({"x-ai-ratelimit-retry-after": "24"}, 24.0),
        ({"ratelimit-reset": "42"}, 42.0),
        ({"x-ms-retry-after-ms": "1250", "retry-after": "2"}, 1.25),
        ({"x-ratelimit-reset": "1792567740", **DATE}, 60.0),
        ({"x-ratelimit-reset": "1792567740000", **DATE}, 60.0),
        ({"anthropic-ratelimit-unified-reset": "1792567800", **DATE}, 120.0),
    ],
)
def test_headers_that_say_it_outright(headers: dict[str, str], seconds: float) -> None:
    found, source = delay(headers)
    assert found == pytest.approx(seconds)
    assert source == "header"


def test_the_reset_of_the_exhausted_bucket_counts_not_that_of_another() -> None:
    openai = {
        "x-ratelimit-remaining-requests": "59",
        "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "6m0s",
    }
    anthropic = {
        "anthropic-ratelimit-requests-remaining": "12",
        "anthropic-ratelimit-requests-reset": "2026-10-21T07:29:00Z",
        "anthropic-ratelimit-tokens-remaining": "0",
        "anthropic-ratelimit-tokens-reset": "2026-10-21T07:28:45Z",
        **DATE,
    }
    assert (delay(openai), delay(anthropic)) == ((360.0, "header"), (45.0, "header"))


def test_buckets_with_something_left_say_nothing() -> None:
    left = {"x-ratelimit-remaining-requests": "7", "x-ratelimit-reset-requests": "8s"}
    assert delay(left) == (None, "")


def test_a_full_plan_window_counts_and_the_other_does_not() -> None:
    codex = {
        "X-Codex-Primary-Used-Percent": "100",
        "X-Codex-Primary-Reset-After-Seconds": "3600",
        "X-Codex-Secondary-Used-Percent": "40",
        "X-Codex-Secondary-Reset-After-Seconds": "500000",
    }
    assert delay(codex) == (3600.0, "header")


def test_a_rejected_window_of_a_plan_has_its_own_reset() -> None:
    headers = {
        "anthropic-ratelimit-unified-5h-status": "rejected",
        "anthropic-ratelimit-unified-5h-reset": "1792568280",
        "anthropic-ratelimit-unified-7d-status": "allowed",
        "anthropic-ratelimit-unified-7d-reset": "1793000000",
        **DATE,
    }
    assert delay(headers) == (600.0, "header")


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ('{"error":{"details":[{"retryDelay":"34s"}]}}', 34.0),
        ('{"error":{"details":[{"retryDelay":"0.539477544s"}]}}', 0.539477544),
        ('{"error":{"details":[{"metadata":{"quotaResetDelay":"373.801628ms"}}]}}', 0.373801628),
        ('{"error":"loading","estimated_time":20.0}', 20.0),
        ('{"error":{"type":"usage_limit_reached","resets_in_seconds":8231}}', 8231.0),
        ('{"detail":"throttled","retry_after":5}', 5.0),
        ('{"error":{"message":"x","retry_after_ms":250}}', 0.25),
        ('{"error":{"message":"cooling","reset_seconds":7}}', 7.0),
    ],
)
def test_fields_of_the_body(body: str, seconds: float) -> None:
    found, source = delay(body=body)
    assert found == pytest.approx(seconds)
    assert source == "body"


def test_an_upstreams_headers_quoted_in_the_body_are_read_like_headers() -> None:
    quoted = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1792567740000"}
    body = {"error": {"code": 429, "metadata": {"headers": quoted}}}
    assert delay(DATE, body) == (60.0, "body")


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("Please try again in 11.054s.", 11.054),
        ("Please try again in 28ms.", 0.028),
        ("Please try again in 7m12s.", 432.0),
        ("Please try again in 9m38.016s. Need more?", 578.016),
        ("Please retry after 9 seconds.", 9.0),
        ("Please retry in 900.2ms.", 0.9002),
        ("Rate limit exceeded. Try again in 35 seconds.", 35.0),
        ("please try again after 1 seconds", 1.0),
        ("Your limit resets in 6hr 29min", 23340.0),
        ("try again in 5 minutes", 300.0),
        ("try again in 1 hour and 30 minutes", 5400.0),
        ("Expected available in 1 second.", 1.0),
        ("Please wait 24367 seconds before retrying.", 24367.0),
        ("Your quota will reset after 2h31m14s.", 9074.0),
        ("Your rate limit resets in ~5s.", 5.0),
        ("retry-after: 30", 30.0),
        ("Retry your request after 10 seconds", 10.0),
        ("available again in 2 days", 172800.0),
        ("Quota will be replenished in 2.03:04:05.", 183845.0),
        ("Quota will be replenished in 00:04:05", 245.0),
        ("请在 30 秒后重试", 30.0),
        ("请等待 2 分钟后再试", 120.0),
        ('quota [links {\n  url: "x"\n}\n, retry_delay {\n  seconds: 34\n}\n]', 34.0),
        ("quota [retry_delay {\n  seconds: 2\n  nanos: 500000000\n}\n]", 2.5),
        ('[m] [429]: {"error":{"message":"slower"}} (reset after 1m 30s)', 90.0),
    ],
)
def test_prose(said: str, seconds: float) -> None:
    found, source = delay(body={"error": {"message": said}})
    assert found == pytest.approx(seconds)
    assert source == "body"


@pytest.mark.parametrize(
    "said",
    [
        "retrying 1/5 in 183ms",
        "Retrying in 5 seconds",
        "Limit 150 per 86400s exceeded",
        "If you created it within the last 5 minutes, please wait a moment and try again",
        "Your limit will reset at 2026-09-09 05:38:28",
        "您的限额将在 2026-08-25 07:41:44 重置",
        "timed out after 30 seconds",
        "Please try again in a few minutes.",
        "try again; 3 s were not enough",
        "retry in 0 seconds",
    ],
)
def test_prose_that_is_no_promise(said: str) -> None:
    assert delay(DATE, {"error": {"message": said}}) == (None, "")


@pytest.mark.parametrize(
    "value",
    ["0", "-1", "", "soon", "nan", "inf", "99 Foo 2026 07:28:00", "-inf", "1e400", "9" * 400],
)
@pytest.mark.parametrize("name", ["retry-after", "retry-after-ms", "ratelimit-reset"])
def test_sentinels_and_nonsense_are_no_delay(name: str, value: str) -> None:
    assert delay({name: value}) == (None, "")


def test_a_sentinel_lets_the_next_source_speak() -> None:
    assert delay({"retry-after": "0"}, {"message": "retry after 3 seconds"}) == (3.0, "body")


def test_a_moment_needs_a_clock() -> None:
    headers = {"retry-after": "Wed, 21 Oct 2026 07:29:30 GMT"}
    assert (delay(headers), delay(headers, now=NOW)) == ((None, ""), (90.0, "header"))


def test_a_moment_in_prose_counts_only_with_a_zone() -> None:
    zoned = {"message": "Limit resets at: 2026-10-21 07:29:00 UTC"}
    assert delay(DATE, zoned) == (60.0, "body")
    assert delay(now=NOW, body="Claude AI usage limit reached|1792567980") == (300.0, "body")


def test_a_moment_that_has_passed_is_no_delay() -> None:
    assert delay({"retry-after": "Wed, 21 Oct 2026 07:27:00 GMT", **DATE}) == (None, "")


def go_duration(hours: int, minutes: int, millis: int) -> str:
    """As Go prints it: the largest unit that is not zero first, seconds with their fraction."""
    if not hours and not minutes and millis < 1000:
        return f"{millis}ms"
    head = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{head}{millis / 1000:g}s"


@given(st.integers(0, 99), st.integers(0, 59), st.integers(0, 59_999))
def test_go_durations_survive_the_round_trip(hours: int, minutes: int, millis: int) -> None:
    seconds = hours * 3600 + minutes * 60 + millis / 1000
    expected = pytest.approx(seconds) if seconds else None
    assert duration_of(go_duration(hours, minutes, millis)) == expected


@given(st.floats(0.001, 1e8))
def test_google_durations_survive_the_round_trip(seconds: float) -> None:
    assert duration_of(f"{seconds:.9f}s") == pytest.approx(seconds, abs=1e-8)


@given(st.integers(0, 4_000_000_000))
def test_points_in_time_survive_the_round_trip(epoch: int) -> None:
    moment = datetime.fromtimestamp(epoch, UTC)
    written = (
        moment.isoformat(),
        f"{moment:%Y-%m-%d %H:%M:%S} UTC",
        f"{moment:%d %b %Y %H:%M:%S}",
    )
    assert [epoch_of(text) for text in written] == [epoch] * 3


WORDS = st.sampled_from(
    ["retry", "after", "in", "wait", "reset", *".~:|- \n", "1", "9.5", "s", "ms"]
)
SCRAPS = st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=12).map("".join))
NAMES = st.sampled_from(
    ["retry-after", "retry-after-ms", "date", "x-ratelimit-reset", "x-ratelimit-remaining"]
) | st.text(max_size=20)


@given(st.dictionaries(NAMES, SCRAPS, max_size=5), SCRAPS, st.none() | st.floats())
def test_no_text_makes_a_delay_that_is_none(
    headers: dict[str, str], said: str, now: float | None
) -> None:
    seconds, source = delay(headers, {"error": {"message": said, "retry_after": said}}, now)
    assert (seconds is None) == (source == "")
    assert seconds is None or (math.isfinite(seconds) and seconds > 0)


@given(SCRAPS)
@example("0\x1f")
def test_small_readers_never_stumble(text: str) -> None:
    for read in (duration_of, number_of, epoch_of):
        found = read(text)
        assert found is None or math.isfinite(found)
