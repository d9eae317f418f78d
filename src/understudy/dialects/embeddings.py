"""Embeddings: enough of an answer to count and bill it. Requests are passed on unread.

Vectors are not translated between vendors: vectors of two models do not compare, so a chain of
embeddings must be one model at several hosts.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from understudy.dialects.base import Garbled
from understudy.dialects.blobs import read_base64
from understudy.dialects.error_body import error_in, wire_error
from understudy.dialects.json_access import Wire, decode, excerpt, items, number, obj, text, whole
from understudy.messages.parts import Json


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Vectors, and what they cost."""

    vectors: tuple[tuple[float, ...], ...] = field(default=(), repr=False)
    model: str = ""
    input_tokens: int | None = None

    @property
    def count(self) -> int:
        return len(self.vectors)


def path(model: str) -> str:
    return "/embeddings"


def read_response(body: bytes) -> Embeddings:
    """Raises WireError for an error payload, Garbled for something else entirely."""
    value = decode(body)
    wire = obj(value)
    found = _rows(wire)
    if found is None:
        if error_in(value):
            raise wire_error(body, value)
        raise Garbled(f"an answer without embeddings: {excerpt(body)}")
    usage = obj(wire.get("usage"))
    return Embeddings(
        tuple(_vector(row) for row in found),
        text(wire.get("model")),
        whole(usage.get("prompt_tokens", usage.get("total_tokens"))),
    )


def _rows(wire: Wire) -> list[Json] | None:
    """The vectors' places: OpenAI's `data`, or what Google, Vertex and Ollama have instead."""
    for key in ("data", "embeddings", "predictions"):
        if isinstance(wire.get(key), list):
            return items(wire[key])
    return [wire["embedding"]] if "embedding" in wire else None


def _vector(row: Json) -> tuple[float, ...]:
    """Numbers, or base64 of little-endian floats; at the end of whatever nesting a vendor has."""
    for key in ("embedding", "embeddings", "values"):
        row = row[key] if isinstance(row, dict) and key in row else row
    if isinstance(row, str):
        data = read_base64(row) or b""
        return struct.unpack(f"<{len(data) // 4}f", data[: len(data) // 4 * 4])
    found = map(number, items(row))
    return tuple(n for n in found if n is not None)
