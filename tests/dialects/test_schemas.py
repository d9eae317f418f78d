"""JSON schemas as vendors want them: changed where schemas lie, left alone everywhere else."""

from __future__ import annotations

from typing import Any

import pytest

from understudy.dialects.schemas import closed, json_schema


@pytest.mark.parametrize("schema", [{"type": "object"}, {"properties": {}}])
def test_every_object_is_closed(schema: dict[str, Any]) -> None:
    assert closed(schema) == {**schema, "additionalProperties": False}


def test_schemas_are_found_wherever_they_lie() -> None:
    schema = {
        "items": {"type": "string", "minLength": 1},
        "anyOf": [{"type": "integer", "maximum": 9}, True],
        "$defs": {"a": {"multipleOf": 2}, "b": False},
    }
    assert closed(schema) == {
        "items": {"type": "string", "description": "(minLength: 1)"},
        "anyOf": [{"type": "integer", "description": "(maximum: 9)"}, True],
        "$defs": {"a": {"description": "(multipleOf: 2)"}, "b": False},
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "default": {"a": {"minLength": 1}}, "enum": [{"maximum": 1}]},
        {"anyOf": {"minimum": 1}, "$defs": [{"minimum": 1}], "items": True},
    ],
)
def test_what_is_no_schema_stays_as_it_is(schema: dict[str, Any]) -> None:
    assert closed(schema) == schema


def test_googles_flavour_becomes_json_schema() -> None:
    schema = {"any_of": [{"type": "STRING", "nullable": True}, {"type": "ARRAY", "min_items": 1}]}
    assert json_schema(schema) == {
        "anyOf": [{"type": ["string", "null"]}, {"type": "array", "minItems": 1}]
    }


@pytest.mark.parametrize("levels", [100, 100_000])
def test_a_schema_without_end_is_changed_as_far_as_is_reasonable(levels: int) -> None:
    schema: dict[str, Any] = {"minLength": 1}
    for _ in range(levels):
        schema = {"items": schema}
    deepest: Any = closed(schema)
    for _ in range(levels):
        deepest = deepest["items"]
    assert deepest == ({"description": "(minLength: 1)"} if levels == 100 else {"minLength": 1})
