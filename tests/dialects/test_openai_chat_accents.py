"""Chat Completions requests for vendors with an accent, as their rows in the catalogue have it."""

from __future__ import annotations

from typing import Any

import pytest

from understudy.dialects.json_access import encode
from understudy.dialects.openai_chat import OpenAIChat
from understudy.dialects.table import dialect_named
from understudy.messages.parts import Image, Text, ToolCall
from understudy.messages.request import (
    Message,
    Request,
    Schema,
    assistant,
    tool_result,
    user,
)
from understudy.providers.catalogue import VENDORS, by_name


def sent_to(vendor: str, request: Request, stream: bool = False) -> Any:
    row = by_name()[vendor]
    return dialect_named(row.dialect, row.quirks).write_request(request, "m", stream)


def test_a_vendor_that_knows_max_tokens_only_gets_that() -> None:
    body = sent_to("together", Request(max_tokens=5))
    assert (body["max_tokens"], "max_completion_tokens" in body) == (5, False)


def test_mistral_gets_its_seed_and_its_nine_letters() -> None:
    call, fit = ToolCall("call_1234567890", "f"), ToolCall("abcDEF123", "f")
    request = Request((assistant(call, fit), tool_result(call, "1")), seed=7)
    body = sent_to("mistral", request)
    made, answered = body["messages"]
    ids = [c["id"] for c in made["tool_calls"]]
    assert (body["random_seed"], "seed" in body) == (7, False)
    assert ids == [answered["tool_call_id"], "abcDEF123"]
    assert len(ids[0]) == 9


def test_mistral_is_spared_what_it_refuses_and_keeps_what_is_its_own() -> None:
    """It answers 422 to any field it does not know, and asks for no usage to tell it."""
    said = {"role": "assistant", "content": "a", "refusal": None, "reasoning_content": "hm"}
    asked = {
        "messages": [{"role": "user", "name": "ann", "content": "x"}, said],
        **{"model": "m", "store": False, "user": "ann", "safe_prompt": True},
    }
    request = OpenAIChat().read_request(encode(asked)).request
    body = sent_to("mistral", request, stream=True)
    assert body["messages"] == [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "a"},
    ]
    assert {name: body[name] for name in body if name != "messages"} == {
        "model": "m",
        "stream": True,
        "safe_prompt": True,
    }


@pytest.mark.parametrize(
    ("vendor", "role"),
    [("openai", "developer"), ("xai", "developer"), ("deepseek", "system"), ("vllm", "system")],
)
def test_who_knows_no_developers_is_told_by_the_system(vendor: str, role: str) -> None:
    asked = {"model": "m", "messages": [{"role": "developer", "content": "be brief"}]}
    body = sent_to(vendor, OpenAIChat().read_request(encode(asked)).request)
    assert body["messages"] == [{"role": role, "content": "be brief"}]


def test_groq_is_spared_what_it_refuses_and_told_to_tell_usage() -> None:
    thought = {"reasoning": "hm", "reasoning_content": "hm"}
    said = {"role": "assistant", "content": "a", "annotations": [], **thought}
    result = {"role": "tool", "tool_call_id": "1", "name": "f", "content": "b"}
    asked = {"model": "m", "store": True, "user": "ann", "messages": [said, result]}
    body = sent_to("groq", OpenAIChat().read_request(encode(asked)).request, stream=True)
    assert body["messages"] == [
        {"role": "assistant", "content": "a", "reasoning": "hm"},
        {"role": "tool", "tool_call_id": "1", "name": "f", "content": "b"},
    ]
    assert (body["user"], "store" in body) == ("ann", False)
    assert body["stream_options"] == {"include_usage": True}


def test_grok_hears_of_no_penalties() -> None:
    asked = {"model": "m", "messages": [], "presence_penalty": 0, "frequency_penalty": 0.5}
    body = sent_to("xai", OpenAIChat().read_request(encode(asked)).request)
    assert body == {"model": "m", "messages": []}


def turn_with(name: str) -> dict[str, Any]:
    return {"messages": [{"role": "assistant", "content": "a", name: "x"}]}


@pytest.mark.parametrize(
    ("vendor", "field", "relayed"),
    [
        ("lmstudio", {"response_format": {"type": "json_object"}}, False),
        ("lmstudio", {"response_format": {"type": "json_schema"}}, True),
        ("minimax", {"response_format": {"type": "json_schema"}}, False),
        ("deepseek", {"messages": [{"role": "developer", "content": "a"}]}, False),
        ("xai", {"messages": [{"role": "developer", "content": "a"}]}, True),
        ("openai", {"messages": [{"role": "developer", "content": "a"}]}, True),
        ("groq", {"stream_options": {"include_usage": True}, "seed": 1, "user": "u"}, True),
        ("groq", {"prompt_cache_key": "k"}, False),
        ("groq", turn_with("reasoning_content"), False),
        ("groq", turn_with("reasoning"), True),
        ("cerebras", turn_with("reasoning_content"), False),
        ("cerebras", {"logprobs": True}, True),
        ("nvidia", {"prompt_cache_key": "k"}, False),
        ("xai", {"presence_penalty": 0}, False),
        ("xai", {"stop": ["a"]}, True),
        ("mistral", {"max_completion_tokens": 5}, False),
        ("mistral", {"seed": 5}, False),
        ("mistral", {"stream_options": {"include_usage": True}}, False),
        ("mistral", {"max_tokens": 5, "random_seed": 5, "safe_prompt": True}, True),
        ("deepseek", {"messages": [{"role": "user", "content": [{"type": "text"}]}]}, False),
        ("deepseek", {"messages": [{"role": "user", "content": "[]"}], "store": True}, True),
        ("openai", {"stream_options": {"include_usage": True}, "seed": 1, "store": True}, True),
    ],
)
def test_a_body_goes_as_it_came_unless_the_vendor_would_refuse_it(
    vendor: str, field: dict[str, Any], relayed: bool
) -> None:
    row = by_name()[vendor]
    body = {"model": "m", "messages": [{"role": "user", "content": 'what "seed": is'}], **field}
    assert dialect_named(row.dialect, row.quirks).is_own(encode(body), "m") is relayed


def test_where_a_schema_may_be_ignored_it_is_said_in_words_as_well() -> None:
    body = sent_to("llama-swap", Request((user("x"),), output=Schema({"type": "object"})))
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert [turn["role"] for turn in body["messages"]] == ["system", "user"]
    assert '{"type":"object"}' in body["messages"][0]["content"]


@pytest.mark.parametrize("vendor", ["lmstudio", "perplexity"])
def test_json_of_any_shape_is_asked_for_by_a_schema_where_there_is_no_other_way(
    vendor: str,
) -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": "json, please"}]}
    body = encode({**asked, "response_format": {"type": "json_object"}})
    sent = sent_to(vendor, OpenAIChat().read_request(body).request)
    assert sent["response_format"]["type"] == "json_schema"
    assert sent["response_format"]["json_schema"]["schema"] == {"type": "object"}


def test_deepseek_gets_one_text_for_a_list_of_them() -> None:
    request = Request((Message("system", (Text("a"), Text("b"))), user("c", Image(url="u"))))
    first, second = sent_to("deepseek", request)["messages"]
    assert first == {"role": "system", "content": "a\n\nb"}
    assert isinstance(second["content"], list)


def test_every_quirk_of_a_vendor_means_something_to_its_dialect() -> None:
    for vendor in VENDORS:
        assert vendor.quirks <= dialect_named(vendor.dialect).quirks, vendor.name
