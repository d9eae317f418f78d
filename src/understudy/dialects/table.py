"""The dialects by name. Loaded one by one: most programs speak one or two."""

from __future__ import annotations

from importlib import import_module

from understudy.core.errors import SpecError
from understudy.dialects.base import Dialect

DIALECTS = {
    "openai": ("openai_chat", "OpenAIChat"),
    "responses": ("openai_responses", "OpenAIResponses"),
    "anthropic": ("anthropic", "Anthropic"),
    "gemini": ("gemini", "Gemini"),
    "ollama": ("ollama", "Ollama"),
}


def dialect_named(name: str, quirks: frozenset[str] = frozenset()) -> Dialect:
    """The dialect of that name, bent to those of a vendor's quirks that it knows."""
    if name not in DIALECTS:
        raise SpecError(f"unknown dialect {name!r}; known: {', '.join(sorted(DIALECTS))}")
    module, kind = DIALECTS[name]
    made: type[Dialect] = vars(import_module(f"understudy.dialects.{module}"))[kind]
    return made(**dict.fromkeys(quirks & made.quirks, True))
