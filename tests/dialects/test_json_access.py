"""JSON as typed values: lenient with answers, strict with requests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from strategies import json_values

from understudy.core.errors import InvalidRequest
from understudy.dialects.base import Garbled
from understudy.dialects.json_access import (
    Node,
    decode,
    encode,
    flag,
    items,
    number,
    obj,
    text,
    whole,
    without,
)
from understudy.messages.parts import Json


@given(json_values)
def test_what_is_encoded_is_decoded(value: Json) -> None:
    assert decode(encode(value)) == value
    assert decode(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b'{"a":', b"{} {}", b"[" * 100_000, b'"\xff"', b"NaN", b"1" * 5000],
)
def test_nonsense_is_garbled_and_quoted(body: bytes) -> None:
    with pytest.raises(Garbled, match="not JSON"):
        decode(body)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (rb'"\ud83d\ude00"', "😀"),
        (rb'"\ud83d"', "\ufffd"),
        (rb'"a\ude00b\ud83d\ude00"', "a\ufffdb😀"),
        (rb'"\\ud83d \ud83d"', "\\ud83d \ufffd"),
        (b'\xef\xbb\xbf"a"', "a"),
    ],
)
def test_halves_of_characters_and_a_byte_order_mark_are_forgiven(
    body: bytes, expected: str
) -> None:
    assert decode(body) == expected


def test_a_value_too_deep_to_write_is_the_callers_fault() -> None:
    deep: Json = []
    for _ in range(50_000):
        deep = [deep]
    with pytest.raises(InvalidRequest, match="too deeply"):
        encode(deep)


def test_half_of_a_character_cannot_be_written() -> None:
    with pytest.raises(InvalidRequest, match="no Unicode"):
        encode({"text": "a\ud83d"})


def test_a_wrong_type_reads_as_empty() -> None:
    for wrong in (None, 1.5, True):
        assert (obj(wrong), items(wrong), text(wrong)) == ({}, [], "")
    assert (whole(3), whole(3.0), whole(3.5), whole(True), whole("3")) == (3, 3, None, None, None)
    assert (number(3), number(3.5), number(True), number("3")) == (3, 3.5, None, None)
    assert (flag(True), flag(1)) == (True, None)


def test_without_gives_what_is_left() -> None:
    assert without({"a": 1, "b": 2}, ("a",)) == {"b": 2}
    assert without({"a": 1}, ("a",)) == {}


ROOT = Node.root(b'{"a":[{"b":1,"c":"x","d":null,"e":true,"f":2.5}]}')


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda n: n["b"].text(), r"\$\.a\[0\]\.b: expected a string, got 1"),
        (lambda n: n["c"].obj(), r"\$\.a\[0\]\.c: expected an object, got 'x'"),
        (lambda n: n["c"].nodes(), r"\$\.a\[0\]\.c: expected an array, got 'x'"),
        (lambda n: n["b"]["x"], r"\$\.a\[0\]\.b: expected an object, got 1"),
        (lambda n: n["z"].text(), r"\$\.a\[0\]\.z: expected a string, got nothing"),
        (lambda n: n["c"].word("y", "z"), r'expected "y" or "z", got \'x\''),
        (lambda n: n["f"].opt_whole(), r"expected a whole number, got 2\.5"),
        (lambda n: n["c"].opt_number(), r"expected a number, got 'x'"),
        (lambda n: n["c"].opt_flag(), r"expected true or false, got 'x'"),
        (lambda n: n["c"].opt_obj(), r"expected an object, got 'x'"),
        (lambda n: n["c"].opt_nodes(), r"expected an array, got 'x'"),
        (lambda n: n["b"].opt_text(), r"expected a string, got 1"),
    ],
)
def test_a_wrong_type_in_a_request_is_named_with_its_place(read: Any, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        read(ROOT["a"].nodes()[0])


def test_null_and_missing_are_the_same() -> None:
    (node,) = ROOT["a"].nodes()
    for key in ("d", "z"):
        there = node[key]
        assert there.opt_text() is None
        assert there.opt_obj() is None
        assert there.opt_whole() is there.opt_number() is there.opt_flag() is None
        assert there.opt_nodes() == []


def test_right_types_pass() -> None:
    (node,) = ROOT["a"].nodes()
    assert (node["b"].opt_whole(), node["c"].word("x"), node["e"].opt_flag()) == (1, "x", True)
    assert (node["f"].opt_number(), node["c"].text()) == (2.5, "x")


def test_a_long_value_is_not_quoted_in_an_error() -> None:
    with pytest.raises(InvalidRequest, match="got a str of") as caught:
        Node("secret " * 100).obj()
    assert "secret" not in str(caught.value)
