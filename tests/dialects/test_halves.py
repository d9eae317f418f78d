"""Characters beyond the first plane, cut in two by vendors that count in UTF-16 units."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import letters
from wire_rig import heard

from understudy.dialects.base import Dialect
from understudy.dialects.json_access import Halves, decode
from understudy.dialects.table import DIALECTS, dialect_named
from understudy.messages.response import Response, TextDelta

# A piece of text in JSON's words -> the event that tells it; and how a stream of them ends.
EVENTS: dict[str, tuple[str, str]] = {
    "openai": (
        'data: {"model":"m","choices":[{"delta":{"content":"%s"}}]}\n\n',
        'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
    ),
    "responses": (
        'data: {"type":"response.output_text.delta","delta":"%s"}\n\n',
        'data: {"type":"response.completed","response":{"status":"completed"}}\n\n',
    ),
    "anthropic": (
        'data: {"type":"content_block_delta","index":0,'
        '"delta":{"type":"text_delta","text":"%s"}}\n\n',
        'data: {"type":"message_stop"}\n\n',
    ),
    "gemini": (
        'data: {"candidates":[{"content":{"parts":[{"text":"%s"}]}}]}\n\n',
        'data: {"candidates":[{"finishReason":"STOP"}]}\n\n',
    ),
    "ollama": (
        '{"message":{"content":"%s"},"done":false}\n',
        '{"message":{"content":""},"done":true,"done_reason":"stop"}\n',
    ),
}
_CALL = (
    'data: {"model":"m","choices":[{"delta":{"tool_calls":[{"index":0,"id":"c",'
    '"function":{"name":"f","arguments":"PIECE"}}]}}]}\n\n'
)
every_dialect = pytest.mark.parametrize("name", EVENTS)
texts = st.text(letters | st.sampled_from('😀🎉\\"'), min_size=1, max_size=12)


def stream(name: str, pieces: list[str]) -> bytes:
    event, ending = EVENTS[name]
    return ("".join(event % piece for piece in pieces) + ending).encode()


def said(dialect: Dialect, body: bytes, size: int) -> tuple[str, str]:
    """What the deltas said, and what the answer says in the end."""
    events, _ = heard(dialect, body, [*range(size, len(body), size)])
    assert isinstance(events[-1], Response)
    return "".join(e.text for e in events if isinstance(e, TextDelta)), events[-1].text


def units(text: str) -> list[str]:
    """The text in JSON's words, UTF-16 unit by unit."""
    told = text.encode("utf-16-be")
    return [f"\\u{told[at : at + 2].hex()}" for at in range(0, len(told), 2)]


def test_every_dialect_has_its_events_here() -> None:
    assert set(EVENTS) == set(DIALECTS)


@every_dialect
@example("a😀", 1, 1 << 30)
@given(texts, st.integers(1, 5), st.integers(1, 200))
def test_a_text_cut_between_the_halves_of_a_character_is_whole_again(
    name: str, text: str, at_once: int, size: int
) -> None:
    words = units(text)
    pieces = ["".join(words[at : at + at_once]) for at in range(0, len(words), at_once)]
    assert said(dialect_named(name), stream(name, pieces), size) == (text, text)


@every_dialect
@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["a\\ud83d"], "a"),  # it was no character
        (["a\\ud83d", "b"], "ab"),
        (["\\ude00a"], "\ufffda"),
        (["a\\ud83db"], "a\ufffdb"),
        (["a\\ud83d", "\\ud83d", "\\ude00b"], "a😀b"),
        (["a\\\\ud83d", "\\ude00b"], "a\\ud83d\ufffdb"),
        (["a\\\\\\ud83d", "\\ude00b"], "a\\😀b"),
        (["a\\ud83d", '\\"\\ude00b'], 'a"\ufffdb'),
    ],
)
def test_a_half_without_its_other_half_does_not_cost_the_answer(
    name: str, pieces: list[str], text: str
) -> None:
    assert said(dialect_named(name), stream(name, pieces), 7) == (text, text)


def test_each_text_that_repeats_a_piece_is_mended() -> None:
    halves = Halves()
    first, second = b'{"a":"x\\ud83d","b":["\\ud83d"]}', b'{"a":"\\ude00","b":["\\ude00y"]}'
    assert decode(first, halves) == {"a": "x", "b": [""]}
    assert decode(second, halves) == {"a": "😀", "b": ["😀y"]}


def test_arguments_cut_between_two_halves_are_whole() -> None:
    pieces = ('{\\"a\\": \\"\\ud83d', '\\ude00\\"}')
    body = "".join(_CALL.replace("PIECE", piece) for piece in pieces) + EVENTS["openai"][1]
    last = heard(dialect_named("openai"), body.encode())[0][-1]
    assert isinstance(last, Response)
    assert json.loads(last.tool_calls[0].arguments) == {"a": "😀"}
