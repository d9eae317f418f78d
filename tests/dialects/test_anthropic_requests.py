"""Messages requests: histories of any vendor, bent to what Claude takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from wire_rig import encoded

from understudy.core.errors import InvalidRequest, ProviderError
from understudy.core.faults import Fault
from understudy.dialects.anthropic import Anthropic
from understudy.dialects.base import Dialect
from understudy.dialects.openai_chat import OpenAIChat
from understudy.messages.parts import (
    File,
    Image,
    Json,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from understudy.messages.request import (
    Message,
    Request,
    ServerTool,
    Tool,
    ToolChoice,
    assistant,
    system,
    tool_result,
    user,
)

DIALECT: Dialect = Anthropic()
MODEL = "claude-opus-4-8"


def asked(request: Request, model: str = MODEL) -> dict[str, Any]:
    return DIALECT.write_request(request, model, stream=False)


def read(body: dict[str, Any]) -> Request:
    whole = {"model": MODEL, "max_tokens": 9, "messages": [], **body}
    return DIALECT.read_request(encoded(whole)).request


def test_system_prompts_of_another_dialect_are_collected_at_the_top() -> None:
    body = asked(Request(messages=(system("a"), user("hi"), system("b"))))
    assert body["system"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert body["messages"] == [{"role": "user", "content": "hi"}]


def test_a_system_message_between_turns_stays_where_its_client_put_it() -> None:
    turns = [
        {"role": "user", "content": "a"},
        {"role": "system", "content": "now in verse"},
        {"role": "user", "content": "b"},
    ]
    request = read({"messages": turns})
    assert [message.role for message in request.messages] == ["user", "system", "user"]
    assert asked(request)["messages"] == turns


def test_neighbouring_system_messages_between_turns_stay_two() -> None:
    turns = [
        {"role": "user", "content": "a"},
        {"role": "system", "content": "now in verse"},
        {"role": "system", "content": "and softly"},
        {"role": "user", "content": "b"},
    ]
    assert asked(read({"messages": turns}))["messages"] == turns


def test_neighbours_of_one_role_become_one_turn_and_results_come_first() -> None:
    call, other = ToolCall("c1", "f"), ToolCall("c2", "g")
    messages = (
        user("go"),
        assistant(call),
        assistant(other),
        user("wait"),
        tool_result(call, "1"),
        tool_result(other, "2", is_error=True),
    )
    turns = asked(Request(messages=messages))["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert [b["id"] for b in turns[1]["content"]] == ["c1", "c2"]
    assert turns[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "1"},
        {"type": "tool_result", "tool_use_id": "c2", "content": "2", "is_error": True},
        {"type": "text", "text": "wait"},
    ]


def test_a_result_is_told_the_name_of_its_call() -> None:
    turns = [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}],
        },
    ]
    assert read({"messages": turns}).messages[1] == Message(
        "tool", (ToolResult("t1", "f", (Text("ok"),)),)
    )


FOREIGN: list[Part] = [
    Reasoning("thought", "openai", "sig"),
    Reasoning("thought", "gemini"),
    Reasoning("unsigned, so nobody's"),
    Reasoning("unsigned", "anthropic"),
    Opaque("openai", {"type": "web_search_call"}),
    Text("  \n"),
]


@pytest.mark.parametrize("part", FOREIGN, ids=repr)
def test_what_is_bound_to_others_or_blank_does_not_reach_claude(part: Part) -> None:
    request = Request(messages=(user("a"), assistant(part), user("b")))
    turn = {"role": "user", "content": [{"type": "text", "text": t} for t in "ab"]}
    assert asked(request)["messages"] == [turn]


def test_extras_of_another_dialect_are_not_written() -> None:
    message = Message(
        "user", (Text("a", {"x": 1}), Image(b"1", "image/png", extra={"y": 1})), {"z": 1}
    )
    call = ToolCall("c", "f", issuer="gemini", extra={"thoughtSignature": "s"})
    request = Request(
        messages=(message, assistant(call)),
        tools=(Tool("f", extra={"strict": True}), ServerTool("openai", {"type": "web"})),
        issuer="openai",
        extra={"logit_bias": {}},
    )
    text = json.dumps(asked(request))
    assert not [
        word for word in ("x", "y", "z", "strict", "logit_bias", "thought") if f'"{word}' in text
    ]
    assert '"web"' not in text


def test_arguments_that_are_no_object_are_made_one() -> None:
    texts = ["", "[1]", "free text"]
    calls = [ToolCall(f"c{n}", "f", text) for n, text in enumerate(texts)]
    blocks = asked(Request(messages=(user("a"), assistant(*calls))))["messages"][1]["content"]
    assert [b["input"] for b in blocks] == [{}, {"input": [1]}, {"input": "free text"}]


def test_ids_claude_would_refuse_are_mended_alike_for_call_and_result() -> None:
    call = ToolCall("functions.get:0", "get")
    turns = asked(Request(messages=(user("a"), assistant(call), tool_result(call, "1"))))[
        "messages"
    ]
    assert (
        turns[1]["content"][0]["id"] == turns[2]["content"][0]["tool_use_id"] == "functions_get_0"
    )


def test_blocks_we_have_no_noun_for_go_back_as_they_came() -> None:
    blocks = [
        {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
        {"type": "document", "source": {"type": "content", "content": []}, "title": "t"},
        {"type": "container_upload", "file_id": "f"},
    ]
    request = read({"messages": [{"role": "user", "content": blocks}]})
    assert all(isinstance(part, Opaque) for part in request.messages[0].parts)
    assert asked(request)["messages"][0]["content"] == blocks


FOUND = {
    "type": "search_result",
    "source": "https://example.org/a",
    "title": "A",
    "content": [{"type": "text", "text": "It is"}, {"type": "text", "text": "green"}],
    "citations": {"enabled": True},
}
CHUNKED = {
    "type": "document",
    "title": "t",
    "source": {"type": "content", "content": [{"type": "text", "text": "It is green"}]},
}


def test_what_a_client_found_reaches_other_vendors_as_text() -> None:
    turn = {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t", "content": [FOUND]},
            FOUND,
            CHUNKED,
        ],
    }
    request = read({"messages": [turn]})
    assert asked(request)["messages"] == [turn]
    result, said, document = (part for turn in request.messages for part in turn.parts)
    assert isinstance(result, ToolResult)
    assert isinstance(said, Text)
    assert result.text == said.text == "A\nhttps://example.org/a\nIt is\n\ngreen\n"
    assert isinstance(document, File)
    assert (document.data, document.mime, document.name) == (b"It is green", "text/plain", "t")
    elsewhere: Any = OpenAIChat().write_request(request, "m", stream=False)
    told, asks = elsewhere["messages"]
    assert told["content"] == said.text
    assert [part["text"] for part in asks["content"]] == [said.text, "It is green"]


def test_results_that_hold_search_results_go_back_as_they_came() -> None:
    content = [{"type": "text", "text": "a"}, {"type": "tool_reference", "tool_name": "f"}]
    turn = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t", "content": content}],
    }
    request = read({"messages": [turn]})
    result = request.messages[0].parts[0]
    assert isinstance(result, ToolResult)
    assert result.text == "a"
    assert asked(request)["messages"] == [turn]


def test_an_image_url_is_passed_on_and_a_data_url_is_unpacked() -> None:
    parts = (Image(url="https://example.org/a.png"), Image(url="data:image/gif;base64,R0lG"))
    content = asked(Request(messages=(Message("user", parts),)))["messages"][0]["content"]
    assert [part["source"] for part in content] == [
        {"type": "url", "url": "https://example.org/a.png"},
        {"type": "base64", "media_type": "image/gif", "data": "R0lG"},
    ]


def test_sound_is_unsupported_rather_than_lost() -> None:
    with pytest.raises(ProviderError, match="audio/wav") as caught:
        asked(Request(messages=(user(File(b"RIFF", "audio/wav")),)))
    assert caught.value.fault is Fault.UNSUPPORTED


def test_nothing_but_blanks_is_unsupported_rather_than_an_empty_conversation() -> None:
    with pytest.raises(ProviderError, match="nothing but blanks") as caught:
        asked(Request(messages=(system("be brief"), user(" \n"))))
    assert caught.value.fault is Fault.UNSUPPORTED


def test_a_picture_in_a_file_is_a_picture() -> None:
    content = asked(Request(messages=(user(File(b"x", "image/png")),)))["messages"][0]["content"]
    assert content[0]["type"] == "image"


CHOICES: list[tuple[ToolChoice, dict[str, Json]]] = [
    (ToolChoice("auto", parallel=False), {"type": "auto", "disable_parallel_tool_use": True}),
    (ToolChoice("required"), {"type": "any"}),
    (
        ToolChoice("tool", "f", True),
        {"type": "tool", "name": "f", "disable_parallel_tool_use": False},
    ),
    (ToolChoice("none", parallel=False), {"type": "none"}),
]


@pytest.mark.parametrize(("choice", "written"), CHOICES)
def test_tool_choices_have_their_own_words(choice: ToolChoice, written: dict[str, Json]) -> None:
    body = asked(Request(messages=(user("a"),), tools=(Tool("f"),), tool_choice=choice))
    assert body["tool_choice"] == written


def test_a_choice_without_tools_is_left_out() -> None:
    assert "tool_choice" not in asked(
        Request(messages=(user("a"),), tool_choice=ToolChoice("auto"))
    )


def test_a_tool_without_parameters_takes_an_empty_object() -> None:
    tool = asked(Request(messages=(user("a"),), tools=(Tool("f"),)))["tools"][0]
    assert tool == {"name": "f", "input_schema": {"type": "object", "properties": {}}}
    assert read({"tools": [tool]}).tools == (Tool("f"),)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"model": None}, "$.model"),
    ({"messages": None}, "$.messages"),
    ({"messages": "hi"}, "$.messages"),
    ({"messages": [{"role": "robot", "content": "x"}]}, "$.messages[0].role"),
    ({"messages": [{"role": "user", "content": 7}]}, "$.messages[0].content"),
    (
        {"messages": [{"role": "user", "content": [{"text": "x"}]}]},
        "$.messages[0].content[0].type",
    ),
    (
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "image", "source": {"type": "base64", "data": "!!"}}],
                }
            ]
        },
        "$.messages[0].content[0].source.data",
    ),
    ({"max_tokens": "many"}, "$.max_tokens"),
    ({"tools": [{"input_schema": {}}]}, "$.tools[0].name"),
    ({"tool_choice": {"type": "maybe"}}, "$.tool_choice.type"),
    ({"output_config": 3}, "$.output_config"),
    ({"thinking": "yes"}, "$.thinking"),
]


@pytest.mark.parametrize(("body", "path"), WRONG)
def test_a_wrong_field_is_named(body: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read(body)
    assert str(caught.value).startswith(f"{path}: ")


def test_the_model_may_stand_in_the_url_instead() -> None:
    body = encoded({"messages": [], "anthropic_version": "bedrock-2023-05-31"})
    assert DIALECT.read_request(body, "claude-x").model == "claude-x"
