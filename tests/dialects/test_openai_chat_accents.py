"""Chat Completions requests for vendors with an accent, as their rows in the catalogue have it."""

from __future__ import annotations

from typing import Any

from understudy.dialects.table import QUIRKS, dialect_named
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


def sent_to(vendor: str, request: Request) -> Any:
    row = by_name()[vendor]
    return dialect_named(row.dialect, row.quirks).write_request(request, "m", False)


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


def test_where_a_schema_may_be_ignored_it_is_said_in_words_as_well() -> None:
    body = sent_to("llama-swap", Request((user("x"),), output=Schema({"type": "object"})))
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert [turn["role"] for turn in body["messages"]] == ["system", "user"]
    assert '{"type":"object"}' in body["messages"][0]["content"]


def test_deepseek_gets_one_text_for_a_list_of_them() -> None:
    request = Request((Message("system", (Text("a"), Text("b"))), user("c", Image(url="u"))))
    first, second = sent_to("deepseek", request)["messages"]
    assert first == {"role": "system", "content": "a\n\nb"}
    assert isinstance(second["content"], list)


def test_every_quirk_of_a_vendor_means_something_to_its_dialect() -> None:
    told = {(vendor.dialect, quirk) for vendor in VENDORS for quirk in vendor.quirks}
    assert told <= set(QUIRKS)
