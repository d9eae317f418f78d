"""The models a client may name, in the shape its SDK reads: OpenAI's, Anthropic's or Google's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from understudy.core.errors import SpecError
from understudy.gateway.http import Request
from understudy.messages.parts import Json
from understudy.registry import Registry

GOOGLE = ("/v1beta/models", "/v1alpha/models")
PLACES = ("/v1/models", "/models", *GOOGLE)
LONG_AGO = "1970-01-01T00:00:00Z"  # nobody knows when an alias was released
Row = dict[str, Json]


def names(registry: Registry) -> list[str]:
    """Aliases first, then every target they lead to."""
    found = dict.fromkeys(registry.aliases)
    for spec in registry.aliases.values():
        with suppress(SpecError):  # one bad alias is no reason to list none
            found |= dict.fromkeys(registry.parse(spec).targets)
    return list(found)


def reader_of(request: Request) -> str:
    """The dialect whose SDK asks; several use the same path, their headers tell them apart."""
    if request.path.startswith(GOOGLE) or request.header(b"x-goog-api-key"):
        return "gemini"
    return "anthropic" if request.header(b"anthropic-version") else "openai"


def place(path: str) -> str | None:
    """The model named by a path below a list, "" for the list itself, None for any other path."""
    for start in PLACES:
        if path == start:
            return ""
        if path.startswith(f"{start}/"):
            return path[len(start) + 1 :]
    return None


def _openai(name: str) -> Row:
    return {"id": name, "object": "model", "created": 0, "owned_by": "understudy"}


def _anthropic(name: str) -> Row:
    return {"type": "model", "id": name, "display_name": name, "created_at": LONG_AGO}


def _gemini(name: str) -> Row:
    methods: list[Json] = ["generateContent"]
    return {
        "name": f"models/{name}",
        "displayName": name,
        "version": "1",
        "supportedGenerationMethods": methods,
    }


def _openai_list(rows: list[Json], found: list[str]) -> Row:
    return {"object": "list", "data": rows}


def _anthropic_list(rows: list[Json], found: list[str]) -> Row:
    first, last = (found[0], found[-1]) if found else (None, None)
    return {"data": rows, "has_more": False, "first_id": first, "last_id": last}


def _gemini_list(rows: list[Json], found: list[str]) -> Row:
    return {"models": rows}


SHAPES: dict[str, tuple[Callable[[str], Row], Callable[[list[Json], list[str]], Row]]] = {
    "openai": (_openai, _openai_list),
    "anthropic": (_anthropic, _anthropic_list),
    "gemini": (_gemini, _gemini_list),
}


def row(dialect: str, name: str) -> Row:
    """One model."""
    return SHAPES[dialect][0](name)


def table(dialect: str, found: list[str]) -> Row:
    """All of them."""
    one, every = SHAPES[dialect]
    rows: list[Json] = [one(name) for name in found]
    return every(rows, found)
