"""JSON schemas as vendors want them. Copies; the caller's schema is never changed."""

from __future__ import annotations

from collections.abc import Callable

from understudy.messages.parts import Json
from understudy.messages.schema import is_recursive

_Change = Callable[[dict[str, Json]], dict[str, Json]]
_DEEPEST = 100  # levels; what lies deeper stays as it is

# Where schemas lie inside a schema: under a keyword, in its list, or under names of the caller's.
_INNER = frozenset(("items", "additionalProperties", "not", "if", "then", "else", "contains"))
_LISTED = frozenset(("anyOf", "any_of", "allOf", "oneOf", "prefixItems"))
_NAMED = frozenset(("properties", "$defs", "definitions", "patternProperties"))

# What they take; anything else is refused, and is a note (a `$schema`) or, below, more than that.
_TAKEN = frozenset(
    (
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "minItems",
        "anyOf",
        "allOf",
        "enum",
        "const",
        "format",
        "pattern",
        "default",
        "title",
        "description",
        "$ref",
        "$defs",
        "definitions",
    )
)
_SHAPING = frozenset(
    ("prefixItems", "patternProperties", "not", "if", "contains", "dependentSchemas")
)
_CHOICES = {"oneOf": "anyOf"}
_FORMATS = frozenset(
    (
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "uri",
        "ipv4",
        "ipv6",
        "uuid",
    )
)

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


NO_PARAMETERS: dict[str, Json] = {"type": "object", "properties": {}}


def of_object(parameters: dict[str, Json]) -> dict[str, Json]:
    """What a tool takes, said in full: vendors differ in what they take as said."""
    return parameters if parameters.keys() >= NO_PARAMETERS.keys() else NO_PARAMETERS | parameters


def closed(schema: dict[str, Json]) -> dict[str, Json]:
    """For Anthropic: objects closed to other fields, refused constraints put into words."""
    return _changed(schema, _close)


def _close(schema: dict[str, Json]) -> dict[str, Json]:
    refused = {key: value for key, value in schema.items() if _is_refused(key, value)}
    left = ((_CHOICES.get(k, k), v) for k, v in schema.items() if k not in refused)
    result = {key: value for key, value in left if key in _TAKEN}
    if refused:  # the model may still keep to them
        said = ", ".join(f"{key}: {value}" for key, value in refused.items())
        result["description"] = f"{schema.get('description', '')} ({said})".strip()
    if is_object(schema):
        result["additionalProperties"] = False
    return result


def _is_refused(key: str, value: Json) -> bool:
    match key:
        case "minItems":
            return value not in (0, 1)
        case "format":
            return isinstance(value, str) and value not in _FORMATS
    return key in _REFUSED


def is_object(schema: dict[str, Json]) -> bool:
    return schema.get("type") == "object" or "properties" in schema


def is_open(schema: dict[str, Json]) -> bool:
    """Is there more to it than Claude's forms can say: dictionaries, trees, tuples?"""
    found: list[bool] = []

    def look(inner: dict[str, Json]) -> dict[str, Json]:
        others = inner.get("additionalProperties")
        free = is_object(inner) and not inner.get("properties") and others is not False
        found.append(free or bool(others and isinstance(others, dict)))
        found.append(not _SHAPING.isdisjoint(inner))
        return inner

    _changed(schema, look)
    return any(found) or is_recursive(schema)


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
