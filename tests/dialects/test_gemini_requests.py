"""generateContent requests: both spellings, and histories of any vendor."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from wire_rig import encoded

from understudy.core.errors import InvalidRequest
from understudy.dialects.base import Dialect
from understudy.dialects.gemini import Gemini
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

DIALECT: Dialect = Gemini()
MODEL = "gemini-2.5-flash"


def asked(request: Request, model: str = MODEL) -> dict[str, Any]:
    return DIALECT.write_request(request, model, stream=False)


def read(body: dict[str, Any]) -> Request:
    return DIALECT.read_request(encoded({"contents": [], **body}), MODEL).request


def test_both_spellings_of_a_field_are_read_as_one() -> None:
    snake = {
        "system_instruction": {"parts": [{"text": "s"}]},
        "contents": [
            {
                "role": "user",
                "parts": [{"inline_data": {"mime_type": "image/png", "data": "AQ=="}}],
            },
            {
                "role": "model",
                "parts": [{"function_call": {"name": "f_g", "args": {"a_b": 1}, "id": "1"}}],
            },
            {
                "parts": [
                    {"function_response": {"name": "f_g", "id": "1", "response": {"output": "x"}}}
                ]
            },
            {"parts": {"file_data": {"file_uri": "gs://a", "mime_type": "video/mp4"}}},
        ],
        "tools": {
            "function_declarations": [{"name": "f_g", "parameters_json_schema": {"a_b": 1}}]
        },
        "tool_config": {
            "function_calling_config": {"mode": "any", "allowed_function_names": ["f_g"]}
        },
        "generation_config": {"max_output_tokens": 5, "thinking_config": {"thinking_budget": 7}},
    }
    request = read(snake)
    assert request.messages == (
        system("s"),
        user(Image(b"\x01", "image/png")),
        assistant(ToolCall("1", "f_g", '{"a_b":1}')),
        Message("tool", (ToolResult("1", "f_g", (Text("x"),)),)),
        user(File(mime="video/mp4", url="gs://a")),
    )
    assert request.tools == (Tool("f_g", parameters={"a_b": 1}),)
    assert request.tool_choice == ToolChoice("tool", "f_g")
    assert (request.max_tokens, request.reasoning_tokens) == (5, 7)


def test_plain_strings_are_read_where_google_allows_them() -> None:
    request = read({"contents": "hi", "systemInstruction": "be brief"})
    assert request.messages == (system("be brief"), user("hi"))


def test_results_without_ids_find_their_calls_in_order_and_go_back_without_ids() -> None:
    call = {"functionCall": {"name": "roll", "args": {}}}
    results = [{"functionResponse": {"name": "roll", "response": {"output": n}}} for n in "12"]
    contents = [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [call, call]},
        {"role": "user", "parts": results},
    ]
    request = read({"contents": contents})
    first, second = request.messages[1].tool_calls
    answers = request.messages[2].parts
    assert first.id != second.id
    assert [part.id for part in answers if isinstance(part, ToolResult)] == [first.id, second.id]
    assert asked(request)["contents"] == contents


def test_results_without_ids_are_written_in_the_order_of_the_calls() -> None:
    call = {"functionCall": {"name": "roll", "args": {}}}
    first, second = (
        read({"contents": [{"role": "model", "parts": [call, call]}]}).messages[0].tool_calls
    )
    history = (
        user("go"),
        assistant(first, second),
        tool_result(second, "2"),
        tool_result(first, "1"),
    )
    turn = asked(Request(messages=history))["contents"][2]
    assert [part["functionResponse"]["response"]["output"] for part in turn["parts"]] == ["1", "2"]


def test_a_result_of_an_unknown_call_still_has_an_id() -> None:
    part = {"functionResponse": {"name": "f", "response": {"output": "x"}}}
    result = read({"contents": [{"role": "function", "parts": [part]}]}).messages[0].parts[0]
    assert isinstance(result, ToolResult)
    assert result.id


def test_results_are_a_turn_of_their_own_directly_after_the_calls() -> None:
    call = ToolCall("c1", "f")
    messages = (user("go"), assistant(call), user("wait"), Message("tool", (ToolResult("c1"),)))
    contents = asked(Request(messages=messages))["contents"]
    assert [content["role"] for content in contents] == ["user", "model", "user", "user"]
    answer = {"id": "c1", "name": "f", "response": {"output": ""}}
    assert contents[2]["parts"] == [{"functionResponse": answer}]
    assert contents[3]["parts"] == [{"text": "wait"}]


RESPONSES: list[tuple[dict[str, Json], str, bool]] = [
    ({"output": "x"}, "x", False),
    ({"error": "bad"}, "bad", True),
    ({"result": 4}, "4", False),
    ({"output": {"a": 1}}, '{"a":1}', False),
    ({"temperature": 3, "wind": 1}, '{"temperature":3,"wind":1}', False),
    ({"error": "bad", "code": 1}, '{"error":"bad","code":1}', True),
    ({"error": None, "data": 1}, '{"error":null,"data":1}', False),
    ({}, "{}", False),
]


@pytest.mark.parametrize(("response", "text", "is_error"), RESPONSES)
def test_responses_of_any_shape_are_text_for_others_and_go_back_as_they_came(
    response: dict[str, Json], text: str, is_error: bool
) -> None:
    part = {"functionResponse": {"id": "1", "name": "f", "response": response}}
    request = read({"contents": [{"role": "user", "parts": [part]}]})
    result = request.messages[0].parts[0]
    assert isinstance(result, ToolResult)
    assert (result.text, result.is_error) == (text, is_error)
    assert asked(request)["contents"][0]["parts"] == [part]


def test_pictures_in_a_result_stay_in_it() -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "AQ=="}}
    inner = {"id": "1", "name": "f", "response": {"output": "x"}, "parts": [picture]}
    contents = [{"role": "user", "parts": [{"functionResponse": inner}]}]
    request = read({"contents": contents})
    result = request.messages[0].parts[0]
    assert isinstance(result, ToolResult)
    assert result.content == (Text("x"), Image(b"\x01", "image/png"))
    assert asked(request)["contents"] == contents
    odd = {**inner, "parts": [{"text": "?"}], "scheduling": "SILENT"}
    contents = [{"role": "user", "parts": [{"functionResponse": odd}]}]
    assert asked(read({"contents": contents}))["contents"] == contents


FOREIGN: list[Part] = [
    Reasoning("thought", "anthropic", "sig"),
    Reasoning("nobody's"),
    Opaque("anthropic", {"type": "server_tool_use"}),
    Text(""),
]


@pytest.mark.parametrize("part", FOREIGN, ids=repr)
def test_what_is_bound_to_others_or_empty_does_not_reach_gemini(part: Part) -> None:
    request = Request(messages=(user("a"), assistant(part), user("b")))
    assert asked(request)["contents"] == [
        {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}
    ]


def test_extras_of_another_dialect_are_not_written() -> None:
    call = ToolCall("c", "f", issuer="anthropic", extra={"caller": 1})
    request = Request(
        messages=(Message("user", (Text("a", {"cache_control": 1}),), {"m": 1}), assistant(call)),
        tools=(Tool("f", extra={"strict": True}), ServerTool("anthropic", {"type": "web"})),
        issuer="anthropic",
        extra={"metadata": {}},
    )
    written = json.dumps(asked(request))
    assert not [
        w for w in ("cache_control", '"m"', "caller", "strict", "web", "metadata") if w in written
    ]


def test_signatures_come_back_from_a_history_that_nobody_read() -> None:
    signed = {"thoughtSignature": "s"}
    call = ToolCall("c", "f", issuer="gemini", extra=signed)
    turn = assistant(Text("a", signed), call, Reasoning("", "gemini", "t"))
    parts = asked(Request(messages=(user("x"), turn)), "gemini-3-pro")["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == ["s", "s", "t"]


def test_gemini_3_is_given_a_stand_in_for_signatures_of_calls_others_made() -> None:
    first, second = ToolCall("c1", "f"), ToolCall("c2", "f", issuer="openai", extra={"x": 1})
    request = Request(messages=(user("x"), assistant(first, second)))
    new = asked(request, "gemini-3-flash-preview")["contents"][1]["parts"]
    old = asked(request, "gemini-2.5-flash")["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in new] == [
        "skip_thought_signature_validator",
        None,
    ]
    assert [part.get("thoughtSignature") for part in old] == [None, None]


def test_media_go_inline_as_bytes_and_by_reference_as_urls() -> None:
    parts = (
        Image(url="https://example.org/a.PNG?x=1"),
        Image(url="https://example.org/a"),
        Image(url="https://[broken"),
        Image(url="data:image/gif;base64,R0lG"),
        Image(b"GIF89a"),
        File(b"1", "audio/wav"),
        File(url="https://[broken", mime="video/mp4", name="film"),
    )
    assert asked(Request(messages=(Message("user", parts),)))["contents"][0]["parts"] == [
        {"fileData": {"fileUri": "https://example.org/a.PNG?x=1", "mimeType": "image/png"}},
        {"fileData": {"fileUri": "https://example.org/a"}},
        {"fileData": {"fileUri": "https://[broken"}},
        {"inlineData": {"mimeType": "image/gif", "data": "R0lG"}},
        {"inlineData": {"mimeType": "image/gif", "data": "R0lGODlh"}},
        {"inlineData": {"mimeType": "audio/wav", "data": "MQ=="}},
        {"fileData": {"fileUri": "https://[broken", "mimeType": "video/mp4"}},
    ]


def test_the_name_of_a_file_is_written_only_where_it_came_so() -> None:
    blob = {"mimeType": "application/pdf", "data": "MQ==", "displayName": "a.pdf"}
    request = read({"contents": [{"role": "user", "parts": [{"inlineData": blob}]}]})
    assert asked(request)["contents"][0]["parts"] == [{"inlineData": blob}]
    del blob["displayName"]  # the Gemini API refuses it, Vertex takes it
    assert asked(replace(request, issuer="openai"))["contents"][0]["parts"] == [
        {"inlineData": blob}
    ]


def test_media_of_a_result_stand_beside_it_before_gemini_3() -> None:
    picture = Image(b"GIF89a", "image/gif")
    call = ToolCall("c1", "f")
    turn = Message("tool", (ToolResult("c1", "f", (Text("see"), picture)), ToolResult("c2", "g")))
    request = Request(messages=(user("x"), assistant(call), turn))
    inline = {"inlineData": {"mimeType": "image/gif", "data": "R0lGODlh"}}
    response = {"id": "c1", "name": "f", "response": {"output": "see"}}
    empty = {"functionResponse": {"id": "c2", "name": "g", "response": {"output": ""}}}
    new = asked(request, "gemini-3-flash")["contents"][2:]
    old = asked(request, "gemini-2.5-flash")["contents"][2:]
    results = [{"functionResponse": {**response, "parts": [inline]}}, empty]
    assert new == [{"role": "user", "parts": results}]
    assert old == [
        {"role": "user", "parts": [{"functionResponse": response}, empty]},
        {"role": "user", "parts": [inline]},
    ]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"contents": None}, "$.contents"),
    ({"contents": [{"role": "user", "parts": [{"text": 7}]}]}, "$.contents[0].parts[0].text"),
    ({"contents": [{"parts": ["hi"]}]}, "$.contents[0].parts[0]"),
    (
        {"contents": [{"parts": [{"inline_data": {"data": "!"}}]}]},
        "$.contents[0].parts[0].inlineData.data",
    ),
    ({"generationConfig": {"topK": "x"}}, "$.generationConfig.topK"),
    ({"tools": [{"functionDeclarations": [{}]}]}, "$.tools[0].functionDeclarations[0].name"),
    ({"toolConfig": 1}, "$.toolConfig"),
]


@pytest.mark.parametrize(("body", "path"), WRONG)
def test_a_wrong_field_is_named(body: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read(body)
    assert str(caught.value).startswith(f"{path}: ")


def test_without_a_model_in_the_url_the_body_may_name_it() -> None:
    named = DIALECT.read_request(encoded({"contents": [], "model": "models/g"}))
    assert named.model == "g"
    assert "model" not in DIALECT.write_request(named.request, "g", stream=False)
    with pytest.raises(InvalidRequest, match="model"):
        DIALECT.read_request(b'{"contents": []}')
