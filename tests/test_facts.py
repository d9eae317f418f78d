"""What is known of models. Unknown stays unknown."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from understudy import Capabilities, Usage
from understudy.providers.catalogue import by_name
from understudy.providers.facts import (
    MODEL_TAKES,
    UNKNOWN,
    VENDOR_TAKES,
    capabilities,
    cost,
    facts,
    limits,
)

WHEN = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("vendor", "model"),
    [
        ("anthropic", "claude-sonnet-4-5"),
        ("openai", "gpt-4o"),
        ("google", "gemini-2.5-flash"),
        ("gemini", "gemini-2.5-flash"),
        ("groq", "openai/gpt-oss-120b"),
        ("xai", "grok-4"),
        ("moonshot", "kimi-k2-0905-preview"),
        ("openrouter", "anthropic/claude-sonnet-4.5"),
    ],
)
def test_well_known_models_have_windows_and_prices(vendor: str, model: str) -> None:
    known = facts(vendor, model)
    assert known.context_window is not None
    assert known.context_window >= 100_000
    assert known.input_price is not None
    assert known.output_price is not None
    assert 0 < known.input_price < known.output_price
    assert capabilities(vendor, model).context_window == known.context_window


@pytest.mark.parametrize(
    ("vendor", "model"),
    [("openai", "no-such-model"), ("vllm", "qwen3"), ("foreman", "gpt-4o"), ("nobody", "gpt-4o")],
)
def test_what_is_not_known_is_unknown(vendor: str, model: str) -> None:
    assert facts(vendor, model) == UNKNOWN
    assert cost(vendor, model, Usage(1000, 1000)) is None
    assert capabilities(vendor, model).context_window is None


def test_a_price_with_tiers_is_told_by_its_lowest() -> None:
    low, high = (cost("google", "gemini-2.5-pro", Usage(n), at=WHEN) for n in (100_000, 300_000))
    price = facts("google", "gemini-2.5-pro").input_price
    assert low is not None
    assert high is not None
    assert price == low * 10
    assert high > low * 3


def test_cached_tokens_cost_less_and_are_counted_once_however_the_vendor_counts() -> None:
    model = "claude-sonnet-4-5"
    prices = facts("anthropic", model)
    apart = cost("anthropic", model, Usage(100, 10, cache_read=900, cache_apart=True), at=WHEN)
    within = cost("anthropic", model, Usage(1000, 10, cache_read=900), at=WHEN)
    assert prices.input_price is not None
    assert prices.output_price is not None
    assert prices.cache_read_price is not None
    told = 100 * prices.input_price + 900 * prices.cache_read_price + 10 * prices.output_price
    assert apart == within == told / 1_000_000


def test_thinking_beside_the_output_is_paid_for_as_output() -> None:
    beside = Usage(10, 5, reasoning=20, reasoning_apart=True)
    assert cost("google", "gemini-2.5-flash", beside, at=WHEN) == cost(
        "google", "gemini-2.5-flash", Usage(10, 25), at=WHEN
    )


def test_tokens_that_contradict_each_other_have_no_price() -> None:
    assert cost("openai", "gpt-4o", Usage(10, 1, cache_read=500)) is None


def test_no_tokens_cost_nothing() -> None:
    assert cost("openai", "gpt-4o", Usage()) == Decimal(0)


def test_every_row_is_about_a_vendor_we_have() -> None:
    vendors = set(by_name())
    assert set(VENDOR_TAKES) <= vendors
    assert {vendor for vendor, _, _ in MODEL_TAKES} <= vendors


@pytest.mark.parametrize("vendor", by_name())
def test_every_vendor_has_capabilities(vendor: str) -> None:
    assert limits(vendor, "some-model").max_images != 0


@pytest.mark.parametrize(
    ("vendor", "model", "takes"),
    [
        ("anthropic", "claude-opus-4-8", {"structured": True, "max_images": 100}),
        ("anthropic", "claude-opus-4-1-20250805", {"structured": True}),
        ("anthropic", "claude-opus-4-20250514", {"structured": False, "max_images": 100}),
        ("anthropic", "claude-3-7-sonnet-latest", {"structured": False}),
        ("openai", "gpt-4.1", {"structured": True, "max_images": 500}),
        ("openai", "gpt-4", {"structured": False, "max_images": 0}),
        ("openai", "gpt-4-turbo", {"structured": False, "max_images": 500}),
        ("openai", "o1-mini-2024-09-12", {"tools": False}),
        ("gemini", "gemma-3-27b-it", {"tools": False, "structured": False}),
        ("ollama-cloud", "qwen3-vl", {"max_images": 8, "structured": True}),
        ("together", "anything", {"max_images": None, "image_types": ()}),
    ],
)
def test_rows_say_what_a_model_takes(vendor: str, model: str, takes: dict[str, object]) -> None:
    found = limits(vendor, model)
    assert {name: getattr(found, name) for name in takes} == takes


def test_a_picture_at_the_limit_is_still_within_it_as_base64() -> None:
    most = limits("anthropic", "claude-opus-4-8").max_image_bytes
    assert most is not None
    assert (most + 2) // 3 * 4 <= 5 * 1024 * 1024


def test_an_override_has_the_last_word_and_the_rest_stays() -> None:
    own = {"context_window": 4096, "max_images": 0, "image_types": ("image/png",)}
    found = capabilities("anthropic", "claude-opus-4-8", own)
    assert (found.context_window, found.max_images) == (4096, 0)
    assert found.image_types == ("image/png",)
    assert found.max_image_pixels == 8000
    assert limits("nobody", "m") == Capabilities()


def test_an_override_of_something_unknown_is_named() -> None:
    with pytest.raises(ValueError, match="unknown capability 'max_pictures'; known: context_wind"):
        capabilities("openai", "gpt-4o", {"max_pictures": 3})


SCRIPT = """
import sys
if sys.argv[1] == "missing":
    sys.modules["genai_prices"] = None
from understudy import Usage
from understudy.providers.facts import capabilities, cost, facts, limits
limits("openai", "gpt-4o")
capabilities("vllm", "m")
capabilities("openai", "gpt-4o", {"context_window": 9})
print("genai_prices" in sys.modules and sys.modules["genai_prices"] is not None)
caps = capabilities("openai", "gpt-4o")
print(caps.context_window, cost("openai", "gpt-4o", Usage(1, 1)) is None, caps.max_images)
"""


@pytest.mark.parametrize(
    ("prices", "told"), [("missing", "None True 500"), ("there", "128000 False 500")]
)
def test_prices_are_loaded_only_when_asked_for_and_may_be_missing(prices: str, told: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, prices], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["False", told]
