"""JSON schemas as vendors want them. Copies; the caller's schema is never changed."""

from __future__ import annotations

from collections.abc import Callable

from understudy.messages.parts import Json

_Change = Callable[[dict[str, Json]], dict[str, Json]]
_DEEPEST = 100  # levels; what lies deeper stays as it is

# Where schemas lie inside a schema: under a keyword, in its list, or under names of the caller's.
_INNER = frozenset(("items", "additionalProperties", "not", "if", "then", "else", "contains"))
_LISTED = frozenset(("anyOf", "any_of", "allOf", "oneOf", "prefixItems"))
_NAMED = frozenset(("properties", "$defs", "definitions", "patternProperties"))

# Constraints that Anthropic's structured outputs refuse; the shape holds without them.
_REFUSED = frozenset(
    (
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
    )
)
_SPELLING = {
    "any_of": "anyOf",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_length": "minLength",
    "max_length": "maxLength",
    "property_ordering": "propertyOrdering",
}


def closed(schema: dict[str, Json]) -> dict[str, Json]:
    """For Anthropic: objects closed to other fields, refused constraints left out."""
    return _changed(schema, _close)


def _close(schema: dict[str, Json]) -> dict[str, Json]:
    result = {key: value for key, value in schema.items() if key not in _REFUSED}
    if schema.get("type") == "object" or "properties" in schema:
        result["additionalProperties"] = False
    return result


def json_schema(schema: dict[str, Json]) -> dict[str, Json]:
    """Google's OpenAPI flavour as JSON schema: types in small letters, no `nullable`."""
    return _changed(schema, _plain)


def _plain(schema: dict[str, Json]) -> dict[str, Json]:
    result = {_SPELLING.get(k, k): v for k, v in schema.items() if k != "nullable"}
    kind = result.get("type")
    if isinstance(kind, str):
        result["type"] = [kind.lower(), "null"] if schema.get("nullable") else kind.lower()
    return result


def _changed(schema: dict[str, Json], change: _Change, depth: int = 0) -> dict[str, Json]:
    """A schema and those inside it, each changed."""
    if depth > _DEEPEST:
        return schema

    def inner(value: Json) -> Json:
        return _changed(value, change, depth + 1) if isinstance(value, dict) else value

    result: dict[str, Json] = {}
    for key, value in schema.items():
        if key in _INNER:
            result[key] = inner(value)
        elif key in _LISTED and isinstance(value, list):
            result[key] = [inner(item) for item in value]
        elif key in _NAMED and isinstance(value, dict):
            result[key] = {name: inner(item) for name, item in value.items()}
        else:
            result[key] = value
    return change(result)
