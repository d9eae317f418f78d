"""What a client wants, read only as far as routing needs."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import msgspec

from understudy.core.errors import InvalidRequest
from understudy.dialects.base import Dialect
from understudy.messages.response import Usage


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
    errand: Errand | None = None

    @property
    def stream_type(self) -> bytes:
        """The content type of a stream to this client."""
        if self.dialect.name == "ollama":
            return b"application/x-ndjson"
        return EVENTS if self.relayable else b"application/json"  # Gemini's array

    @property
    def sse(self) -> bool:
        """Does a stream to this client have room for comments?"""
        return self.stream_type is EVENTS


class Peek(msgspec.Struct):
    """The two fields that routing needs."""

    model: str
    stream: bool | None = None


PEEK = msgspec.json.Decoder(Peek)
SHALLOW = msgspec.json.Decoder(dict[str, msgspec.Raw])
ENCODER = msgspec.json.Encoder()
KEY = b'"model"'
EVENTS = b"text/event-stream"


def peek(body: bytes) -> Peek:
    """Raises InvalidRequest naming the field that is wrong."""
    try:
        return PEEK.decode(body)
    except msgspec.ValidationError as error:
        raise InvalidRequest(_field(str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
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
    return ENCODER.encode({**fields, "model": msgspec.Raw(ENCODER.encode(new))})


@lru_cache(512)
def _spellings(old: str, new: str) -> tuple[tuple[bytes, bytes], ...]:
    """The field as libraries write it, without a space or with one, and what it becomes."""
    name, other = ENCODER.encode(old), ENCODER.encode(new)
    return tuple((KEY + colon + name, KEY + colon + other) for colon in (b":", b": "))


def _field(message: str) -> str:
    if "missing required field" in message:
        return "$.model: the model is missing; name an alias or provider/model"
    return message
