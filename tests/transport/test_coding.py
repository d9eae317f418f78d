"""Unpacking under a limit: any slicing is the same, and a bomb costs no more than the limit."""

from __future__ import annotations

import gzip
import importlib
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.providers.coding import unpacker
from understudy.providers.trouble import Cut, Malformed, TooLarge

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "deflate": zlib.compress,
}


def packed(coding: str, data: bytes) -> bytes:
    if coding == "br":
        pytest.importorskip("brotli")
        result: bytes = importlib.import_module("brotli").compress(data, quality=1)
        return result
    return PACKERS[coding](data)


CODINGS = pytest.mark.parametrize("coding", ["gzip", "deflate", "br"])


@CODINGS
@settings(deadline=None)
@given(data=st.binary(max_size=300), size=st.integers(1, 50))
def test_any_slicing_unpacks_to_the_same(coding: str, data: bytes, size: int) -> None:
    box, small = packed(coding, data), unpacker(coding)
    assert small is not None
    out = b"".join(small.feed(box[n : n + size], 1000) for n in range(0, len(box), size))
    small.end()
    assert out == data


@CODINGS
def test_exactly_the_limit_is_allowed_and_one_byte_more_is_not(coding: str) -> None:
    data = bytes(1000)
    box = packed(coding, data)
    exact, tight = unpacker(coding), unpacker(coding)
    assert exact is not None
    assert tight is not None
    assert exact.feed(box, 1000) == data
    with pytest.raises(TooLarge):
        tight.feed(box, 999)


@CODINGS
def test_a_bomb_costs_no_more_memory_than_the_limit(coding: str) -> None:
    box, opened = packed(coding, bytes(30_000_000)), unpacker(coding)
    assert opened is not None
    tracemalloc.start()
    with pytest.raises(TooLarge):
        opened.feed(box, 1_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000


@CODINGS
def test_half_a_body_is_noticed_at_its_end(coding: str) -> None:
    box, opened = packed(coding, b"hello" * 100), unpacker(coding)
    assert opened is not None
    opened.feed(box[: len(box) // 2], 1000)
    with pytest.raises(Cut):
        opened.end()


@CODINGS
def test_no_body_at_all_is_no_half_a_body(coding: str) -> None:
    opened = unpacker(coding)
    assert opened is not None
    assert opened.feed(b"", 10) == b""
    opened.end()


@CODINGS
@settings(deadline=None)
@given(data=st.binary(min_size=1, max_size=60))
def test_garbage_is_refused_or_unpacked_but_never_worse(coding: str, data: bytes) -> None:
    opened = unpacker(coding)
    assert opened is not None
    try:
        opened.feed(data, 1000)
        opened.end()
    except (Malformed, Cut, TooLarge):
        return


@pytest.mark.parametrize("coding", ["zip", "gzip, gzip", "zstd", "compress"])
def test_a_coding_nobody_knows_is_refused(coding: str) -> None:
    with pytest.raises(Malformed):
        unpacker(coding)


@pytest.mark.parametrize("coding", ["", "identity", " Identity "])
def test_what_is_not_packed_needs_no_unpacking(coding: str) -> None:
    assert unpacker(coding) is None
