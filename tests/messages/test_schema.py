"""Schemas of types, and answers read as those types."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.messages.fences import Unfencing, unfenced
from understudy.messages.schema import decode, schema_name, schema_of


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Pair(NamedTuple):
    x: int
    y: int


@dataclass
class City:
    """A place where people live."""

    name: str
    people: int | None = None


@dataclass
class Person:
    name: str = field(metadata={"description": "as in the passport"})
    age: Annotated[int, msgspec.Meta(ge=0, description="in years")]
    home: City
    past: list[City] = field(default_factory=list)
    scores: dict[str, float] = field(default_factory=dict)
    mood: Literal["good", "bad"] = "good"
    colour: Colour | None = None


class Node(msgspec.Struct):
    value: int
    children: list[Node] = []


class Left(msgspec.Struct, tag="left"):
    x: int


class Right(msgspec.Struct, tag="right"):
    y: str


class Fork(msgspec.Struct, rename="camel"):
    which_way: Left | Right


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int = pydantic.Field(description="left", le=9)


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    title: str = "good boy"


class Home(pydantic.BaseModel):
    """Where pets live."""

    pet: Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]
    guest: Cat | None = None
    boss: Dog = pydantic.Field(description="who rules")
    since: date
    link: pydantic.HttpUrl
    notes: dict[str, Cat]


class Branch(pydantic.BaseModel):
    name: str
    below: list[Branch] = []


@dataclass
class Loop:
    next: Loop | None


@dataclass
class Deep:
    loop: list[Loop]


class Row(TypedDict):
    a: int


class Alien:
    pass


@dataclass
class Holder:
    alien: Alien


@dataclass
class Numbered:
    names: dict[int, str]


@dataclass
class Torn:
    either: City | Loop


def shape(kind: type) -> Any:
    return schema_of(kind).schema


def closed(**properties: object) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def nullable(schema: object) -> dict[str, object]:
    return {"anyOf": [schema, {"type": "null"}]}


CITY = closed(name={"type": "string"}, people=nullable({"type": "integer"}))
CITY["description"] = "A place where people live."
CAT = closed(
    kind={"type": "string", "enum": ["cat"]},
    lives={"type": "integer", "maximum": 9, "description": "left"},
)
DOG = closed(kind={"type": "string", "enum": ["dog"]}, title={"type": "string"})


def test_a_dataclass_is_closed_all_the_way_down_and_optional_means_nullable() -> None:
    assert shape(Person) == closed(
        name={"type": "string", "description": "as in the passport"},
        age={"type": "integer", "minimum": 0, "description": "in years"},
        home=CITY,
        past={"type": "array", "items": CITY},
        scores={"type": "object", "additionalProperties": {"type": "number"}},
        mood={"type": "string", "enum": ["bad", "good"]},
        colour=nullable({"type": "string", "enum": ["red", "blue"]}),
    )


def test_a_pydantic_model_is_closed_the_same_way() -> None:
    assert shape(Home) == {
        "description": "Where pets live.",
        **closed(
            pet={"anyOf": [CAT, DOG]},
            guest=nullable(CAT),
            boss={**DOG, "description": "who rules"},
            since={"type": "string", "format": "date"},
            link={"type": "string", "minLength": 1, "maxLength": 2083},
            notes={"type": "object", "additionalProperties": CAT},
        ),
    }


class Old:
    """Stands for a model of an older pydantic, which wraps a reference with notes beside it."""

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        cat = {"type": "object", "properties": {"lives": {"type": "integer"}}}
        field = {"allOf": [{"$ref": "#/$defs/Cat"}], "description": "the pet", "default": None}
        return {"type": "object", "properties": {"pet": field}, "$defs": {"Cat": cat}}

    @classmethod
    def model_validate_json(cls, text: str) -> Old:
        raise ValueError(text)


def test_a_reference_wrapped_by_an_older_pydantic_is_unwrapped() -> None:
    pet = {**closed(lives={"type": "integer"}), "description": "the pet"}
    assert shape(Old) == closed(pet=pet)


def test_a_tagged_union_of_structs_carries_its_tags_under_their_wire_names() -> None:
    left = closed(type={"type": "string", "enum": ["left"]}, x={"type": "integer"})
    right = closed(type={"type": "string", "enum": ["right"]}, y={"type": "string"})
    assert shape(Fork) == closed(whichWay={"anyOf": [left, right]})
    assert decode(Fork, '{"whichWay": {"type": "right", "y": "k"}}') == Fork(Right("k"))


@pytest.mark.parametrize("kind", [Node, Branch])
def test_a_recursive_struct_or_model_is_an_object_that_refers_to_itself(kind: type) -> None:
    schema = shape(kind)
    reference = {"$ref": f"#/$defs/{kind.__name__}"}
    below = "children" if kind is Node else "below"
    body = schema["$defs"][kind.__name__]
    assert schema["properties"] == body["properties"]
    assert schema["properties"][below] == {"type": "array", "items": reference}
    assert schema["additionalProperties"] is body["additionalProperties"] is False
    assert schema["type"] == "object"


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (datetime, {"type": "string", "format": "date-time"}),
        (date, {"type": "string", "format": "date"}),
        (time, {"type": "string", "format": "time"}),
        (timedelta, {"type": "string", "format": "duration"}),
        (UUID, {"type": "string", "format": "uuid"}),
        (Decimal, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (bytes, {"type": "string", "contentEncoding": "base64"}),
        (Any, {}),
        (dict[str, Any], {"type": "object", "additionalProperties": True}),
        (Level, {"type": "integer", "enum": [1, 2]}),
        (Literal["a", 1], {"enum": [1, "a"]}),
        (set[int], {"type": "array", "items": {"type": "integer"}}),
        (Row, closed(a={"type": "integer"})),
        (
            Annotated[list[str], msgspec.Meta(min_length=1)],
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
        ),
        (Annotated[str, msgspec.Meta(max_length=3)], {"type": "string", "maxLength": 3}),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "items": False,
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (
            Pair,
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "integer"}],
                "items": False,
                "minItems": 2,
                "maxItems": 2,
            },
        ),
    ],
)
def test_every_kind_of_field_has_its_schema(annotation: object, schema: object) -> None:
    kind = msgspec.defstruct("One", [("field", annotation)])
    assert shape(kind)["properties"]["field"] == schema


def test_two_classes_of_one_name_are_not_confused() -> None:
    first = msgspec.defstruct("Same", [("a", int)])
    second = msgspec.defstruct("Same", [("b", str)])
    both = msgspec.defstruct("Both", [("x", first), ("y", second)])
    assert shape(both) == closed(x=closed(a={"type": "integer"}), y=closed(b={"type": "string"}))


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (Loop, "Loop is recursive through Loop"),
        (Deep, "Deep is recursive through Loop"),
        (Holder, "Alien"),
        (Numbered, "keys are not str"),
        (Torn, "more than one"),
        (list[int], "is no object"),
        (int, "int is no object"),
        (pydantic.RootModel[list[int]], "is no object"),
    ],
)
def test_a_type_that_cannot_be_asked_for_is_a_clear_type_error(kind: type, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        schema_of(kind)


def test_an_annotation_that_nobody_can_resolve_is_a_type_error() -> None:
    @dataclass
    class Local:
        thing: Missing  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(TypeError, match="Local cannot be described: name 'Missing'"):
        schema_of(Local)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (Person, "person"),
        (Home, "home"),
        (Row, "row"),
        (msgspec.defstruct("Ünïcode", [("a", int)]), "n_code"),
        (msgspec.defstruct("X" * 90, [("a", int)]), "x" * 64),
        (msgspec.defstruct("Ü", [("a", int)]), "response"),
    ],
)
def test_a_schema_is_named_after_its_type(kind: type, name: str) -> None:
    assert schema_of(kind).name == schema_name(kind.__name__) == name


PERSON = {
    "name": "Ann",
    "age": 40,
    "home": {"name": "Rome", "people": None},
    "past": [{"name": "Oslo", "people": 7}],
    "scores": {"go": 1.5},
    "mood": "bad",
    "colour": "blue",
}


def test_answers_become_values_of_the_type() -> None:
    ann = Person("Ann", 40, City("Rome"), [City("Oslo", 7)], {"go": 1.5}, "bad", Colour.BLUE)
    assert decode(Person, json.dumps(PERSON)) == ann
    assert decode(Node, '{"value": 1, "children": [{"value": 2}]}') == Node(1, [Node(2)])
    assert decode(Branch, '{"name": "a", "below": [{"name": "b"}]}').below[0].name == "b"
    assert decode(Row, '{"a": 1, "more": 2}') == {"a": 1}


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '  {"a": 1}\n',
        '```json\n{"a": 1}\n```',
        '\n```\n{"a": 1}```  ',
        '```JSON {"a": 1} ```',
        '```{"a": 1}```',
        '\ufeff{"a": 1}',
    ],
)
def test_a_fence_round_the_whole_answer_is_taken_off(text: str) -> None:
    assert decode(Row, text) == {"a": 1}


@pytest.mark.parametrize(
    "text",
    ["", "   ", "```", "``````", '{"a": "one"}', '{"b": 1}', 'Sure! {"a": 1}', "[" * 100_000],
)
def test_anything_else_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(Row, text)


def test_an_answer_nested_beyond_all_reason_is_a_value_error() -> None:
    kind = msgspec.defstruct("Free", [("any", Any)])
    with pytest.raises(ValueError, match="nested too deep"):
        decode(kind, '{"any": ' + "[" * 100_000)


@given(st.text())
def test_only_fences_are_taken_off(text: str) -> None:
    inner = json.dumps({"text": text})
    assert unfenced(inner) == inner
    assert unfenced(f"```json\n{inner}\n```") == inner


def in_pieces(text: str, cuts: set[int]) -> str:
    fence = Unfencing()
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    said = [fence.feed(text[a:b]) for a, b in pairwise(places)]
    return "".join(said) + fence.end()


@given(st.text(), st.sets(st.integers(0, 99)), st.sampled_from(["", "json", "JSON5"]))
def test_they_are_taken_off_a_text_in_pieces_too(text: str, cuts: set[int], tag: str) -> None:
    inner = json.dumps({"text": text})
    assert in_pieces(inner, cuts) == inner
    assert in_pieces(f" \n```{tag}\n{inner}\n```\n", cuts) == inner


@given(st.text(st.sampled_from("`` \n{x")), st.sets(st.integers(0, 99)))
def test_of_a_text_in_pieces_nothing_but_fences_is_lost(text: str, cuts: set[int]) -> None:
    said = in_pieces(text, cuts)
    assert text.endswith(said) or said in text
    assert said == text or text.strip().startswith("```")
