"""How long an answer a model gives at most, where asking for a longer one is refused.

Only used for requests of another dialect: coding agents ask for as much as their own vendor's
largest model gives, which would make every other model refuse. Of models that are not here nothing
is known; they are asked for what the client wants.
"""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from functools import lru_cache

from understudy.messages.request import Request

# Tokens, by patterns of names; the first that fits counts.
_ROWS = (
    ("gpt-3.5*", 4_096),
    ("gpt-4-turbo*", 4_096),
    ("gpt-4-*preview*", 4_096),
    ("gpt-4o-2024-05-13", 4_096),
    ("gpt-4o*", 16_384),
    ("chatgpt-4o*", 16_384),
    ("gpt-4.1*", 32_768),
    ("gpt-5*-chat*", 16_384),
    ("gpt-5*", 128_000),
    ("o1-mini*", 65_536),
    ("o1-preview*", 32_768),
    ("o[134]", 100_000),
    ("o[134]-*", 100_000),
    ("claude-3-7-*", 64_000),
    ("claude-3-5-*", 8_192),
    ("claude-3-*", 4_096),
    ("claude-opus-4", 32_000),
    ("claude-opus-4-[012]*", 32_000),  # a date begins with a 2
    ("claude-sonnet-4", 64_000),
    ("claude-sonnet-4-[02]*", 64_000),
    ("claude-*-4-5*", 64_000),
    ("claude-*-4-[678]*", 128_000),
    ("gemini-1.5*", 8_192),
    ("gemini-2.0*", 8_192),
    ("gemini-2.5*", 65_536),
    ("gemini-3*", 65_536),
)


@lru_cache(512)
def longest_of(model: str) -> int | None:
    """By the model's own name, whoever resells it: `anthropic.claude-…`, `openai/gpt-…`."""
    name = model.rpartition("/")[2]
    _, claude, rest = name.rpartition("claude-")
    if claude:
        name = claude + rest.replace(".", "-")
    return next((most for pattern, most in _ROWS if fnmatchcase(name, pattern)), None)


def granted(request: Request, model: str) -> Request:
    """The request with no longer an answer than this model gives; the same object if it does."""
    wanted = request.max_tokens
    if wanted is None:
        return request
    most = longest_of(model)
    return request if most is None or wanted <= most else replace(request, max_tokens=most)
