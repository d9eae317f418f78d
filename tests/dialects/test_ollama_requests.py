"""Ollama requests: what a loose wire makes of histories, pictures and schemas."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from strategies_others import PNG
from wire_rig import encoded

from understudy.core.errors import InvalidRequest, ProviderError
from understudy.core.faults import Fault
from understudy.dialects.base import Dialect
from understudy.dialects.ollama import Ollama
from understudy.messages.parts import (
    File,
    Image,
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
    Schema,
    ServerTool,
    Tool,
    ToolChoice,
    assistant,
    system,
    tool_result,
    user,
)

DIALECT: Dialect = Ollama()


def asked(request: Request) -> dict[str, Any]:
    return DIALECT.write_request(request, "m", stream=False)


def read(**body: Any) -> Request:
    return DIALECT.read_request(encoded({"model": "m", "messages": [], **body})).request


def test_a_plain_call_says_that_it_does_not_stream() -> None:
    assert asked(Request(messages=(user("a"),)))["stream"] is False
    assert DIALECT.read_request(b'{"model": "m", "messages": []}').stream is True
    assert DIALECT.path("m", stream=True) == "/api/chat"


def test_parts_are_written_as_one_text_with_bare_base64_beside_it() -> None:
    note = File(b"x,y", "text/csv")
    turn = user("a", Image(b"1", "image/png"), "b", note, Image(url="data:image/png;base64,Mg=="))
    assert asked(Request(messages=(turn,)))["messages"] == [
        {"role": "user", "content": "a\n\nb\n\nx,y", "images": ["MQ==", "Mg=="]}
    ]


def test_the_kind_of_a_picture_is_read_from_its_bytes() -> None:
    pictures = {
        "image/png": PNG,
        "image/jpeg": b"\xff\xd8\xff\xe0",
        "image/gif": b"GIF89a",
        "image/webp": b"RIFF\0\0\0\0WEBPVP8 ",
        "": b"?",
    }
    for mime, data in pictures.items():
        body = asked(Request(messages=(user(Image(data)),)))
        assert read(messages=body["messages"]).messages[0].parts == (Image(data, mime),)


@pytest.mark.parametrize(
    "part",
    [
        Image(url="https://example.org/a.png"),
        File(b"%PDF", "application/pdf"),
        File(b"\xff", "text/plain"),
    ],
    ids=repr,
)
def test_what_ollama_cannot_take_is_unsupported_rather_than_lost(part: Part) -> None:
    with pytest.raises(ProviderError, match="ollama takes") as caught:
        asked(Request(messages=(user(part),)))
    assert caught.value.fault is Fault.UNSUPPORTED


def test_results_are_messages_with_names_and_a_prefix_for_errors() -> None:
    first, second = ToolCall("c1", "f", '{"a":1}'), ToolCall("c2", "g")
    results = Message(
        "tool", (ToolResult("c1", content=(Text("1"), Image(b"2"))), ToolResult("c2"))
    )
    failed = tool_result(second, "no", is_error=True)
    messages = asked(Request(messages=(user("x"), assistant(first, second), results, failed)))[
        "messages"
    ]
    assert messages[1]["tool_calls"] == [
        {"id": "c1", "function": {"name": "f", "arguments": {"a": 1}}},
        {"id": "c2", "function": {"name": "g", "arguments": {}}},
    ]
    assert messages[2:] == [
        {
            "role": "tool",
            "content": "1",
            "tool_name": "f",
            "images": ["Mg=="],
            "tool_call_id": "c1",
        },
        {"role": "tool", "content": "", "tool_name": "g", "tool_call_id": "c2"},
        {"role": "tool", "content": "ERROR: no", "tool_name": "g", "tool_call_id": "c2"},
    ]


def test_calls_without_ids_are_answered_by_name_and_order_and_go_back_without_ids() -> None:
    call = {"function": {"name": "roll", "arguments": {}}}
    messages = [
        {"role": "assistant", "content": "", "tool_calls": [call, call]},
        {"role": "tool", "content": "1", "tool_name": "roll"},
        {"role": "tool", "content": "2", "tool_name": "roll"},
    ]
    request = read(messages=messages)
    first, second = request.messages[0].tool_calls
    one, two = request.messages[1].parts
    assert first.id != second.id
    assert isinstance(one, ToolResult)
    assert isinstance(two, ToolResult)
    assert (one.id, two.id) == (first.id, second.id)
    swapped = replace(request, messages=(request.messages[0], Message("tool", (two, one))))
    assert asked(request)["messages"] == asked(swapped)["messages"] == messages


def test_a_schema_is_asked_for_and_stated_in_words() -> None:
    schema = {"type": "object"}
    request = Request(messages=(system("s"), user("a")), output=Schema({"type": "object"}))
    body = asked(request)
    assert body["format"] == schema
    assert [message["role"] for message in body["messages"]] == ["system", "system", "user"]
    assert json.dumps(schema, separators=(",", ":")) in body["messages"][1]["content"]
    quiet: Any = Ollama(state_schema=False).write_request(request, "m", stream=False)
    assert len(quiet["messages"]) == 2
    assert asked(Request(messages=(user("a"),), output=Schema()))["format"] == "json"
    assert read(format="").output is None


def test_tools_are_not_offered_when_none_may_be_called() -> None:
    tools = (Tool("f", "d", {"type": "object"}), Tool("g"), ServerTool("openai", {"type": "web"}))
    body = asked(Request(messages=(user("a"),), tools=tools, tool_choice=ToolChoice("required")))
    assert [tool["function"] for tool in body["tools"]] == [
        {"name": "f", "description": "d", "parameters": {"type": "object"}},
        {"name": "g"},
    ]
    none = Request(messages=(user("a"),), tools=tools, tool_choice=ToolChoice("none"))
    assert "tools" not in asked(none)


@pytest.mark.parametrize(
    ("options", "think"),
    [
        ({"reasoning": "none"}, False),
        ({"reasoning": "minimal"}, "low"),
        ({"reasoning": "medium"}, "medium"),
        ({"reasoning": "xhigh"}, "high"),
        ({"reasoning_tokens": 500}, True),
        ({}, None),
    ],
)
def test_effort_becomes_think(options: dict[str, Any], think: object) -> None:
    assert asked(Request(messages=(user("a"),), **options)).get("think") == think


def test_a_plain_yes_to_thinking_stays_one() -> None:
    request = read(think=True)
    assert (request.reasoning, asked(request)["think"]) == ("medium", True)


def test_foreign_thinking_and_opaque_parts_stay_away() -> None:
    foreign: tuple[Part, ...] = (
        Reasoning("x", "openai"),
        Opaque("openai", {}),
        Text("a", {"k": 1}),
    )
    call = ToolCall("c", "f", issuer="gemini", extra={"thoughtSignature": "s"})
    body = asked(Request(messages=(assistant(*foreign, call),), issuer="gemini", extra={"k": 1}))
    assert body == {
        "model": "m",
        "stream": False,
        "messages": [
            {
                "role": "assistant",
                "content": "a",
                "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {}}}],
            }
        ],
    }


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"model": None}, "$.model"),
        ({"messages": None}, "$.messages"),
        ({"messages": [{"role": "robot"}]}, "$.messages[0].role"),
        ({"messages": [{"role": "user", "images": ["!"]}]}, "$.messages[0].images[0]"),
        ({"options": []}, "$.options"),
        ({"format": 3}, "$.format"),
    ],
)
def test_a_wrong_field_is_named(body: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read(**body)
    assert str(caught.value).startswith(f"{path}: ")
