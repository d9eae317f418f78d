"""What a client wants, read only as far as routing needs."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, TypeVar

import msgspec

from understudy.core.errors import InvalidRequest
from understudy.dialects.base import Dialect
from understudy.messages.response import Usage

NAME_MOST = 4096  # characters of a model's name or a chain; ledger, metrics and log keep them


class Errand(msgspec.Struct, frozen=True):
    """A request that is passed on as it is, never translated: embeddings, token counts."""

    name: str  # in logs
    dialect: str  # that a target must speak
    path: Callable[[str], str]  # by model
    usage: Callable[[bytes], Usage | None]  # of an answer; raises if it is none


class Ask(msgspec.Struct, frozen=True):
    """One request as it came."""

    dialect: Dialect
    model: str
    stream: bool
    body: bytes
    in_body: bool = True  # the model's name; Gemini has it in the URL
    relayable: bool = True  # bytes of the same dialect may go through as they are
    kept: str = ""  # a field that points to what its own API has kept, and nobody else
    errand: Errand | None = None

    @property
    def stream_type(self) -> bytes:
        """The content type of a stream to this client."""
        if self.dialect.name == "ollama":
            return b"application/x-ndjson"
        return EVENTS if self.relayable else b"application/json"  # Gemini's array

    @property
    def sse(self) -> bool:
        """Does a stream to this client have room for comments? Google's SDKs fail at one."""
        return self.stream_type is EVENTS and self.dialect.name != "gemini"


class Peek(msgspec.Struct):
    """The two fields that routing needs."""

    model: Annotated[str, msgspec.Meta(max_length=NAME_MOST)]
    stream: bool | None = None

    @property
    def kept(self) -> str:
        return ""

    def check(self) -> None:
        """Raises InvalidRequest for what has no place here, whoever is asked."""


class _Object(msgspec.Struct):
    """Any; it is read by whoever it is for."""


class _Asked(Peek, kw_only=True):
    """Fields of a wrong type are the caller's fault, whoever is up (contract G6)."""

    temperature: float | None = None
    top_p: float | None = None
    tools: list[_Object] | None = None


class _Messages(_Asked, kw_only=True):
    messages: list[_Object]
    max_tokens: float | None = None


class _Responses(_Asked, kw_only=True):
    input: str | list[_Object] | None = None
    max_output_tokens: float | None = None
    previous_response_id: str | None = None
    conversation: str | _Object | None = None
    prompt: _Object | None = None
    background: bool | None = None

    def check(self) -> None:
        if self.background and not self.stream:  # each target asked would begin to work
            raise InvalidRequest("$.background: an answer cannot be fetched here later; stream it")

    @property
    def kept(self) -> str:
        fields = ("previous_response_id", "conversation", "prompt")
        return next((name for name in fields if getattr(self, name)), "")


class _Contents(msgspec.Struct, rename="camel"):
    """Gemini's, which has the model in the URL."""

    contents: list[_Object] | _Object
    tools: list[_Object] | _Object | None = None
    cached_content: str | None = None

    @property
    def kept(self) -> str:
        return "cachedContent" if self.cached_content else ""


PEEK: Callable[[bytes], Peek] = msgspec.json.Decoder(Peek).decode
MESSAGES: Callable[[bytes], Peek] = msgspec.json.Decoder(_Messages).decode
PEEKS: dict[str, Callable[[bytes], Peek]] = {
    "openai": MESSAGES,
    "anthropic": MESSAGES,
    "ollama": MESSAGES,
    "responses": msgspec.json.Decoder(_Responses).decode,
}
CONTENTS = msgspec.json.Decoder(_Contents).decode
SHALLOW = msgspec.json.Decoder(dict[str, msgspec.Raw])
ENCODER = msgspec.json.Encoder()
KEY = b'"model"'
EVENTS = b"text/event-stream"
LARGE = 1024 * 1024  # bytes; of a larger body only the JSON is looked at
P = TypeVar("P")


def peek(body: bytes, read: Callable[[bytes], P]) -> P:
    """Raises InvalidRequest naming the field that is wrong."""
    try:
        if len(body) < LARGE and not body.isascii():
            body.decode()
        return read(body)
    except msgspec.ValidationError as error:
        raise InvalidRequest(_field(str(error))) from None
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"the body is not UTF-8: {error.reason} at {error.start}") from None
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply") from None
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"the body is not JSON: {error}") from None


def with_model(body: bytes, old: str, new: str) -> bytes:
    """The body with its model replaced and nothing else touched."""
    if body.count(KEY) == 1:  # one alone: this is it
        for written, wanted in _spellings(old, new):
            if body.find(written) >= 0:
                return body.replace(written, wanted, 1)
    try:
        fields = SHALLOW.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(f"the body is not JSON: {error}") from None
    name = ENCODER.encode(new)
    renamed, spliced = {**fields, "model": msgspec.Raw(name)}, _spliced(body, fields, name)
    return spliced if _shallow(spliced) == _texts(renamed) else ENCODER.encode(renamed)


def _spliced(body: bytes, fields: dict[str, msgspec.Raw], model: bytes) -> bytes:
    """One value replaced where it stands: each field begins behind the one before it.

    Unless a name is escaped, or there twice: who calls has to look at what came of it.
    """
    at = 0
    for name, raw in fields.items():
        value, key = bytes(raw), ENCODER.encode(name)
        begin = body.find(value, body.find(key, at) + len(key))
        at = begin + len(value)
        if name == "model":
            return body[:begin] + model + body[at:]
    return b""


def _shallow(body: bytes) -> dict[str, bytes]:
    try:
        return _texts(SHALLOW.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


def _texts(fields: dict[str, msgspec.Raw]) -> dict[str, bytes]:
    return {name: bytes(raw) for name, raw in fields.items()}


@lru_cache(512)
def _spellings(old: str, new: str) -> tuple[tuple[bytes, bytes], ...]:
    """The field as libraries write it, without a space or with one, and what it becomes."""
    name, other = ENCODER.encode(old), ENCODER.encode(new)
    return tuple((KEY + colon + name, KEY + colon + other) for colon in (b":", b": "))


def _field(message: str) -> str:
    """Like our own sentences: the path first."""
    what, _, path = message.partition(" - at `")
    if what == "Object missing required field `model`":
        return "$.model: the model is missing; name an alias or provider/model"
    if what.startswith("Object missing required field"):
        return f"$.{what.split('`')[1]}: expected an array, got nothing"
    return f"{path.rstrip('`') or '$'}: {what[:1].lower()}{what[1:]}"
