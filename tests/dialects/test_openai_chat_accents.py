"""Chat Completions requests for vendors with an accent: one flag, one habit."""

from __future__ import annotations

import pytest
from chat_rig import (
    sent,
)

from understudy.dialects.openai_chat import OpenAIChat
from understudy.messages.parts import (
    Image,
    Reasoning,
    Text,
    ToolCall,
)
from understudy.messages.request import (
    Message,
    Request,
    assistant,
    tool_result,
    user,
)


def test_a_vendor_that_knows_max_tokens_only_gets_that() -> None:
    body = sent(Request(max_tokens=5), OpenAIChat(legacy_max_tokens=True))
    assert (body["max_tokens"], "max_completion_tokens" in body) == (5, False)


def test_mistral_gets_its_seed_and_its_nine_letters() -> None:
    mistral = OpenAIChat(seed_field="random_seed", nine_letter_ids=True)
    call, fit = ToolCall("call_1234567890", "f"), ToolCall("abcDEF123", "f")
    request = Request((assistant(call, fit), tool_result(call, "1")), seed=7)
    body = sent(request, mistral)
    made, answered = body["messages"]
    ids = [c["id"] for c in made["tool_calls"]]
    assert body["random_seed"] == 7
    assert ids == [answered["tool_call_id"], "abcDEF123"]
    assert len(ids[0]) == 9


def test_a_vendor_that_refuses_lists_of_text_gets_one_text() -> None:
    flat = OpenAIChat(flat_text=True)
    request = Request((Message("system", (Text("a"), Text("b"))), user("c", Image(url="u"))))
    first, second = sent(request, flat)["messages"]
    assert first == {"role": "system", "content": "a\n\nb"}
    assert isinstance(second["content"], list)


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("reasoning_content", {"reasoning_content": "hm"}),
        ("reasoning", {"reasoning": "hm"}),
        ("", {}),
    ],
)
def test_reasoning_goes_back_where_the_vendor_wants_it(
    field: str, expected: dict[str, str]
) -> None:
    request = Request((assistant(Reasoning("hm", "openai"), "a"),))
    (turn,) = sent(request, OpenAIChat(reasoning_field=field))["messages"]
    assert turn == {"role": "assistant", "content": "a", **expected}


def test_a_vendor_that_refuses_stream_options_is_not_sent_them() -> None:
    shy = OpenAIChat(stream_usage=False)
    assert "stream_options" not in sent(Request(), shy, stream=True)
