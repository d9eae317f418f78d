"""Structured output: the schema of a type, an answer read as that type, a schema put into words.

A schema leaves here in the form that strict vendors take: every object lists all its properties
as required and forbids others, what may be missing is nullable, and classes stand where they are
used. Only recursive ones stay under `$defs`, and a recursive dataclass is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import is_dataclass, replace
from typing import Protocol, TypeVar, runtime_checkable

import msgspec

from understudy.messages.fences import unfenced
from understudy.messages.parts import Json
from understudy.messages.request import Request, Schema, system
from understudy.messages.shapes import Wire, name_of, shape_of

T = TypeVar("T")

# Notes that say nothing about the shape; strict vendors refuse them.
_DROPPED = frozenset(("title", "default", "discriminator", "examples", "deprecated", "$defs"))
# The string formats that strict vendors know; any other makes them refuse the whole schema.
_FORMATS = frozenset(
    ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
)
_LISTS = ("anyOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not")
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_POINTER = "#/$defs/"


@runtime_checkable
class Pydantic(Protocol):
    """A pydantic model class, known by what it can do: pydantic itself is never imported."""

    def model_json_schema(self) -> Wire: ...

    def model_validate_json(self, text: str) -> object: ...


def schema_of(kind: type) -> Schema:
    """How an answer of this type must look; a type that cannot be one is a `TypeError`."""
    name = name_of(kind)
    try:
        raw = kind.model_json_schema() if isinstance(kind, Pydantic) else shape_of(kind)
    except NameError as error:
        raise TypeError(f"{name} cannot be described: {error}") from error
    strict = _Strict(raw)
    if is_dataclass(kind) and strict.recursive:
        through = ", ".join(sorted(strict.recursive))
        raise TypeError(f"{name} is recursive through {through}; a schema needs an end")
    schema = strict.whole()
    if "properties" not in schema:
        raise TypeError(f"{name} is no object in JSON; give a dataclass, Struct or pydantic model")
    return Schema(schema, schema_name(name))


def schema_name(name: str) -> str:
    """The type's name as vendors take it: small letters, no brackets, at most 64."""
    return re.sub(r"[^a-z0-9_-]+", "_", name.lower()).strip("_")[:64] or "response"


def decode(kind: type[T], text: str) -> T:
    """The answer as the type; raises `ValueError` (also a subclass of it) if it is none."""
    text = unfenced(text)
    if isinstance(kind, Pydantic):
        value: T = kind.model_validate_json(text)
        return value
    try:
        return msgspec.json.decode(text, type=kind)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def state_schema(request: Request) -> Request:
    """The schema as an instruction instead, for a target that takes none (contract M5)."""
    if request.output is None:
        return request
    messages = request.messages
    others = (at for at, message in enumerate(messages) if message.role != "system")
    at = next(others, len(messages))
    told = system(instruction(request.output.schema))
    return replace(request, messages=(*messages[:at], told, *messages[at:]), output=None)


def instruction(schema: Wire | None) -> str:
    """The schema as a sentence, for models that do not hold themselves to it (contract M5)."""
    if schema is None:
        return "Answer with one JSON object and nothing else."
    told = msgspec.json.encode(schema).decode()
    return f"Answer with JSON that follows this schema, and nothing else: {told}"


def is_recursive(schema: Wire) -> bool:
    """Does a part of it hold itself?"""
    return bool(_Strict(schema).recursive) or "#" in _references(schema)


class _Strict:
    """A schema being made strict. Knows which of its definitions are recursive."""

    def __init__(self, raw: Wire) -> None:
        self.raw = raw
        defs = raw.get("$defs")
        self.defs: Wire = defs if isinstance(defs, dict) else {}
        links = {name: set(_references(node)) for name, node in self.defs.items()}
        self.recursive = {name for name in links if name in _reach(name, links)}
        self._kept: set[str] = set()

    def whole(self) -> Wire:
        root = self.raw.get("$ref")
        # The root itself must be an object, also where it is referred to from inside.
        start = self.defs.get(_target(root)) if isinstance(root, str) else self.raw
        schema = self._node(start)
        if self._kept:
            schema["$defs"] = {name: self._node(self.defs[name]) for name in self._all_kept()}
        return schema

    def _all_kept(self) -> list[str]:
        """What is referred to, and what that refers to in turn."""
        links = {name: set(_references(node)) for name, node in self.defs.items()}
        reached = set(self._kept).union(*(_reach(name, links) for name in self._kept))
        return sorted(reached & self.recursive)

    def _node(self, node: Json) -> Wire:
        if not isinstance(node, dict):
            return {}
        if isinstance(ref := node.get("$ref"), str):
            return self._reference(_target(ref), node)
        schema: Wire = {}
        for key, value in node.items():
            if key in _DROPPED or (key == "format" and value not in _FORMATS):
                continue
            name = "anyOf" if key == "oneOf" else key
            schema[name] = self._value(name, value)
        return _closed(_typed(_merged(schema)))

    def _reference(self, name: str, node: Wire) -> Wire:
        if name in self.recursive:
            self._kept.add(name)
            return {"$ref": _POINTER + name}
        beside = {key: value for key, value in node.items() if key not in ("$ref", *_DROPPED)}
        return {**self._node(self.defs.get(name)), **beside}

    def _value(self, key: str, value: Json) -> Json:
        if key == "properties" and isinstance(value, dict):
            return {name: self._node(node) for name, node in value.items()}
        if key in _LISTS and isinstance(value, list):
            return [self._node(node) for node in value]
        if key in _SINGLE and isinstance(value, dict):
            return self._node(value)
        return value


def _closed(schema: Wire) -> Wire:
    """An object with properties takes exactly those; one without is a dictionary."""
    properties = schema.get("properties")
    if isinstance(properties, dict):
        schema["required"] = list(properties)
        schema["additionalProperties"] = False
    return schema


def _typed(schema: Wire) -> Wire:
    """A choice of values with their type beside it, which some vendors insist on."""
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    values = schema.get("enum")
    if isinstance(values, list) and "type" not in schema:
        types = {_TYPES[type(value)] for value in values if type(value) in _TYPES}
        if len(types) == 1:
            schema["type"] = types.pop()
    return schema


def _merged(schema: Wire) -> Wire:
    """`allOf` of one is that one."""
    match schema:
        case {"allOf": [dict() as only]}:
            return {**only, **{key: v for key, v in schema.items() if key != "allOf"}}
    return schema


def _target(ref: str) -> str:
    return ref.removeprefix(_POINTER)


def _references(node: Json) -> Iterator[str]:
    if isinstance(node, dict):
        ref = node.get("$ref")
        if isinstance(ref, str):
            yield _target(ref)
    within = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for value in within:
        yield from _references(value)


def _reach(name: str, links: dict[str, set[str]]) -> set[str]:
    """Every definition that can be come to from this one, itself only through others."""
    reached: set[str] = set()
    ahead = list(links.get(name, ()))
    while ahead:
        step = ahead.pop()
        if step not in reached:
            reached.add(step)
            ahead += links.get(step, ())
    return reached
