"""JSON schemas as vendors want them. Copies; the caller's schema is never changed."""

from __future__ import annotations

from understudy.dialects.json_access import encode
from understudy.messages.parts import Json

# Constraints Anthropic's structured outputs refuse; the model is held to the shape without them.
_REFUSED = frozenset(
    [
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
    ]
)


# Fields whose value maps names to schemas: the names are the caller's, not keywords.
_NAMED = frozenset(("properties", "$defs", "definitions", "patternProperties"))


def closed(schema: dict[str, Json]) -> dict[str, Json]:
    """For Anthropic: objects closed to other fields, refused constraints left out."""
    result = {k: _closed_value(k, v) for k, v in schema.items() if k not in _REFUSED}
    if schema.get("type") == "object" or "properties" in schema:
        result["additionalProperties"] = False
    return result


def _closed_value(key: str, value: Json) -> Json:
    if isinstance(value, list):
        return [closed(item) if isinstance(item, dict) else item for item in value]
    if not isinstance(value, dict) or key in ("enum", "const", "default", "examples"):
        return value
    if key in _NAMED:
        return {n: closed(v) if isinstance(v, dict) else v for n, v in value.items()}
    return closed(value)


def json_schema(schema: dict[str, Json]) -> dict[str, Json]:
    """Google's OpenAPI flavour as JSON schema: types in small letters, no `nullable`."""
    result = {
        _SPELLING.get(k, k): _plain_value(k, v) for k, v in schema.items() if k != "nullable"
    }
    kind = result.get("type")
    if isinstance(kind, str):
        result["type"] = [kind.lower(), "null"] if schema.get("nullable") else kind.lower()
    return result


_SPELLING = {
    "any_of": "anyOf",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_length": "minLength",
    "max_length": "maxLength",
    "property_ordering": "propertyOrdering",
}


def _plain_value(key: str, value: Json) -> Json:
    if isinstance(value, list) and key in ("anyOf", "any_of", "allOf", "oneOf", "prefixItems"):
        return [json_schema(item) if isinstance(item, dict) else item for item in value]
    if not isinstance(value, dict):
        return value
    if key in _NAMED:
        return {n: json_schema(v) if isinstance(v, dict) else v for n, v in value.items()}
    return json_schema(value) if key in ("items", "additionalProperties", "not") else value


def instruction(schema: dict[str, Json] | None) -> str:
    """The schema as a sentence, for models that do not hold themselves to it (contract M5)."""
    if schema is None:
        return "Answer with one JSON object and nothing else."
    told = encode(schema).decode()
    return f"Answer with JSON that follows this schema, and nothing else: {told}"
