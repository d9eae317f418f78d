"""What the OpenAPI document says of errors, keys and versions is what the gateway does."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from understudy.dialects.table import dialect_named
from understudy.gateway.errands import ERRANDS
from understudy.gateway.surfaces import GEMINI, PATHS

ROOT = Path(__file__).parents[2]
DOCUMENT = json.loads((ROOT / "src/understudy/ui/openapi.json").read_text(encoding="utf-8"))
SCHEMAS = DOCUMENT["components"]["schemas"]
ERRORS = {
    "openai": "OpenAIError",
    "responses": "OpenAIError",
    "anthropic": "AnthropicError",
    "gemini": "GeminiError",
    "ollama": "OllamaError",
}
SPOKEN = {path: ERRORS[name] for path, name in PATHS.items()} | {
    path: ERRORS[errand.dialect] for path, errand in ERRANDS.items()
}
CLIENT_KEYS = ["bearer", "xApiKey", "xGoogApiKey", "apiKey", "key"]
KEYS = {
    "surfaces": CLIENT_KEYS,
    "models": CLIENT_KEYS,
    "operators": ["admin"],
    "orchestrators": [],
}


def operations() -> Iterator[tuple[str, dict[str, object]]]:
    for path, found in DOCUMENT["paths"].items():
        for operation in found.values():
            yield path, operation


def resolved(node: dict[str, object]) -> dict[str, object]:
    """What a `$ref` stands for."""
    if "$ref" not in node:
        return node
    place = DOCUMENT
    for step in str(node["$ref"]).split("/")[1:]:
        place = place[step]
    return place


def fits(value: object, schema: dict[str, object]) -> bool:
    """Are these the fields of the schema, with those that must be there, all the way down?"""
    schema = resolved(schema)
    if not isinstance(value, dict):
        return schema["type"] != "object"
    known = schema["properties"]
    assert isinstance(known, dict)
    return (
        set(value) <= set(known)
        and set(schema["required"]) <= set(value)  # type: ignore[call-overload]
        and all(fits(value[name], known[name]) for name in value if known[name].get("properties"))
    )


@pytest.mark.parametrize("dialect", ERRORS)
@pytest.mark.parametrize("status", [400, 401, 404, 405, 413, 429, 500, 502, 503, 504])
def test_errors_have_the_shape_the_document_gives_them(dialect: str, status: int) -> None:
    body = dialect_named(dialect).write_error(status, "no", "invalid_request")
    assert fits(body, SCHEMAS[ERRORS[dialect]])


def test_each_surface_is_told_to_fail_in_its_own_dialect() -> None:
    for path, operation in operations():
        if operation["tags"] != ["surfaces"]:
            continue
        wanted = ERRORS["gemini"] if path.startswith(GEMINI) else SPOKEN[path]
        responses = operation["responses"]
        assert isinstance(responses, dict)
        assert {"400", "401", "405", "413", "429", "502", "503", "504", "4XX", "5XX"} < set(
            responses
        )
        for status in set(responses) - {"200", "405"}:
            content = resolved(responses[status])["content"]
            assert content["application/json"]["schema"] == {  # type: ignore[index]
                "$ref": f"#/components/schemas/{wanted}"
            }, (path, status)


def test_each_route_asks_for_the_keys_of_its_kind() -> None:
    for path, operation in operations():
        (tag,) = operation["tags"]  # type: ignore[misc]
        asked = [name for scheme in operation["security"] for name in scheme]  # type: ignore[attr-defined]
        page = path in ("/understudy", "/understudy/")
        assert asked == ([] if page else KEYS[tag]), path
    assert set(DOCUMENT["components"]["securitySchemes"]) == {*CLIENT_KEYS, "admin"}


def test_the_document_is_of_this_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert DOCUMENT["info"]["version"] == project["version"]


def test_nothing_in_the_document_is_there_for_nobody() -> None:
    text = json.dumps(DOCUMENT)
    for kind in ("schemas", "responses", "parameters", "headers"):
        for name in DOCUMENT["components"][kind]:
            assert f'"#/components/{kind}/{name}"' in text, name
