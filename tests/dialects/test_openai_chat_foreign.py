"""Chat Completions requests written for a conversation that began elsewhere."""

from __future__ import annotations

from chat_rig import (
    asking,
    read,
    sent,
)

from understudy.dialects.openai_chat import wants_usage
from understudy.messages.parts import (
    File,
    Image,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from understudy.messages.request import (
    Message,
    Request,
    ServerTool,
    ToolChoice,
    assistant,
    tool_result,
    user,
)


def test_what_is_bound_to_other_vendors_stays_behind() -> None:
    request = Request(
        messages=(
            Message("user", (Text("a", {"cache_control": {}}), Opaque("anthropic", {"x": 1}))),
            assistant(
                Reasoning("hm", "anthropic", "signature"),
                ToolCall("c", "f", "{}", "gemini", {"thoughtSignature": "s"}),
            ),
            assistant(Reasoning("only that", "gemini")),
        ),
        tools=(ServerTool("anthropic", {"type": "web_search_20250305"}),),
        tool_choice=ToolChoice("required"),
        top_k=5,
        reasoning_tokens=100,
        issuer="anthropic",
        extra={"metadata": {"user_id": "u"}},
    )
    assert sent(request) == {
        "model": "m",
        "messages": [
            {"role": "user", "content": "a"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
                ],
            },
        ],
    }


def test_pictures_in_a_foreign_tool_result_follow_as_a_users_turn() -> None:
    first, second = ToolCall("c", "f"), ToolCall("d", "f")
    request = Request(
        (
            assistant(first, second),
            Message(
                "tool",
                (
                    ToolResult("c", "f", (Text("see"), Image(b"\0", "image/png"))),
                    ToolResult("d", "f", (Text("2"),)),
                ),
            ),
            user("well?"),
        ),
        issuer="anthropic",
    )
    messages = sent(request)["messages"]
    assert messages[1:] == [
        {"role": "tool", "tool_call_id": "c", "content": "see"},
        {"role": "tool", "tool_call_id": "d", "content": "2"},
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}],
        },
        {"role": "user", "content": "well?"},
    ]


def test_results_and_words_in_one_foreign_turn_are_told_apart() -> None:
    mixed = Message("user", (ToolResult("c", "f", (Text("1"),)), Text("go on")))
    messages = sent(Request((assistant(ToolCall("c", "f")), mixed)))
    assert messages["messages"][1:] == [
        {"role": "tool", "tool_call_id": "c", "content": "1"},
        {"role": "user", "content": "go on"},
    ]


def test_a_foreign_id_that_is_too_long_is_shortened_alike_in_call_and_result() -> None:
    call = ToolCall("x" * 60, "f")
    messages = sent(Request((assistant(call), tool_result(call, "1"))))
    made, answered = messages["messages"]
    assert made["tool_calls"][0]["id"] == answered["tool_call_id"]
    assert len(answered["tool_call_id"]) <= 40


def test_a_stream_asks_for_usage_and_a_plain_request_does_not() -> None:
    request = Request.of("hi")
    assert sent(request, stream=True)["stream_options"] == {"include_usage": True}
    assert "stream_options" not in sent(request)
    wire = asking({"role": "user", "content": "a"}, stream=True)
    assert not wants_usage(read(wire))
    assert wants_usage(read(wire | {"stream_options": {"include_usage": True}}))
    assert not wants_usage(request)


def test_a_role_that_cannot_be_is_not_written() -> None:
    turn = Message("user", (Text("a"),), {"role": "boss", "name": "bob"})
    (wire,) = sent(Request((turn,), issuer="openai"))["messages"]
    assert wire == {"role": "user", "content": "a", "name": "bob"}


def test_a_turn_with_nothing_for_this_wire_is_left_out() -> None:
    nothing = (Opaque("anthropic", {}), File(name="only a name"))
    turns = (Message("user", nothing), Message("assistant", (Reasoning("hm", "gemini"),)))
    assert sent(Request(turns, issuer="anthropic"))["messages"] == []
    assert sent(Request((Message("user"),)))["messages"] == [{"role": "user", "content": ""}]


def test_a_picture_in_the_last_tool_result_follows_at_the_end() -> None:
    shown = ToolResult("c", "f", (Image(url="https://x/y"),))
    *_, last = sent(Request((assistant(ToolCall("c", "f")), Message("tool", (shown,)))))[
        "messages"
    ]
    assert last["role"] == "user"
    assert last["content"][0]["image_url"] == {"url": "https://x/y"}
