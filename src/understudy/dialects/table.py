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
# What a vendor's quirk means to the constructor of a dialect.
QUIRKS: dict[tuple[str, str], dict[str, bool | str]] = {
    ("openai", "max_tokens"): {"legacy_max_tokens": True},
    ("openai", "system_only"): {"system_only": True},
    ("openai", "schema_only"): {"schema_only": True},
    ("openai", "schema_stated"): {"state_schema": True},
    ("openai", "flat_text"): {"flat_text": True},
    ("openai", "nine_letter_ids"): {"nine_letter_ids": True},
    ("openai", "random_seed"): {"random_seed": True},
    ("openai", "refuses_as_cerebras"): {"refuses_as": "cerebras"},
    ("openai", "refuses_as_groq"): {"refuses_as": "groq"},
    ("openai", "refuses_as_mistral"): {"refuses_as": "mistral"},
    ("openai", "refuses_as_nvidia"): {"refuses_as": "nvidia"},
    ("openai", "refuses_as_xai"): {"refuses_as": "xai"},
    ("gemini", "array"): {"array": True},
}


def dialect_named(name: str, quirks: frozenset[str] = frozenset()) -> Dialect:
    """The dialect of that name, bent to a vendor's quirks."""
    if name not in DIALECTS:
        raise SpecError(f"unknown dialect {name!r}; known: {', '.join(sorted(DIALECTS))}")
    module, kind = DIALECTS[name]
    bent: dict[str, bool | str] = {}
    for quirk in sorted(quirks):
        bent |= QUIRKS.get((name, quirk), {})
    made: Dialect = vars(import_module(f"understudy.dialects.{module}"))[kind](**bent)
    return made
