"""Streams for clients that split lines as Python does: google-genai and ollama."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import letters

from understudy.dialects.base import Dialect
from understudy.dialects.gemini import Gemini
from understudy.dialects.json_access import encode, encode_line
from understudy.dialects.ollama import Ollama
from understudy.messages.parts import Reasoning, Text, ToolCall
from understudy.messages.response import Event, ReasoningDelta, Response, TextDelta

# All that `str.splitlines` splits at, among other letters.
texts = st.text(letters | st.sampled_from("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029–”"), max_size=9)


@pytest.mark.parametrize(
    "dialect",
    [Gemini(), Gemini(array=True), Ollama()],
    ids=["gemini", "gemini, array", "ollama"],
)
@example("a\x85b\u2028c\u2029d")
@given(texts)
def test_a_line_of_a_stream_is_one_line_to_whoever_reads_it(dialect: Dialect, text: str) -> None:
    call = ToolCall("c", "f", json.dumps({"a": text}))
    answer = Response(parts=(Reasoning(text), Text(text), call), model=text)
    events: list[Event] = [TextDelta(text), ReasoningDelta(text), call, answer]
    writer = dialect.writer("m")
    body = b"".join(map(writer.write_event, events)) + writer.write_error(503, text, "transient")
    assert body.decode().splitlines() == [
        line.removesuffix("\r") for line in body.decode().removesuffix("\n").split("\n")
    ]


@given(texts)
def test_a_line_says_what_it_would_say_anyway(text: str) -> None:
    assert json.loads(encode_line({text: text})) == json.loads(encode({text: text}))
