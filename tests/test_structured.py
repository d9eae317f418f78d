"""Answers as values of the caller's own types, over chains of fakes."""

from __future__ import annotations

import json
from dataclasses import dataclass

import msgspec
import pydantic
import pytest

from tests.rig import Play, run
from understudy import (
    Capabilities,
    ChainExhausted,
    Request,
    Response,
    Schema,
    Text,
    ToolCall,
    UnderstudyError,
    system,
    user,
)
from understudy.messages.parts import Reasoning
from understudy.structured import StructuredError, generate_as


@dataclass
class City:
    name: str
    people: int


class Town(msgspec.Struct):
    name: str
    people: int


class Village(pydantic.BaseModel):
    name: str
    people: int


ROME = '{"name": "Rome", "people": 3}'


def asked(play: Play, kind: type, prompt: object = "where?", **options: object) -> object:
    model = play.registry.parse("p/a, p/b")
    return run(generate_as(model, kind, prompt, **options))  # type: ignore[arg-type]


def failed(play: Play, kind: type = City) -> StructuredError:
    with pytest.raises(StructuredError) as caught:
        asked(play, kind)
    assert isinstance(caught.value, UnderstudyError)
    return caught.value


@pytest.mark.parametrize(
    ("kind", "value"),
    [(City, City("Rome", 3)), (Town, Town("Rome", 3)), (Village, Village(name="Rome", people=3))],
)
def test_an_answer_comes_as_the_type_that_was_asked_for(kind: type, value: object) -> None:
    play = Play().script(a=[ROME])
    assert asked(play, kind) == value
    output = play.p.calls[0][1].output
    assert output is not None
    assert output.name == kind.__name__.lower()
    assert output.schema is not None
    assert output.schema["required"] == ["name", "people"]


def test_the_chain_fails_over_and_a_fence_is_no_matter() -> None:
    play = Play().script(a=[503, 503], b=[f"```json\n{ROME}\n```"])
    assert asked(play, City) == City("Rome", 3)
    assert play.told == ["p/a=transient", "p/a=transient", "p/b=ok"]


def test_options_and_requests_are_taken_as_by_generate() -> None:
    play = Play().script(a=[ROME, ROME])
    request = Request.of([system("be brief"), user("where?")])
    asked(play, City, request, temperature=0.5, timeout=10)
    asked(play, City, iter(request.messages))
    for _, sent in play.p.calls:
        assert sent.messages == request.messages
    assert play.p.calls[0][1].temperature == 0.5
    assert request.output is None


def test_a_target_without_schemas_is_told_in_words() -> None:
    play = Play().script(a=[503, 503], b=[ROME])
    play.p.describe("b", Capabilities(structured=False))
    assert asked(play, City) == City("Rome", 3)
    head, _, told = [sent for _, sent in play.p.calls]
    assert head.output is not None
    assert told.output is None
    assert '"required":["name","people"]' in told.messages[0].text


@pytest.mark.parametrize("kind", [City, Town, Village])
def test_an_answer_of_another_shape_names_who_served_and_shows_what_came(kind: type) -> None:
    play = Play().script(a=[503, 503], b=['{"name": "Rome", "people": "many"}'])
    error = failed(play, kind)
    assert error.model == "p/b"
    assert f"p/b gave no {kind.__name__}" in str(error)
    assert "people" in str(error)
    assert '{"name": "Rome", "people": "many"}' in str(error)
    assert isinstance(error.__cause__, ValueError)


def test_only_the_beginning_of_a_long_answer_is_shown() -> None:
    error = failed(Play().script(a=["x" * 200 + "y" * 5000]))
    assert "x" * 200 in str(error)
    assert "xy" not in str(error)
    assert len(error.said) == 5200


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Response(finish_reason="content_filter"), "empty (finish reason 'content_filter')"),
        (Response(refusal="I would rather not"), "it refused; it said 'I would rather not'"),
        (Response(tool_calls=(ToolCall("1", "find"),)), "it called the tool 'find' instead"),
        (Response("{", finish_reason="length"), "the answer was cut off"),
    ],
)
def test_why_there_is_no_value_is_said(reply: Response, says: str) -> None:
    assert says in str(failed(Play().script(a=[reply])))


def test_what_generate_raises_passes_through() -> None:
    play = Play().script(a=[503, 503], b=[503, 503])
    with pytest.raises(ChainExhausted):
        asked(play, City)


def test_a_type_that_cannot_be_asked_for_costs_no_call() -> None:
    play = Play()
    with pytest.raises(TypeError, match="is no object"):
        asked(play, int)
    assert play.called == []


@pytest.mark.parametrize("text", ['```json\n{"a": 1}\n```', '```\n{"a": 1}```', ' {"a": 1}'])
def test_json_that_was_asked_for_comes_without_the_fence_round_it(text: str) -> None:
    play = Play().script(a=[Response(parts=(Reasoning("hm"), Text(text)))])
    reply = run(play.registry.parse("p/a").generate("hi", output=Schema()))
    assert json.loads(reply.text) == {"a": 1}
    assert reply.reasoning == "hm"


def test_a_fence_nobody_asked_to_leave_away_stays() -> None:
    play = Play().script(a=['```json\n{"a": 1}\n```'])
    assert run(play.registry.parse("p/a").generate("hi")).text.startswith("```")
