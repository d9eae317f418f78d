"""The JSON schema of a dataclass, msgspec Struct or TypedDict, before it is made strict.

Every class stands under `$defs` and is referred to, so that recursion can be seen. Refuses what
JSON cannot say.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from inspect import cleandoc

from msgspec import inspect

from understudy.messages.parts import Json

Wire = dict[str, Json]
Class = inspect.StructType | inspect.DataclassType | inspect.TypedDictType

_PLAIN: dict[type[inspect.Type], Wire] = {
    inspect.AnyType: {},
    inspect.NoneType: {"type": "null"},
    inspect.BoolType: {"type": "boolean"},
    inspect.IntType: {"type": "integer"},
    inspect.FloatType: {"type": "number"},
    inspect.StrType: {"type": "string"},
    inspect.BytesType: {"type": "string", "contentEncoding": "base64"},
    inspect.ByteArrayType: {"type": "string", "contentEncoding": "base64"},
    inspect.DateTimeType: {"type": "string", "format": "date-time"},
    inspect.DateType: {"type": "string", "format": "date"},
    inspect.TimeType: {"type": "string", "format": "time"},
    inspect.TimeDeltaType: {"type": "string", "format": "duration"},
    inspect.UUIDType: {"type": "string", "format": "uuid"},
    inspect.DecimalType: {"type": "string"},  # a number would lose digits on the way
}
_LIMITS = {
    "gt": "exclusiveMinimum",
    "ge": "minimum",
    "lt": "exclusiveMaximum",
    "le": "maximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
}
_LENGTHS = {
    "string": {"min_length": "minLength", "max_length": "maxLength"},
    "array": {"min_length": "minItems", "max_length": "maxItems"},
    "object": {"min_length": "minProperties", "max_length": "maxProperties"},
}
_MANY = (inspect.CollectionType, inspect.VarTupleType)
_NAMED = (inspect.StructType, inspect.DataclassType, inspect.TypedDictType)


def shape_of(kind: type) -> Wire:
    """A schema with `$ref` and `$defs`; a type that JSON cannot say is a `TypeError`."""
    shape = _Shape(kind)
    root = shape.of(inspect.type_info(kind))
    return {**root, "$defs": dict(shape.defs)}


class _Shape:
    """One schema being written; remembers the classes it has met."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        self.defs: Wire = {}
        self._names: dict[object, str] = {}

    def of(self, type_: inspect.Type) -> Wire:
        if type(type_) in _PLAIN:
            return _limited(type_, dict(_PLAIN[type(type_)]))
        match type_:
            case inspect.Metadata():
                return {**self.of(type_.type), **(type_.extra_json_schema or {})}
            case inspect.UnionType():
                return {"anyOf": [self.of(option) for option in type_.types]}
            case inspect.LiteralType():
                return {"enum": list(type_.values)}
            case inspect.EnumType():
                return {"enum": [member.value for member in type_.cls]}
            case _:
                return self._compound(type_)

    def _compound(self, type_: inspect.Type) -> Wire:
        if isinstance(type_, _NAMED):
            return self._reference(type_)
        if isinstance(type_, inspect.DictType):
            return self._mapping(type_)
        if isinstance(type_, _MANY):
            return _limited(type_, {"type": "array", "items": self.of(type_.item_type)})
        if isinstance(type_, inspect.TupleType):
            return self._tuple(type_.item_types)
        if isinstance(type_, inspect.NamedTupleType):
            return self._tuple(tuple(field.type for field in type_.fields))
        found = type_.cls if isinstance(type_, inspect.CustomType) else type_
        raise TypeError(f"{name_of(self.kind)} holds {found!r}, which JSON cannot say")

    def _mapping(self, type_: inspect.DictType) -> Wire:
        if not isinstance(type_.key_type, inspect.StrType | inspect.AnyType):
            raise TypeError(f"{name_of(self.kind)} holds a dict whose keys are not str")
        of_any = isinstance(type_.value_type, inspect.AnyType)
        value: Json = True if of_any else self.of(type_.value_type)
        return _limited(type_, {"type": "object", "additionalProperties": value})

    def _tuple(self, items: tuple[inspect.Type, ...]) -> Wire:
        told: list[Json] = [self.of(item) for item in items]
        return {
            "type": "array",
            "prefixItems": told,
            "items": False,
            "minItems": len(told),
            "maxItems": len(told),
        }

    def _reference(self, type_: Class) -> Wire:
        if type_.cls not in self._names:
            taken = sum(name_of(cls) == name_of(type_.cls) for cls in self._names)
            name = f"{name_of(type_.cls)}{taken + 1 if taken else ''}"
            self._names[type_.cls] = name
            self.defs[name] = self._object(type_)
        return {"$ref": f"#/$defs/{self._names[type_.cls]}"}

    def _object(self, type_: Class) -> Wire:
        if isinstance(type_, inspect.StructType) and type_.array_like:
            return self._tuple(tuple(field.type for field in type_.fields))
        tag: Wire = {}
        if isinstance(type_, inspect.StructType) and type_.tag_field:
            tag = {type_.tag_field: {"enum": [type_.tag]}}
        fields: Wire = {field.encode_name: self.of(field.type) for field in type_.fields}
        for name, told in _told(type_.cls).items():
            field = fields[name]
            fields[name] = {**(field if isinstance(field, dict) else {}), "description": told}
        said = _docstring(type_.cls)
        return {"type": "object", **said, "properties": tag | fields}


def name_of(kind: object) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _told(cls: type) -> dict[str, str]:
    """What `field(metadata={"description": …})` says of a dataclass's fields."""
    if not dataclasses.is_dataclass(cls):
        return {}
    notes = {field.name: field.metadata.get("description") for field in dataclasses.fields(cls)}
    return {name: note for name, note in notes.items() if isinstance(note, str)}


def _docstring(cls: type) -> Wire:
    """The class's own words; the one that dataclasses make up is only its signature."""
    words = cls.__doc__ or ""
    made_up = words.startswith(f"{cls.__name__}(")
    return {"description": cleandoc(words)} if words and not made_up else {}


def _limited(type_: inspect.Type, schema: Wire) -> Wire:
    """With the limits that `Meta` put on it."""
    lengths: Mapping[str, str] = _LENGTHS.get(str(schema.get("type")), {})
    for field, keyword in (*_LIMITS.items(), *lengths.items()):
        value = getattr(type_, field, None)
        if value is not None:
            schema[keyword] = value
    return schema
