"""What is known of models: windows, prices, what they take. Unknown stays unknown, never "yes".

Windows and prices come from `genai-prices`, which carries its data with it: no network. Loading it
takes a fifth of a second, so it is loaded when one of them is first asked for, and may be missing.
What vendors take is a table here, from their documentation; anybody may overrule a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING

from understudy.messages.capabilities import ANYTHING, Capabilities
from understudy.messages.response import Usage

if TYPE_CHECKING:
    from genai_prices.types import PriceCalculation

Overrides = Mapping[str, object]  # fields of Capabilities
NOTHING: Overrides = {}
_FIELDS = frozenset(field.name for field in fields(Capabilities))


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one model. Prices: US dollars for a million tokens, the lowest tier."""

    context_window: int | None = None  # tokens
    input_price: Decimal | None = None
    output_price: Decimal | None = None
    cache_read_price: Decimal | None = None
    cache_write_price: Decimal | None = None


UNKNOWN = Facts()

# Our vendors by the names `genai-prices` has for them; those it does not know are not here.
_PRICED = {
    "openai": "openai",
    "azure": "azure",
    "anthropic": "anthropic",
    "google": "google",
    "gemini": "google",
    "groq": "groq",
    "openrouter": "openrouter",
    "mistral": "mistral",
    "deepseek": "deepseek",
    "together": "together",
    "fireworks": "fireworks",
    "xai": "x-ai",
    "cerebras": "cerebras",
    "perplexity": "perplexity",
    "moonshot": "moonshotai",
    "zhipu": "zai",
    "minimax": "minimax",
}

_MIB = 1024 * 1024
_COMMON = ("image/jpeg", "image/png", "image/gif", "image/webp")
_PLAINEST = ("image/jpeg", "image/png")


def _in_base64(limit: int) -> int:
    """The bytes of a picture whose base64 text is that long."""
    return limit // 4 * 3


# Limits on pictures, and vendors that refuse a JSON schema on every model.
VENDOR_TAKES: Mapping[str, Overrides] = {
    # Counted on the base64 text. Lately 10 MiB, but 5 where clouds resell it; larger pictures
    # than that are scaled down on arrival anyway.
    "anthropic": {
        "max_images": 100,
        "max_image_bytes": _in_base64(5 * _MIB),
        "max_image_pixels": 8000,
        "image_types": _COMMON,
    },
    # 20 MB for the whole request: a fifth of it is left to everything else.
    "google": {
        "max_images": 900,
        "max_image_bytes": _in_base64(16_000_000),
        "image_types": (*_PLAINEST, "image/webp", "image/heic", "image/heif"),
    },
    "openai": {"max_images": 500, "max_image_bytes": 20_000_000, "image_types": _COMMON},
    "azure": {"max_image_bytes": 20_000_000, "image_types": _COMMON},
    # 33 megapixels: the side of such a square.
    "groq": {
        "max_images": 5,
        "max_image_bytes": _in_base64(4_000_000),
        "max_image_pixels": 5760,
    },
    "mistral": {"max_images": 8, "max_image_bytes": 10_000_000, "image_types": _COMMON},
    "fireworks": {"max_images": 30, "max_image_bytes": _in_base64(10_000_000)},
    "xai": {"max_image_bytes": 20 * _MIB, "image_types": _PLAINEST},
    "openrouter": {"image_types": _COMMON},
    "deepseek": {"structured": False},  # "This response_format type is unavailable now"
    "zhipu": {"structured": False},  # answers 200, in a shape of its own
    "dashscope": {"structured": False},  # some of its models know JSON mode only
    "ollama": {"image_types": _PLAINEST},
    "ollama-cloud": {"max_images": 8, "image_types": _PLAINEST},
    "foreman": {"image_types": _PLAINEST},
    "llamacpp": {"image_types": _PLAINEST},
    "llama-swap": {"image_types": _PLAINEST},
}
_SAME_AS = {"gemini": "google", "llama-swaps": "llama-swap"}

# Models that take less than their vendor's others: (vendor, pattern, what); all matches count.
MODEL_TAKES: tuple[tuple[str, str, Overrides], ...] = (
    ("openai", "gpt-3.5*", {"max_images": 0, "structured": False}),
    ("openai", "gpt-4", {"max_images": 0, "structured": False}),
    ("openai", "gpt-4-0*", {"max_images": 0, "structured": False}),
    ("openai", "gpt-4-turbo*", {"structured": False}),
    ("openai", "gpt-4o-2024-05-13", {"structured": False}),
    ("openai", "o1-mini*", {"max_images": 0, "tools": False, "structured": False}),
    ("openai", "o3-mini*", {"max_images": 0}),
    ("anthropic", "claude-3-*", {"structured": False}),
    ("anthropic", "claude-sonnet-4-0", {"structured": False}),
    ("anthropic", "claude-sonnet-4-2025*", {"structured": False}),
    ("anthropic", "claude-opus-4-0", {"structured": False}),
    ("anthropic", "claude-opus-4-2025*", {"structured": False}),
    ("google", "gemma-3*", {"tools": False, "structured": False}),
    ("groq", "llama-3.[13]*", {"max_images": 0, "structured": False}),
)


@lru_cache(maxsize=1024)  # bounded: model names may come from strangers
def facts(vendor: str, model: str) -> Facts:
    """Window and prices; all unknown for a model, a vendor or a machine without data."""
    found = _priced(vendor, model, {}, None)
    if found is None:
        return UNKNOWN
    prices = {name: _lowest(price) for name, price in vars(found.model_price).items()}
    return Facts(
        found.model.context_window,
        input_price=prices.get("input_mtok"),
        output_price=prices.get("output_mtok"),
        cache_read_price=prices.get("cache_read_mtok"),
        cache_write_price=prices.get("cache_write_mtok"),
    )


def cost(vendor: str, model: str, usage: Usage, *, at: datetime | None = None) -> Decimal | None:
    """US dollars for these tokens at that time [now]; None if no price is known."""
    known = facts(vendor, model)
    if known.input_price is None and known.output_price is None:
        return None
    tokens = {
        "input_tokens": usage.total_input,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "output_tokens": usage.total_output,
    }
    found = _priced(vendor, model, tokens, at)
    return None if found is None else found.total_price


def limits(vendor: str, model: str, overrides: Overrides = NOTHING) -> Capabilities:
    """What a model takes, without its window: loads nothing and costs next to nothing."""
    return _overruled(_takes(vendor, model), overrides)


def capabilities(vendor: str, model: str, overrides: Overrides = NOTHING) -> Capabilities:
    """What a model takes, with its window if that is known. An override has the last word."""
    if "context_window" in overrides:
        return limits(vendor, model, overrides)
    return _overruled(_whole(vendor, model), overrides)


@lru_cache(maxsize=1024)
def _whole(vendor: str, model: str) -> Capabilities:
    return replace(_takes(vendor, model), context_window=facts(vendor, model).context_window)


@lru_cache(maxsize=1024)
def _takes(vendor: str, model: str) -> Capabilities:
    vendor = _SAME_AS.get(vendor, vendor)
    takes = _overruled(ANYTHING, VENDOR_TAKES.get(vendor, NOTHING))
    for name, pattern, row in MODEL_TAKES:
        if name == vendor and fnmatchcase(model, pattern):
            takes = _overruled(takes, row)
    return takes


def _overruled(takes: Capabilities, overrides: Overrides) -> Capabilities:
    if not overrides:
        return takes
    if unknown := sorted(set(overrides) - _FIELDS):
        known = ", ".join(sorted(_FIELDS))
        raise ValueError(f"unknown capability {unknown[0]!r}; known: {known}")
    return replace(takes, **overrides)  # type: ignore[arg-type]


def _priced(
    vendor: str, model: str, tokens: Mapping[str, int], at: datetime | None
) -> PriceCalculation | None:
    name = _PRICED.get(vendor)
    if name is None:
        return None
    try:
        from genai_prices import Usage as Tokens
        from genai_prices import calc_price
    except ImportError:
        return None
    try:
        return calc_price(Tokens(**tokens), model, provider_id=name, genai_request_timestamp=at)
    except (LookupError, ValueError):  # no such model, or tokens that contradict each other
        return None


def _lowest(price: object) -> Decimal | None:
    """The price before any tier is reached."""
    base = getattr(price, "base", price)
    return base if isinstance(base, Decimal) else None
