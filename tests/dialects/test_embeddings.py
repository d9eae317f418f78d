"""Embeddings: counted, billed, and passed on with nothing but the model changed."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import objects

from understudy.core.errors import InvalidRequest
from understudy.dialects.base import Garbled, WireError
from understudy.dialects.embeddings import (
    Embeddings,
    EmbeddingsRequest,
    path,
    read_request,
    read_response,
    write_request,
)


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
    assert (found.count, found.dimensions) == (1, 3)


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
    assert read_response(body).dimensions == 0


def test_an_error_is_an_error_and_nonsense_is_garbled() -> None:
    with pytest.raises(WireError):
        read_response(b'{"error":{"message":"no","code":404}}')
    for body in (b"<html>", b"{}", b"[]"):
        with pytest.raises(Garbled):
            read_response(body)


@pytest.mark.parametrize(
    ("given_input", "count"),
    [("a", 1), (["a", "b"], 2), ([1, 2, 3], 1), ([[1, 2], [3]], 2), ([], 0)],
)
def test_a_request_says_how_much_it_asks_for(given_input: Any, count: int) -> None:
    body = json.dumps({"model": "m", "input": given_input}).encode()
    assert read_request(body) == EmbeddingsRequest("m", count)


@pytest.mark.parametrize("body", [b"{}", b'{"model":"m"}', b'{"model":1,"input":"a"}', b"["])
def test_a_wrong_request_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        read_request(body)


@given(objects)
def test_only_the_model_is_changed(fields: dict[str, Any]) -> None:
    body = json.dumps({**fields, "model": "a"}).encode()
    assert json.loads(write_request(body, "b")) == {**fields, "model": "b"}
    assert path("b") == "/embeddings"


def test_numbers_keep_their_digits_on_the_way() -> None:
    assert b"1.000000000000000000001" in write_request(b'{"x":1.000000000000000000001}', "m")
    with pytest.raises(InvalidRequest):
        write_request(b"[1]", "m")
