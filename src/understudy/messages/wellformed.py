"""What callers get wrong when they build a request by hand, told with the path of the fault.

Before any target is asked: a wrong type would break somewhere inside, and a healthy target would
be blamed. Requests that were read from a wire are right by their making and are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from understudy.core.errors import InvalidRequest
from understudy.messages.parts import (
    File,
    Image,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)

Kinds = tuple[type, ...]
NONE = type(None)
WORDS: Mapping[Kinds, str] = {(str,): "a text", (bytes,): "bytes", (bool,): "true or false"}
MEDIA = {"data": (bytes,), "mime": (str,), "url": (str,)}
PARTS: Mapping[type, Mapping[str, Kinds]] = {
    Text: {"text": (str,)},
    Image: MEDIA,
    File: {**MEDIA, "name": (str,)},
    Reasoning: {"text": (str,), "signature": (str,), "data": (str,)},
    ToolCall: {"id": (str,), "name": (str,), "arguments": (str,)},
    ToolResult: {"id": (str,), "name": (str,), "is_error": (bool,)},
    Opaque: {"issuer": (str,)},
}


def check_parts(path: str, parts: object) -> None:
    """Raises InvalidRequest for what is no part, or a part with a field of a wrong type."""
    for n, part in enumerate(listed(path, parts)):
        place = f"{path}[{n}]"
        known = PARTS.get(type(part))
        if known is None:
            raise InvalidRequest(f"{place} is {kind_of(part)}; a part is Text, Image, ToolCall, …")
        check_fields(place, part, known)
        if isinstance(part, ToolResult):
            check_parts(f"{place}.content", part.content)


def check_fields(path: str, value: object, known: Mapping[str, Kinds]) -> None:
    for name, kinds in known.items():
        check_kind(f"{path}.{name}", getattr(value, name), kinds)


def check_kind(path: str, value: object, kinds: Kinds) -> None:
    if not isinstance(value, kinds):
        wanted = WORDS.get(kinds) or " or ".join(map(_name, kinds))
        raise InvalidRequest(f"{path} is {kind_of(value)}; it must be {wanted}")


def listed(path: str, values: object) -> Iterable[object]:
    if isinstance(values, tuple | list):
        return values
    raise InvalidRequest(f"{path} is {kind_of(values)}; it must be a tuple")


def kind_of(value: object) -> str:
    """`a str`, `an int`, for sentences."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _name(kind: type) -> str:
    return "None" if kind is NONE else kind.__name__
