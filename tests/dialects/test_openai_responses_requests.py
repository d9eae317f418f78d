"""Responses requests: as clients write them, and written for a history from elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from responses_rig import RESPONSES, asking, message, read, rewritten, said, sent

from understudy.core.errors import InvalidRequest
from understudy.messages.parts import (
    File,
    Image,
    Json,
    Opaque,
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
from understudy.messages.response import Response

CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"a": 1}'}


@pytest.mark.parametrize(
    "wire",
    [
        {"model": "m", "input": "hi"},
        {"model": "m", "prompt": {"id": "pmpt_1", "variables": {"who": "you"}}},
        {"model": "m", "input": "hi", "instructions": "be brief", "store": False, "user": None},
        {"model": "m", "input": [], "instructions": "", "tools": [], "stream": True},
        asking({"role": "user", "content": "a", "type": "message"}),
        asking({"role": "user", "content": [{"type": "input_text", "text": "a"}]}),
        asking({"role": "system", "content": "first"}, {"role": "developer", "content": "second"}),
        asking({"role": "developer", "content": "first"}),
        asking({"role": "system", "content": "second"}, instructions="first"),
        asking(
            {
                "role": "user",
                "content": [
                    {"type": "input_image", "image_url": "https://x/y", "detail": "low"},
                    {"type": "input_image", "file_id": "f"},
                    {"type": "input_file", "file_url": "https://x/y.pdf"},
                    {"type": "input_file", "file_id": "f"},
                    {"type": "input_text", "text": "a", "prompt_cache_breakpoint": {}},
                ],
            }
        ),
        asking(message(said("a", logprobs=[])), message(said("b"), id="msg_2", phase="final")),
        asking({"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}),
        asking(message({"type": "refusal", "refusal": "no"})),
        asking(
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
            {**CALL, "id": "fc_1", "status": "completed", "namespace": "n"},
            {"type": "function_call_output", "call_id": "c", "output": "1", "status": "completed"},
        ),
        asking(
            {
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": t} for t in "ab"],
            }
        ),
        asking(
            {
                "type": "custom_tool_call",
                "call_id": "c",
                "name": "f",
                "input": "free",
                "id": "ctc",
            },
            {"type": "custom_tool_call_output", "call_id": "c", "output": "1"},
        ),
        asking(
            CALL,
            {
                "type": "function_call_output",
                "call_id": "c",
                "output": [{"type": "input_image", "image_url": "https://x/y"}],
            },
        ),
        asking(
            {"type": "web_search_call", "id": "ws", "status": "completed"},
            {"type": "item_reference", "id": "r"},
            {"role": "user", "content": "a"},
            {"type": "computer_call_output", "call_id": "c", "output": {"type": "screenshot"}},
        ),
        asking(
            {"type": "image_generation_call", "id": "ig", "status": "completed", "result": "AAEC"}
        ),
        asking(reasoning={"effort": "low", "summary": "auto"}, text={"verbosity": "low"}),
        asking(text={"format": {"type": "text"}}, include=["reasoning.encrypted_content"]),
        asking(
            text={
                "format": {"type": "json_schema", "name": "n", "schema": {}, "strict": True},
                "verbosity": "high",
            }
        ),
        asking(
            tools=[
                {"type": "function", "name": "f", "parameters": {}, "strict": True},
                {"type": "function", "name": "g", "description": None, "defer_loading": True},
                {"type": "web_search"},
                {"type": "custom", "name": "h", "format": {"type": "text"}},
            ],
            tool_choice={"type": "web_search"},
            parallel_tool_calls=True,
        ),
        asking(tool_choice="auto", parallel_tool_calls=False, max_output_tokens=5),
    ],
)
def test_what_a_client_wrote_is_written_back_as_it_was(wire: dict[str, Any]) -> None:
    assert rewritten(wire) == wire


def test_items_that_follow_each_other_are_one_turn() -> None:
    request = read(
        asking(
            {"role": "user", "content": "a"},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"role": "assistant", "content": "b"},
            CALL,
            {"type": "function_call_output", "call_id": "c", "output": "ERROR: no disk"},
            instructions="be brief",
        )
    )
    call = ToolCall("c", "f", '{"a": 1}')
    failed = ToolResult("c", "f", (Text("no disk"),), is_error=True)
    assert request.messages == (
        system("be brief"),
        user("a"),
        assistant(Reasoning("hm", "responses"), "b", call),
        Message("tool", (failed,)),
    )


def test_parts_of_a_turn_are_read() -> None:
    content = [
        {"type": "input_text", "text": "a"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAEC", "detail": "low"},
        {"type": "input_file", "file_data": "data:application/pdf;base64,AA==", "filename": "a"},
        {"type": "input_audio", "input_audio": {"data": "AAEC", "format": "mp3"}},
    ]
    (turn,) = read(asking({"role": "user", "content": content})).messages
    assert turn.parts == (
        Text("a"),
        Image(b"\0\1\2", "image/png", extra={"detail": "low"}),
        File(b"\0", "application/pdf", name="a"),
        File(b"\0\1\2", "audio/mpeg"),
    )


def test_options_are_read() -> None:
    schema: dict[str, Json] = {"type": "object"}
    form = {"type": "json_schema", "name": "n", "schema": schema, "description": "d"}
    request = read(
        asking(
            tools=[{"type": "function", "name": "f", "description": "d", "parameters": schema}],
            tool_choice={"type": "function", "name": "f"},
            text={"format": form},
            reasoning={"effort": "high"},
            max_output_tokens=5,
            temperature=0.5,
            top_p=1,
        )
    )
    assert request.tools == (Tool("f", "d", schema),)
    assert request.tool_choice == ToolChoice("tool", "f")
    assert request.output == Schema(schema, "n", description="d")
    assert (request.reasoning, request.max_tokens) == ("high", 5)
    assert (request.temperature, request.top_p) == (0.5, 1)
    assert read(asking(text={"format": {"type": "json_object"}})).output == Schema()


def test_a_changed_option_wins_over_the_spelling_it_came_in() -> None:
    request = read(asking(reasoning={"effort": "low", "summary": "auto"}))
    assert sent(request.having(reasoning="high"))["reasoning"] == {"effort": "high"}


def test_a_changed_turn_is_not_written_as_it_came() -> None:
    request = read(
        asking(
            {"role": "user", "type": "message", "content": [{"type": "input_text", "text": "a"}]},
            message(said("b")),
        )
    )
    first, second = request.messages
    (spoken,) = second.parts
    assert isinstance(spoken, Text)
    changed = (
        Message("user", (Text("c"),), first.extra),
        Message("assistant", (Text("d", spoken.extra),)),
    )
    assert sent(request.having(messages=changed))["input"] == [
        {"role": "user", "content": "c"},
        {"role": "assistant", "content": "d"},
    ]


def test_what_we_named_ourselves_comes_back_bound_to_nobody() -> None:
    """A client echoes our items. Their ids mean nothing to any vendor."""
    answer = Response(parts=(Reasoning("hm", "anthropic"), Text("a"), ToolCall("c", "f")))
    shown: Any = RESPONSES.write_response(answer, "m")["output"]
    request = read(asking(*shown))
    (turn,) = request.messages
    assert turn.parts[0] == Reasoning("hm")
    assert turn.tool_calls == (ToolCall("c", "f"),)
    spoken, called = sent(request)["input"]
    assert "id" not in spoken
    assert called == {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}


def test_what_is_bound_to_other_vendors_stays_behind() -> None:
    call = ToolCall("x" * 80, "f", "{}", "gemini", {"thoughtSignature": "s"})
    request = Request(
        messages=(
            Message("user", (Text("a", {"cache_control": {}}), Opaque("anthropic", {"x": 1}))),
            assistant(Reasoning("hm", "anthropic", "signature"), Text("b", {"x": 1}), call),
            tool_result(call, "1"),
            Message("user", (ToolResult("c", "f", (Text("2"),)), Text("go on"))),
        ),
        tools=(ServerTool("anthropic", {"type": "web_search"}), Tool("f", extra={"x": 1})),
        issuer="anthropic",
        extra={"metadata": {}},
    )
    body = sent(request)
    first, spoken, called, result, *rest = body["input"]
    assert first == {"role": "user", "content": [{"type": "input_text", "text": "a"}]}
    assert spoken == {"role": "assistant", "content": "b"}
    assert called == {
        "type": "function_call",
        "call_id": result["call_id"],
        "name": "f",
        "arguments": "{}",
    }
    assert len(result["call_id"]) <= 64
    assert rest == [
        {"type": "function_call_output", "call_id": "c", "output": "2"},
        {"role": "user", "content": "go on"},
    ]
    assert body["tools"] == [{"type": "function", "name": "f", "strict": False}]
    assert set(body) == {"model", "input", "tools"}


def test_tools_that_were_all_left_out_are_not_chosen_among() -> None:
    tools = (ServerTool("anthropic", {"type": "web_search"}),)
    assert set(sent(Request(tools=tools, tool_choice=ToolChoice("required")))) == {
        "model",
        "input",
    }


def test_the_first_system_message_is_the_instructions() -> None:
    request = Request((system("a"), system("b"), user("c")))
    body = sent(request, stream=True)
    assert body["instructions"] == "a"
    assert body["input"] == [{"role": "system", "content": "b"}, {"role": "user", "content": "c"}]
    assert body["stream"] is True


def test_a_turn_with_nothing_for_this_wire_is_left_out() -> None:
    request = Request((Message("user", (Opaque("anthropic", {}),)), assistant(Image(b"\0"))))
    assert sent(request)["input"] == []


def test_the_result_of_a_free_text_tool_is_told_as_one() -> None:
    call = ToolCall("c", "f", "free", "responses", {"type": "custom_tool_call"})
    items = sent(Request((assistant(call), tool_result(call, "1"))))["input"]
    assert items == [
        {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "free"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "1"},
    ]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b"[]", r"\$: expected an object"),
        (b'{"input":"a"}', r"\$\.model: expected a string, got nothing"),
        (b'{"model":"m","input":5}', r"\$\.input: expected an array, got 5"),
        (b'{"model":"m","input":[1]}', r"\$\.input\[0\]: expected an object"),
        (b'{"model":"m","input":[{"type":1}]}', r"\$\.input\[0\]\.type: expected a string"),
        (b'{"model":"m","input":[{"role":"boss","content":""}]}', r"\$\.input\[0\]\.role"),
        (b'{"model":"m","input":[{"role":"user"}]}', r"\$\.input\[0\]\.content: expected"),
        (
            b'{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":1}]}]}',
            r"\$\.input\[0\]\.content\[0\]\.text: expected a string, got 1",
        ),
        (b'{"model":"m","input":[],"instructions":[]}', r"\$\.instructions: expected a string"),
        (b'{"model":"m","input":[],"reasoning":"high"}', r"\$\.reasoning: expected an object"),
        (b'{"model":"m","input":[],"text":{"format":1}}', r"\$\.text\.format: expected an object"),
        (b'{"model":"m","input":[],"tools":[{"type":"function"}]}', r"\$\.tools\[0\]\.name"),
    ],
)
def test_a_wrong_request_is_refused_with_the_place_of_the_fault(body: bytes, path: str) -> None:
    with pytest.raises(InvalidRequest, match=path):
        RESPONSES.read_request(body)
