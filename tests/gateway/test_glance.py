"""What a relayed answer says it used, seen at a glance and read properly."""

from __future__ import annotations

import json

import pytest

from understudy.dialects.base import WireError
from understudy.dialects.table import dialect_named
from understudy.gateway.errands import EMBEDDINGS
from understudy.gateway.glance import usage_of
from understudy.messages.parts import Json
from understudy.messages.response import Usage

ABSURD = 10**30  # more than anything we count with has room for


def chat(tokens: Json) -> Json:
    message: Json = {"role": "assistant", "content": "words"}
    choices: Json = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return {"choices": choices, "usage": {"prompt_tokens": tokens, "completion_tokens": 2}}


def messages(tokens: Json) -> Json:
    content: Json = [{"type": "text", "text": "words"}]
    counts: Json = {"input_tokens": tokens, "output_tokens": 2}
    return {"type": "message", "content": content, "stop_reason": "end_turn", "usage": counts}


def candidates(tokens: Json) -> Json:
    content: Json = {"role": "model", "parts": [{"text": "words"}]}
    counts: Json = {"promptTokenCount": tokens, "candidatesTokenCount": 2}
    return {"candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": counts}


SHAPES = {"openai": chat, "anthropic": messages, "gemini": candidates}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(
    ("told", "taken"), [(7, 7), (7.0, 7), (ABSURD, 0), (1e30, 0), (-ABSURD, 0)]
)
def test_a_count_is_taken_unless_it_is_absurd(name: str, told: Json, taken: int) -> None:
    usage = usage_of(dialect_named(name), json.dumps(SHAPES[name](told)).encode())
    assert usage is not None
    assert (usage.input, usage.output) == (taken, 2)


@pytest.mark.parametrize(("cached", "all_of_it"), [(5, 7), (163, 170)])
def test_more_cached_tokens_than_there_are_in_the_prompt_are_beside_it(
    cached: int, all_of_it: int
) -> None:
    body = json.loads(json.dumps(chat(7)))
    body["usage"]["prompt_tokens_details"] = {"cached_tokens": cached}
    dialect = dialect_named("openai")
    glanced = usage_of(dialect, json.dumps(body).encode())
    assert glanced == dialect.read_response(json.dumps(body).encode()).usage
    assert glanced is not None
    assert (glanced.input, glanced.cache_read, glanced.total_input) == (7, cached, all_of_it)


@pytest.mark.parametrize(
    "broken", [{"finish_reason": "network_error"}, {"error": {"code": 502, "message": "no"}}]
)
def test_words_before_a_failure_do_not_make_an_answer(broken: dict[str, Json]) -> None:
    choice: Json = {"index": 0, "message": {"role": "assistant", "content": "par"}, **broken}
    body: Json = {"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}
    with pytest.raises(WireError):
        usage_of(dialect_named("openai"), json.dumps(body).encode())


@pytest.mark.parametrize(("told", "taken"), [(7, 7), (ABSURD, 0)])
def test_so_it_is_with_embeddings(told: int, taken: int) -> None:
    vectors = {"data": [{"index": 0, "embedding": [0.5]}], "usage": {"prompt_tokens": told}}
    assert EMBEDDINGS.usage(json.dumps(vectors).encode()) == Usage(taken)


@pytest.mark.parametrize("told", [{"finish_reason": "error"}, {"error": {"message": "no memory"}}])
def test_a_failure_told_in_the_choice_is_no_answer(told: dict[str, Json]) -> None:
    choice: Json = {"message": {"content": "half an ans"}, "finish_reason": "stop", **told}
    body = json.dumps({"choices": [choice], "usage": {"prompt_tokens": 7}}).encode()
    with pytest.raises(WireError):
        usage_of(dialect_named("openai"), body)
