"""JSON as typed values. Answers are read leniently, requests strictly with the path of the fault.

Lenient: `obj`, `items`, `text`, `whole`, `number` turn a wrong type into an empty value, because a
vendor's oddity must not cost an answer. Strict: a `Node` raises InvalidRequest for a wrong type,
naming where (`$.messages[2].content`), because a caller can mend a request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, NoReturn

import msgspec

from understudy.core.errors import InvalidRequest
from understudy.dialects.base import Garbled
from understudy.messages.parts import NO_EXTRA, Extra, Json

Wire = dict[str, Json]  # an object as it stands on a wire

# Half of a surrogate pair, escaped: vendors that cut text by UTF-16 units send such halves.
_HALF = re.compile(
    rb"(?<!\\)((?:\\\\)*)(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?<!\\)((?:\\\\)*)\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
# A pair's first half at the end of a text, and its second at the beginning of one.
_FIRST = re.compile(rb'(?<!\\)((?:\\\\)*)(\\u[dD][89abAB][0-9a-fA-F]{2})"')
_SECOND = re.compile(rb'(?<!\\)"(\\u[dD][c-fC-F][0-9a-fA-F]{2})')


@dataclass(slots=True)
class Halves:
    """Characters cut in two between the payloads of one stream are put together again.

    A first half at the end of a text is taken off, and waits for a text that begins with a second
    one. If none comes it is dropped: it was no character.
    """

    _held: bytes = b""

    def joined(self, payload: bytes) -> bytes:
        held, self._held = self._held, b""
        if held:
            payload = _SECOND.sub(lambda found: b'"' + held + found[1], payload)
        return _FIRST.sub(self._hold, payload)

    def _hold(self, found: re.Match[bytes]) -> bytes:
        self._held = found[2]
        return found[1] + b'"'


def decode(body: bytes, halves: Halves | None = None) -> Json:
    """The JSON value of these bytes; Garbled if they hold none. `halves`: of their stream."""
    try:
        return _decode(body, halves)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise Garbled(f"not JSON ({error}): {excerpt(body)}") from error


def _decode(body: bytes, halves: Halves | None) -> Json:
    try:
        value: Json = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        joined = halves.joined(body) if halves else body
        mended = _HALF.sub(_mend, joined).removeprefix(b"\xef\xbb\xbf")
        if mended == body:
            raise
        value = msgspec.json.decode(mended)
    return value


def _mend(found: re.Match[bytes]) -> bytes:
    if found[2] is not None:
        return found[0]  # a whole pair
    return (found[3] or b"") + b"\\ufffd"


def excerpt(body: bytes) -> str:
    """The beginning of a body, for error sentences."""
    return repr(body[:80].decode("utf-8", "replace"))


def encode(value: Json) -> bytes:
    try:
        return msgspec.json.encode(value)
    except RecursionError as error:  # it could just be read, but stands deeper now
        raise InvalidRequest("nested too deeply to be written") from error
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"a text that is no Unicode: {error}") from error


# What `str.splitlines` takes for the end of a line though JSON does not, and how to say it there.
_BREAKS = tuple((sign.encode(), b"\\u%04x" % ord(sign)) for sign in "\x85\u2028\u2029")


def encode_line(value: Json) -> bytes:
    """JSON for clients that split a stream so: google-genai and ollama in Python do."""
    line = encode(value)
    if not line.isascii():
        for sign, escaped in _BREAKS:
            line = line.replace(sign, escaped)
    return line


# What other programs, and what we remember by, have room for; no count is larger.
LEAST, MOST = -(2**63), 2**63 - 1
Whole = Annotated[int, msgspec.Meta(ge=LEAST, le=MOST)]

# Lenient: what an answer may have got wrong reads as empty.


def obj(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def items(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def whole(value: Json) -> int | None:
    """A whole number of 64 bits; 12.0 counts as 12, a truth value does not count."""
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and LEAST <= value <= MOST else None


def number(value: Json) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value


def flag(value: Json) -> bool | None:
    return value if isinstance(value, bool) else None


def without(value: Mapping[str, Json], known: Iterable[str]) -> Extra:
    """The fields not in `known`, for `extra`; the shared empty mapping if there are none."""
    left = {key: item for key, item in value.items() if key not in known}
    return left or NO_EXTRA


# Strict: what a request may not get wrong.


@dataclass(slots=True)  # not frozen, which would double its cost: one is made per field read
class Node:
    """A value inside a request and where it stands. A missing field reads as null."""

    value: Json
    parent: Node | None = None
    key: str | int = "$"

    @classmethod
    def root(cls, body: bytes) -> Node:
        """The request in these bytes: an object, or InvalidRequest."""
        try:
            node = cls(decode(body))
        except Garbled as error:
            raise InvalidRequest(f"the request body is {error}") from error
        node.obj()
        return node

    @property
    def path(self) -> str:
        """Such as `$.messages[2].content`."""
        steps: list[str] = []
        node: Node | None = self
        while node is not None:
            step = f"[{node.key}]" if isinstance(node.key, int) else f".{node.key}"
            steps.append(step)
            node = node.parent
        return "".join(reversed(steps)).removeprefix(".")

    def __getitem__(self, key: str) -> Node:
        value = self.value
        return Node(value.get(key) if isinstance(value, dict) else self.obj(), self, key)

    def opt(self, key: str) -> Node:
        """A field that is only asked `opt_…`: most are missing, and share one nothing."""
        fields = self.value
        value = fields.get(key) if isinstance(fields, dict) else self.obj()
        return NOTHING if value is None else Node(value, self, key)

    def refuse(self, expected: str) -> NoReturn:
        raise InvalidRequest(f"{self.path}: expected {expected}, got {_shown(self.value)}")

    def obj(self) -> dict[str, Json]:
        if not isinstance(self.value, dict):
            self.refuse("an object")
        return self.value

    def nodes(self) -> list[Node]:
        if not isinstance(self.value, list):
            self.refuse("an array")
        return [Node(item, self, index) for index, item in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str):
            self.refuse("a string")
        return self.value

    def word(self, *allowed: str) -> str:
        """A string out of a short list."""
        if not isinstance(self.value, str) or self.value not in allowed:
            self.refuse(" or ".join(f'"{item}"' for item in allowed))
        return self.value

    def opt_obj(self) -> dict[str, Json] | None:
        return None if self.value is None else self.obj()

    def opt_nodes(self) -> list[Node]:
        return [] if self.value is None else self.nodes()

    def opt_text(self) -> str | None:
        return None if self.value is None else self.text()

    def opt_whole(self) -> int | None:
        found = whole(self.value)
        if found is None and self.value is not None:
            self.refuse("a whole number")
        return found

    def opt_number(self) -> float | None:
        found = number(self.value)
        if found is None and self.value is not None:
            self.refuse("a number")
        return found

    def opt_flag(self) -> bool | None:
        found = flag(self.value)
        if found is None and self.value is not None:
            self.refuse("true or false")
        return found


NOTHING = Node(None)


def _shown(value: Json) -> str:
    """A value in an error sentence: short, and never the content of a prompt."""
    names = {dict: "an object", list: "an array", type(None): "nothing"}
    if type(value) in names:
        return names[type(value)]
    shown = repr(value)
    return shown if len(shown) <= 40 else f"a {type(value).__name__} of {len(shown)} characters"
