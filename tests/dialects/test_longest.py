"""Nobody is asked by another dialect's client for a longer answer than they give."""

from __future__ import annotations

from typing import Any

import pytest

from understudy import Request
from understudy.dialects.longest import granted, longest_of
from understudy.dialects.table import dialect_named


@pytest.mark.parametrize(
    ("model", "most"),
    [
        ("gpt-4o-mini", 16_384),
        ("openai/gpt-4.1-nano", 32_768),
        ("gpt-5.5", 128_000),
        ("gpt-5.2-chat-latest", 16_384),
        ("o3", 100_000),
        ("o4-mini-2025-04-16", 100_000),
        ("claude-3-5-haiku-latest", 8_192),
        ("anthropic/claude-3.7-sonnet", 64_000),
        ("us.anthropic.claude-opus-4-1-20250805-v1:0", 32_000),
        ("claude-opus-4-20250514", 32_000),
        ("claude-opus-4-5", 64_000),
        ("claude-sonnet-4@20250514", None),
        ("claude-sonnet-4-6", 128_000),
        ("claude-opus-4-8", 128_000),
        ("claude-opus-5", None),
        ("models/gemini-2.5-pro", 65_536),
        ("gpt-4", None),
        ("omni-moderation-latest", None),
        ("llama-3.3-70b", None),
    ],
)
def test_a_models_longest_answer_is_known_by_its_name_or_not_at_all(
    model: str, most: int | None
) -> None:
    assert longest_of(model) == most


LIMIT = {
    "openai": lambda body: body["max_completion_tokens"],
    "responses": lambda body: body["max_output_tokens"],
    "anthropic": lambda body: body["max_tokens"],
    "gemini": lambda body: body["generationConfig"]["maxOutputTokens"],
}


@pytest.mark.parametrize(
    ("dialect", "model", "most"),
    [
        ("openai", "gpt-4o", 16_384),
        ("responses", "gpt-4o", 16_384),
        ("anthropic", "claude-opus-4-1", 32_000),
        ("gemini", "gemini-2.5-flash", 65_536),
    ],
)
def test_a_client_of_another_dialect_gets_as_much_as_there_is(
    dialect: str, model: str, most: int
) -> None:
    spoken, told = dialect_named(dialect), LIMIT[dialect]
    for wanted, asked in ((most + 1, most), (most, most), (most - 1, most - 1)):
        body: Any = spoken.write_request(Request(max_tokens=wanted), model, False)
        assert told(body) == asked
    own: Any = spoken.write_request(Request(max_tokens=most + 1, issuer=spoken.name), model, False)
    assert told(own) == most + 1  # who speaks a vendor's own dialect knows that vendor


@pytest.mark.parametrize("wanted", [None, 200_000])
def test_thinking_leaves_room_for_an_answer_in_what_there_is(wanted: int | None) -> None:
    request = Request(max_tokens=wanted, reasoning="max")
    body: Any = dialect_named("anthropic").write_request(request, "claude-opus-4-1", False)
    assert body["max_tokens"] == 32_000
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 25_600}


def test_a_request_that_asks_for_less_is_the_same_object() -> None:
    for request in (Request(max_tokens=5), Request()):
        assert granted(request, "gpt-4o") is request
