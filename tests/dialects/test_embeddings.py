"""Embeddings: found wherever a vendor puts them, counted and billed."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.dialects.base import Garbled, WireError
from understudy.dialects.embeddings import Embeddings, read_response


@pytest.mark.parametrize(
    "wire",
    [
        {"data": [{"embedding": [0.5, 1, -2.0], "index": 0}], "model": "m"},
        {"embeddings": [{"values": [0.5, 1, -2.0]}], "model": "m"},
        {"embedding": {"values": [0.5, 1, -2.0]}, "model": "m"},
        {"embeddings": [[0.5, 1, -2.0]], "model": "m"},
        {"embedding": [0.5, 1, -2.0], "model": "m"},
        {"predictions": [{"embeddings": {"values": [0.5, 1, -2.0]}}], "model": "m"},
    ],
)
def test_vectors_are_found_wherever_a_vendor_puts_them(wire: dict[str, Any]) -> None:
    found = read_response(json.dumps(wire).encode())
    assert found == Embeddings(((0.5, 1.0, -2.0),), "m")
    assert found.count == 1


def floats32() -> st.SearchStrategy[list[float]]:
    return st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=5)


@given(st.lists(floats32(), min_size=1, max_size=3))
def test_base64_holds_the_same_vectors(vectors: list[list[float]]) -> None:
    rows = [
        {"embedding": base64.b64encode(struct.pack(f"<{len(v)}f", *v)).decode()} for v in vectors
    ]
    found = read_response(json.dumps({"data": rows}).encode())
    assert found.vectors == tuple(map(tuple, vectors))


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [({"prompt_tokens": 4, "total_tokens": 5}, 4), ({"total_tokens": 5}, 5), (None, None)],
)
def test_usage_is_the_input(usage: Any, tokens: int | None) -> None:
    body = json.dumps({"data": [], "usage": usage}).encode()
    assert read_response(body) == Embeddings((), "", tokens)


def test_an_error_is_an_error_and_nonsense_is_garbled() -> None:
    with pytest.raises(WireError):
        read_response(b'{"error":{"message":"no","code":404}}')
    for body in (b"<html>", b"{}", b"[]"):
        with pytest.raises(Garbled):
            read_response(body)
