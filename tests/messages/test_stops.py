"""Answers cut where their client asked, by us, if the model could not be told of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy import Request, Response, Tool, ToolCall, ToolChoice, user
from understudy.dialects.table import DIALECTS, dialect_named
from understudy.messages.parts import Reasoning, Text
from understudy.messages.response import Event, ReasoningDelta, TextDelta
from understudy.messages.stops import Cutting, cut

WORDS = st.text("ab\n", max_size=12)
STOPS = st.lists(st.text("ab\n", min_size=1, max_size=4), max_size=3).map(tuple)


def told(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@given(st.lists(WORDS, max_size=6), STOPS)
def test_a_stream_is_cut_where_the_whole_answer_is_whatever_its_pieces(
    pieces: list[str], stops: tuple[str, ...]
) -> None:
    cutting, whole = Cutting(stops), Response("".join(pieces))
    events = [event for piece in pieces for event in cutting.events([TextDelta(piece)])]
    *more, last = cutting.events([whole])
    assert isinstance(last, Response)
    assert told(events + more) == last.text == cut(whole, stops).text


@given(WORDS, STOPS)
def test_what_is_left_holds_no_stop_and_is_all_before_the_first(
    text: str, stops: tuple[str, ...]
) -> None:
    left = cut(Response(text), stops).text
    assert text.startswith(left)
    assert not any(stop in left for stop in stops)
    assert left == text or any(text[len(left) :].startswith(stop) for stop in stops)


def test_nothing_behind_the_stop_is_told() -> None:
    call = ToolCall("1", "f")
    parts = (Reasoning("hm"), Text("a"), Text("b. c"), call)
    answer = Response(parts=parts, finish_reason="tool_calls", finish_raw="tool_use")
    kept = cut(answer, (".",))
    assert kept.parts == (Reasoning("hm"), Text("a"), Text("b"))
    assert (kept.finish_reason, kept.finish_raw, kept.tool_calls) == ("stop", "", ())
    cutting = Cutting((".",))
    events = cutting.events([ReasoningDelta("hm"), TextDelta("ab. c"), TextDelta("d"), call])
    assert events == [ReasoningDelta("hm"), TextDelta("ab")]


def test_a_call_lets_go_what_may_have_been_a_stop() -> None:
    call = ToolCall("1", "f")
    assert Cutting(("\n\n",)).events([TextDelta("a\n"), call]) == [
        TextDelta("a"),
        TextDelta("\n"),
        call,
    ]


def test_an_answer_without_a_stop_is_the_same_object() -> None:
    answer = Response("abc")
    assert cut(answer, ("d",)) is answer
    assert cut(answer, ()) is answer


@pytest.mark.parametrize(
    ("dialect", "model", "stops", "unheard"),
    [
        ("openai", "gpt-5.5", ("a",), ("a",)),
        ("openai", "o4-mini", ("a",), ("a",)),
        ("openai", "gpt-4.1", ("a", "b", "c", "d", "e"), ("e",)),
        ("openai", "llama-3.3", ("a",), ()),
        ("responses", "gpt-4.1", ("a",), ("a",)),
        ("anthropic", "claude-x", ("a", "\n", " \t"), ("\n", " \t")),
        ("gemini", "gemini-x", tuple("abcdef"), ("f",)),
        ("ollama", "llama", ("a", "\n"), ()),
    ],
)
def test_a_model_is_not_told_of_stops_that_it_would_refuse(
    dialect: str, model: str, stops: tuple[str, ...], unheard: tuple[str, ...]
) -> None:
    request = Request(stop=stops, max_tokens=9)
    spoken = dialect_named(dialect)
    assert spoken.bends(request, model).stops == unheard
    heard = replace(request, stop=tuple(stop for stop in stops if stop not in unheard))
    assert spoken.write_request(request, model, False) == spoken.write_request(heard, model, False)


@pytest.mark.parametrize("dialect", sorted(DIALECTS.keys() - {"responses"}))
def test_a_client_of_the_same_dialect_is_taken_at_its_word(dialect: str) -> None:
    spoken = dialect_named(dialect)
    request = Request(stop=("\n", *"abcdef"), tools=(Tool("a.b"),), issuer=spoken.name)
    bends = spoken.bends(request, "gpt-5.5")
    assert not bends
    assert bends.told(request) is request


def test_a_request_that_needs_no_bending_is_the_same_object() -> None:
    request = Request((user("x"),), tools=(Tool("f"),), tool_choice=ToolChoice("tool", "f"))
    assert dialect_named("openai").bends(request, "gpt-5.5").told(request) is request
