"""Frames out of bytes: whatever the slicing, the line ends and the peer's manners."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.dialects.base import Garbled
from understudy.dialects.sse import Body, Frame, Frames, Lines


def frames_of(*chunks: bytes, limit: int = 1000) -> list[Frame]:
    frames = Frames(Lines(limit))
    found = [frame for chunk in chunks for frame in frames.feed(chunk)]
    return found + frames.end()


def sliced(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\n", [("", b"a")]),
        (b"data:a\n\n", [("", b"a")]),
        (b"data:  a\n\n", [("", b" a")]),
        (b"event: x\ndata: a\n\ndata: b\n\n", [("x", b"a"), ("", b"b")]),
        (b"event: x\n\ndata: a\n\n", [("", b"a")]),
        (b"data: a\ndata: b\n\n", [("", b"a\nb")]),
        (b"data: a\r\ndata: b\r\n\r\n", [("", b"a\nb")]),
        (b"data: a\r\rdata: b\r\r", [("", b"a"), ("", b"b")]),
        (b": ping\n\n: pong\ndata: a\n\n", [("", b"a")]),
        (b"id: 1\nretry: 10\ndata: a\n\n", [("", b"a")]),
        (b"data: a", [("", b"a")]),
        (b"data: a\n", [("", b"a")]),
        (b"data:\n\ndata\n\ndata: a\n\n", [("", b"a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [("", b"a")]),
        (b"\xef\xbb\xbfdata: a", [("", b"a")]),
        (b'data: a\n\n{"error": 1}\n', [("", b"a"), ("", b'{"error": 1}')]),
        (b'event: x\ndata: a\n{"b": 1}\n\n', [("x", b"a"), ("x", b'{"b": 1}')]),
        (b"", []),
        (b"\n\n\n", []),
    ],
)
def test_frames_follow_the_standard_and_forgive_peers(
    stream: bytes, expected: list[tuple[str, bytes]]
) -> None:
    assert [(frame.event, frame.data) for frame in frames_of(stream)] == expected


PIECES = st.lists(
    st.sampled_from(
        [
            b"data: ",
            b"data:",
            b"event: x",
            b": c",
            b"\n",
            b"\r\n",
            b"\r",
            "é😀".encode(),
            b"{}",
            b"data: a\n\n",
            b"event: x\ndata:b\n\n",
            b"event:  y \ndata: c\nid: 1\n\n",
        ]
    ),
    max_size=12,
).map(b"".join)


@given(PIECES, st.lists(st.integers(0, 200), max_size=8))
def test_any_slicing_gives_the_same_frames(stream: bytes, cuts: list[int]) -> None:
    assert frames_of(*sliced(stream, cuts)) == frames_of(stream)


@given(PIECES)
def test_a_byte_at_a_time_gives_the_same_frames(stream: bytes) -> None:
    assert frames_of(*(bytes([byte]) for byte in stream)) == frames_of(stream)


@given(PIECES)
def test_whole_events_in_mid_stream_are_read_as_at_its_beginning(stream: bytes) -> None:
    assert frames_of(b"\n", stream) == frames_of(stream)


@given(PIECES)
def test_a_byte_order_mark_changes_nothing(stream: bytes) -> None:
    assert frames_of(b"\xef", b"\xbb\xbf" + stream) == frames_of(stream)


@pytest.mark.parametrize("size", [1, 7, 5000])
def test_a_line_over_the_limit_is_refused_whatever_the_slicing(size: int) -> None:
    stream = b"data: " + b"x" * 995 + b"\n\n"
    with pytest.raises(Garbled, match="a line of more than 1000 bytes"):
        frames_of(*(stream[i : i + size] for i in range(0, len(stream), size)))


def test_a_line_at_the_limit_passes() -> None:
    (frame,) = frames_of(b"data: " + b"x" * 994 + b"\n\n")
    assert len(frame.data) == 994


def test_an_event_of_many_lines_is_bounded_too() -> None:
    with pytest.raises(Garbled, match="an event of more than 1000 bytes"):
        frames_of(*[b"data: " + b"x" * 94 + b"\n"] * 12)


def test_many_small_events_never_reach_the_limit() -> None:
    assert len(frames_of(*[b"data: " + b"x" * 94 + b"\n\n"] * 50)) == 50


def test_a_long_line_in_small_slices_is_kept_in_one_buffer() -> None:
    lines = Lines()
    for _ in range(20_000):  # copying the tail each time would move 4 GB
        assert lines.feed(b"x" * 20) == []
    assert lines.feed(b"\n") == [b"x" * 400_000]
    assert lines.end() == []


def test_lines_give_up_their_tail_at_the_end() -> None:
    lines = Lines()
    assert lines.feed(b'{"a":1}\n{"b"') == [b'{"a":1}']
    assert lines.end() == [b'{"b"']
    assert lines.end() == []


@pytest.mark.parametrize("lead", [b"", b"\n \r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
@pytest.mark.parametrize("size", [1, 2, 100])
def test_a_body_that_opens_with_a_brace_is_plain(lead: bytes, size: int) -> None:
    body, text = Body(), lead + b'{\n\n"a": 1}'
    for i in range(0, len(text), size):
        assert body.feed(text[i : i + size]) == []
    assert body.end() == []
    assert bytes(body.plain or b"") == b'{\n\n"a": 1}'


@pytest.mark.parametrize("lead", [b"", b"\n \r\n", b"\xef\xbb\xbf", b": ping\n\n"])
@pytest.mark.parametrize("size", [1, 2, 100])
def test_any_other_body_is_a_stream(lead: bytes, size: int) -> None:
    body, text = Body(), lead + b"data: a\n\n"
    found = [f for i in range(0, len(text), size) for f in body.feed(text[i : i + size])]
    assert found + body.end() == [Frame("", b"a")]
    assert body.plain is None


def test_a_body_of_blanks_is_empty() -> None:
    body = Body()
    assert body.feed(b"\r\n \xef") == []
    assert body.empty
    assert body.end() == []


def test_a_plain_body_is_bounded() -> None:
    body = Body(Frames(Lines(10)))
    with pytest.raises(Garbled, match="a body of more than 10 bytes"):
        body.feed(b'{"a": "0123456789"}')
