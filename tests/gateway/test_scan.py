"""What is known of a relayed stream without reading it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.dialects.base import Garbled
from understudy.dialects.sse import MAX_LINE
from understudy.dialects.table import dialect_named
from understudy.gateway.events import Events
from understudy.gateway.scan import MARKS, Scan
from understudy.messages.response import Response, TextDelta, Usage

USED = Usage(7, 5)
ANSWER = Response("Hello there", finish_reason="stop", id="r-1", usage=USED)


def written(dialect: str) -> bytes:
    """A whole stream that tells its usage, as this dialect writes it."""
    writer = dialect_named(dialect).writer("m")
    if dialect == "openai":
        writer.include_usage = True  # type: ignore[attr-defined]
    events = [TextDelta("Hello "), TextDelta("there"), ANSWER]
    return b"".join(map(writer.write_event, events))


def scanned(dialect: str, pieces: list[bytes]) -> Scan:
    scan, events = Scan(dialect), Events(MARKS[dialect].breaks)
    for piece in pieces:
        if found := events.feed(piece):
            scan.feed(found)
    scan.close(events.take())
    return scan


@st.composite
def sliced(draw: st.DrawFn, data: bytes) -> list[bytes]:
    cuts = sorted(draw(st.sets(st.integers(1, len(data) - 1), max_size=12)))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


@pytest.mark.parametrize("dialect", MARKS)
def test_the_usage_of_a_relayed_stream_is_told_whatever_the_slicing(dialect: str) -> None:
    @given(sliced(written(dialect)))
    def law(pieces: list[bytes]) -> None:
        scan = scanned(dialect, pieces)
        assert (scan.complete, scan.garbled) == (True, False)
        told = scan.usage(dialect_named(dialect).reader())
        assert told is not None
        assert (told.total_input, told.total_output) == (7, 5)

    law()


@pytest.mark.parametrize("failure", ['"finish_reason":"error"', '"error":{"message":"no"}'])
def test_an_error_within_a_choice_is_an_error(failure: str) -> None:
    said = b'data: {"choices":[{"index":0,"delta":{"content":"par"}}]}\n\n'
    failed = b'data: {"choices":[{"index":0,"delta":{},%b}]}\n\n' % failure.encode()
    scan = scanned("openai", [said, failed, b"data: [DONE]\n\n"])
    assert (scan.error[:12], scan.complete) == (b'{"choices":[', False)
    quoted = b'data: {"choices":[{"index":0,"delta":{"content":"\\"error\\""},"error":null}]}\n\n'
    assert scanned("openai", [quoted, b"data: [DONE]\n\n"]).complete


@pytest.mark.parametrize("dialect", MARKS)
def test_a_stream_that_tells_no_usage_has_none(dialect: str) -> None:
    scan = scanned(dialect, [b'data: {"text":"\\"usage\\":{}"}\n\n'])
    assert scan.usage(dialect_named(dialect).reader()) is None


@pytest.mark.parametrize(
    ("line", "garbled"),
    [
        (b'data: {"cho\n\n', True),
        (b'data:{"cho\r\n\r\n', True),
        (b"data: <html>\n\n", True),
        (b"data: oops\n\n", True),
        (b'data: {"a":1}\n\n', False),
        (b'data: {"a":1} \r\n\r\n', False),
        (b"data: [DONE]\n\n", False),
        (b'data: {\ndata: "a":1\ndata: }\n\n', False),
        (b": data: oops\n\n", False),
        (b'event: x\ndata: {"a":"data: oops"}\n\n', False),
        (b'data: {"cho', False),  # it has not ended
    ],
)
def test_an_event_that_is_none_is_seen(line: bytes, garbled: bool) -> None:
    assert scanned("openai", [b'data: {"a":1}\n\n' + line]).garbled is garbled
    assert scanned("openai", [b'data: {"a":1}\n\n', line]).garbled is garbled


GOOD = (
    b'data: {"a":1}\n\n',
    b'data:{"a":{}}\r\n\r\n',
    b': a comment {"a"\n\n',
    b'id: 7\nevent: x\n:HTTP_STATUS/200\ndata: {"a":"<b>"}\n\n',
    b'data: {"a":\ndata: 1}\n\n',
    b"data: [DONE]\n\n",
    b"\r\n",
)
BAD = (b'data: {"a":1\n\n', b"data: Bad Gateway\n\n", b'id: 7\ndata:{"a":1}, {"a"\r\n\r\n')


@given(st.lists(st.sampled_from(GOOD)), st.sampled_from(BAD), st.lists(st.sampled_from(GOOD)))
def test_an_event_that_is_none_is_found_where_it_stands_however_the_others_are_written(
    before: list[bytes], bad: bytes, after: list[bytes]
) -> None:
    fine, scan = Scan("anthropic"), Scan("anthropic")
    fine.feed(b"".join([*before, *after]))
    scan.feed(b"".join([*before, bad, *after]))
    assert not fine.garbled
    assert (scan.garbled, scan.good) == (True, len(b"".join(before)))


def test_a_line_that_is_none_is_seen_where_there_are_no_labels() -> None:
    good = b'{"message":{"content":"a"},"done":false}\n'
    for bad in (b'{"model": "x", "mes\n', b"oops\n", b"<html>\n"):
        assert scanned("ollama", [good + bad]).garbled
        assert scanned("ollama", [good, bad]).garbled
    assert not scanned("ollama", [good, b"\n", good]).garbled


@pytest.mark.parametrize("dialect", ["responses", "anthropic", "gemini", "openai"])
def test_an_event_may_go_over_several_lines(dialect: str) -> None:
    data = b"".join(
        b"data: %b\n" % line if line.strip() else line + b"\n"
        for line in written(dialect).replace(b"data: ", b"").replace(b",", b",\n").split(b"\n")
        if not line.startswith(b"event:")
    )
    scan = scanned(dialect, [data])
    assert (scan.complete, scan.garbled) == (True, False)


@given(st.lists(st.sampled_from([b"data: a", b"\n", b"\r\n", b": ping", b"x" * 9]), max_size=40))
def test_events_are_the_bytes_that_came_and_end_where_an_event_does(pieces: list[bytes]) -> None:
    events, breaks = Events(MARKS["openai"].breaks), MARKS["openai"].breaks
    found = [events.feed(piece) for piece in pieces]
    assert all(not part or part.endswith(breaks) for part in found)
    rest = events.take()
    assert b"".join(found) + rest == b"".join(pieces)
    assert not any(mark in rest for mark in breaks)


def test_an_event_without_end_is_refused() -> None:
    events = Events(MARKS["openai"].breaks)
    for _ in range(MAX_LINE // 65_536):
        assert events.feed(b"x" * 65_536) == b""
    with pytest.raises(Garbled, match="an event of more than"):
        events.feed(b"x")
