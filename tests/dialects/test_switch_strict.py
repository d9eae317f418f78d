"""What vendors are strict about: a request that one takes must not be refused by the next.

Each body here was taken by one vendor and refused by another, with a 400 that would end a chain.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from wire_rig import encoded

from understudy.core.errors import ProviderError
from understudy.core.faults import Fault
from understudy.dialects.base import Dialect
from understudy.dialects.table import DIALECTS, dialect_named
from understudy.messages.parts import File, Image, Opaque, Text, ToolCall, ToolResult
from understudy.messages.request import (
    Message,
    Request,
    Schema,
    Tool,
    ToolChoice,
    assistant,
    system,
    user,
)

ALL: dict[str, Dialect] = {name: dialect_named(name) for name in DIALECTS}
HI: dict[str, Any] = {"role": "user", "content": "hi"}


def told(request: Request, name: str, model: str = "m") -> dict[str, Any]:
    return ALL[name].write_request(request, model, False)


def switched(first: str, body: dict[str, Any], second: str, model: str = "m") -> dict[str, Any]:
    """A body of one vendor's as the next is asked."""
    request = ALL[first].read_request(encoded({"model": "m", **body}), "m").request
    return told(request, second, model)


def in_turn(part: dict[str, Any], field: str = "content") -> list[dict[str, Any]]:
    return [{"role": "user", field: [part]}]


KEPT: dict[str, list[dict[str, Any]]] = {
    "openai": [{"messages": in_turn({"type": "file", "file": {"file_id": "f"}})}],
    "responses": [
        {"input": in_turn({"type": "input_file", "file_id": "f"})},
        {"input": in_turn({"type": "input_image", "file_id": "f"})},
        {"input": [HI, {"type": "item_reference", "id": "msg_1"}, HI]},
        {"input": [{"type": "compaction", "encrypted_content": "x"}, HI]},
    ],
    "anthropic": [
        {"messages": in_turn({"type": "image", "source": {"type": "file", "file_id": "f"}})},
        {"messages": in_turn({"type": "document", "source": {"type": "file", "file_id": "f"}})},
        {"messages": in_turn({"type": "container_upload", "file_id": "f"})},
    ],
    "gemini": [
        {"contents": in_turn({"fileData": {"fileUri": uri, "mimeType": mime}}, "parts")}
        for uri, mime in (
            ("gs://bucket/a.png", "image/png"),
            ("https://generativelanguage.googleapis.com/v1beta/files/a", "application/pdf"),
        )
    ],
}


@pytest.mark.parametrize(
    ("first", "second"), [pair for pair in product(KEPT, DIALECTS) if pair[0] != pair[1]]
)
def test_what_a_vendor_keeps_is_asked_of_that_one_alone(first: str, second: str) -> None:
    for body in KEPT[first]:
        with pytest.raises(ProviderError) as caught:
            switched(first, body, second)
        assert caught.value.fault is Fault.UNSUPPORTED


@pytest.mark.parametrize("name", KEPT)
def test_and_goes_back_there_as_it_came(name: str) -> None:
    for body in KEPT[name]:
        assert switched(name, body, name).items() >= body.items()


def test_a_file_that_anybody_can_fetch_is_kept_by_nobody() -> None:
    file = File(url="https://example.org/files/a.pdf", mime="application/pdf")
    request = Request(messages=(user(file, Image(url="https://example.org/a.png")),))
    for name in sorted(DIALECTS.keys() - {"ollama"}):  # which takes bytes only
        told(request, name)


SEARCH = {
    "type": "search_result",
    "source": "https://example.org",
    "title": "Prices",
    "content": [{"type": "text", "text": "It costs 7."}],
    "citations": {"enabled": True},
}


@pytest.mark.parametrize("second", [name for name in DIALECTS if name != "anthropic"])
def test_what_a_search_of_the_client_s_found_is_text_to_others(second: str) -> None:
    use = {"type": "tool_use", "id": "t", "name": "search", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [SEARCH]}
    turns = [*in_turn(SEARCH), {"role": "assistant", "content": [use]}, *in_turn(result)]
    body = {"max_tokens": 5, "messages": turns}
    assert str(switched("anthropic", body, second)).count("It costs 7.") == 2
    assert switched("anthropic", body, "anthropic")["messages"] == turns


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("anthropic", {"messages": [{"role": "user", "content": "b"}], "system": "a"}),
        (
            "gemini",
            {
                "contents": [{"role": "user", "parts": [{"text": "b"}]}],
                "systemInstruction": {"parts": [{"text": "a"}]},
            },
        ),
        ("openai", {"messages": [{"role": "system", "content": word} for word in "ab"]}),
    ],
)
def test_of_nothing_but_system_prompts_the_last_is_asked(name: str, asked: dict[str, Any]) -> None:
    assert told(Request(messages=(system("a"), system("b"))), name).items() >= asked.items()


def test_a_lone_system_prompt_is_input_where_some_is_wanted() -> None:
    body = told(Request(messages=(system("a"),)), "responses")
    assert (body["input"], body.get("instructions")) == (
        [{"role": "system", "content": "a"}],
        None,
    )


@pytest.mark.parametrize("parameters", [{}, {"type": "object"}, {"properties": {}}])
def test_what_a_tool_takes_is_said_in_full(parameters: dict[str, Any]) -> None:
    request = Request(messages=(user("x"),), tools=(Tool("f", "", parameters),))
    whole = {"type": "object", "properties": {}}
    assert told(request, "anthropic")["tools"][0]["input_schema"] == whole
    assert told(request, "openai")["tools"][0]["function"]["parameters"] == whole
    assert told(request, "responses")["tools"][0]["parameters"] == whole


def test_a_choice_among_no_tools_is_not_told_to_chat_completions() -> None:
    body = {"input": "hi", "tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
    assert switched("responses", body, "openai").keys() == {"model", "messages"}


def test_free_text_for_a_tool_is_json_where_only_that_is_known() -> None:
    custom = {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "*** Begin"}
    body = {"input": [HI, custom]}
    turn = switched("responses", body, "openai")["messages"][1]
    assert turn["tool_calls"][0]["function"]["arguments"] == '{"input":"*** Begin"}'
    call = ToolCall("c", "patch", "*** Begin", "openai", {"type": "custom"})
    item = told(Request(messages=(assistant(call),), issuer="openai"), "responses")["input"][0]
    assert item["arguments"] == '{"input":"*** Begin"}'


STRICT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a": {"type": "array", "minItems": 3, "items": {"type": "string", "format": "regex"}},
        "b": {"oneOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
    },
}


def test_notes_in_a_schema_are_not_shown_to_claude() -> None:
    noted = {"$schema": "x", "propertyOrdering": ["a"], "examples": [1], **STRICT}
    body = told(Request(messages=(user("x"),), output=Schema(noted)), "anthropic")
    schema = body["output_config"]["format"]["schema"]
    assert schema.keys() == {"type", "properties", "additionalProperties"}


def test_claude_gets_a_schema_in_its_own_words() -> None:
    body = told(Request(messages=(user("x"),), output=Schema(STRICT)), "anthropic")
    assert body["output_config"]["format"]["schema"]["properties"] == {
        "a": {
            "type": "array",
            "items": {"type": "string", "description": "(format: regex)"},
            "description": "(minItems: 3)",
        },
        "b": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
    }


@pytest.mark.parametrize(
    "free",
    [
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object"},
        {"$ref": "#/$defs/Tree"},
        {"type": "array", "prefixItems": [{"type": "string"}]},
    ],
    ids=["a dictionary", "anything", "a tree", "a tuple"],
)
def test_a_schema_that_claude_would_refuse_or_misread_is_stated(free: dict[str, Any]) -> None:
    """Closed as Claude wants objects, a dictionary would be an empty one."""
    children = {"type": "array", "items": {"$ref": "#/$defs/Tree"}}
    schema = {
        "type": "object",
        "properties": {"free": free},
        "$defs": {"Tree": {"type": "object", "properties": {"children": children}}},
    }
    body = told(Request(messages=(user("x"),), output=Schema(schema)), "anthropic")
    assert "output_config" not in body
    assert '"free"' in body["system"]


@pytest.mark.parametrize(
    ("model", "effort", "asked"),
    [
        ("gpt-4o", "none", (0.2, None)),
        ("openai/gpt-4.1-mini", "high", (0.2, None)),
        ("gpt-5", "none", (None, "minimal")),
        ("gpt-5-mini-2025-08-07", "max", (None, "high")),
        ("gpt-5.1", "minimal", (None, "low")),
        ("gpt-5.2", "max", (None, "xhigh")),
        ("gpt-5.2", "none", (None, "none")),
        ("gpt-5-pro", "low", (None, None)),
        ("o4-mini", "none", (None, "low")),
        ("gpt-oss-120b", "none", (0.2, "none")),
        ("llama-3.3-70b", "low", (0.2, "low")),
    ],
)
def test_openai_s_models_are_asked_for_what_they_take(model: str, effort: str, asked: Any) -> None:
    request = Request(messages=(user("x"),), temperature=0.2, reasoning=effort)
    body, items = told(request, "openai", model), told(request, "responses", model)
    assert (body.get("temperature"), body.get("reasoning_effort")) == asked
    thinking = items.get("reasoning", {})
    assert (items.get("temperature"), thinking.get("effort")) == asked


def test_who_speaks_to_openai_in_its_own_words_is_not_corrected() -> None:
    body = {"messages": [HI], "temperature": 0.2, "reasoning_effort": "none"}
    assert switched("openai", body, "openai", "gpt-5").items() >= body.items()


def test_a_model_that_calls_in_its_own_way_is_not_told_how() -> None:
    choice = ToolChoice("required", parallel=False)
    request = Request(messages=(user("x"),), tools=(Tool("f"),), tool_choice=choice)
    assert "parallel_tool_calls" not in told(request, "openai", "o3")
    assert told(request, "openai", "gpt-5")["parallel_tool_calls"] is False


def test_provider_run_tools_in_a_history_are_no_reason_to_refuse_it() -> None:
    searched = assistant(Opaque("responses", {"type": "web_search_call"}), Text("found"))
    assert told(Request(messages=(user("x"), searched)), "openai")["messages"][1] == {
        "role": "assistant",
        "content": "found",
    }


def test_texts_of_a_result_do_not_run_into_each_other() -> None:
    found = ToolResult("c", "ls", (Text("a.txt"), Text("b.txt")))
    request = Request(
        messages=(user("x"), assistant(ToolCall("c", "ls")), Message("tool", (found,)))
    )
    (part,) = told(request, "gemini")["contents"][2]["parts"]
    assert part["functionResponse"]["response"] == {"output": "a.txt\n\nb.txt"}
    assert told(request, "ollama")["messages"][2]["content"] == "a.txt\n\nb.txt"


def test_openai_is_told_a_name_for_every_file_and_text_as_text() -> None:
    request = Request(messages=(user(File(b"1", "application/pdf"), File(b"a,b", "text/csv")),))
    document, table = told(request, "openai")["messages"][0]["content"]
    assert document["file"]["filename"] == "file.pdf"
    assert table == {"type": "text", "text": "a,b"}
    document, table = told(request, "responses")["input"][0]["content"]
    assert (document["filename"], table["filename"]) == ("file.pdf", "file.csv")


def test_an_answer_that_was_begun_goes_to_claudes_that_go_on_with_it() -> None:
    request = Request(messages=(user("x"), assistant("It is \n")))
    assert told(request, "anthropic", "claude-sonnet-4-5")["messages"][1]["content"] == "It is"
    with pytest.raises(ProviderError) as caught:
        told(request, "anthropic", "claude-opus-4-6")
    assert caught.value.fault is Fault.UNSUPPORTED


@pytest.mark.parametrize(
    "name", ["somebody@example.org", "4915112345678", f"user_{'0' * 64}_account__session_1"]
)
def test_users_are_named_as_every_vendor_takes_it(name: str) -> None:
    request = Request(messages=(user("x"),), user=name)
    (short,) = {
        told(request, "openai")["user"],
        told(request, "responses")["user"],
        told(request, "anthropic")["metadata"]["user_id"],
    }
    assert short.startswith("user_")
    assert len(short) == 29
    plain = Request(messages=(user("x"),), user="user_7-a")
    assert told(plain, "anthropic")["metadata"] == {"user_id": "user_7-a"}


def test_a_limit_is_no_lower_than_openais_responses_take_it() -> None:
    body = {"max_tokens": 1, "messages": [HI]}
    assert switched("anthropic", body, "responses", "gpt-5.5")["max_output_tokens"] == 16
    assert switched("anthropic", body, "responses", "llama")["max_output_tokens"] == 1
    assert switched("anthropic", body, "openai", "gpt-5.5")["max_completion_tokens"] == 1


@pytest.mark.parametrize("name", ["openai", "responses"])
def test_a_list_is_asked_of_openai_in_words(name: str) -> None:
    schema: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
    request = Request(messages=(user("x"),), output=Schema(schema))
    body = told(request, name, "gpt-5")
    assert not {"response_format", "text"} & body.keys()
    assert '"items"' in str(body)
    assert {"response_format", "text"} & told(request, name, "llama-4").keys()


def test_the_word_that_openai_looks_for_is_said() -> None:
    asked = Request(messages=(system("JSON, please"), user("x")), output=Schema())
    wordless = Request(messages=(user("x"),), output=Schema())
    spoken = Request(messages=(user("as json"),), output=Schema())
    assert [turn["role"] for turn in told(asked, "openai")["messages"]] == ["system", "user"]
    assert [turn["role"] for turn in told(wordless, "openai")["messages"]] == ["system", "user"]
    assert [turn["role"] for turn in told(spoken, "openai")["messages"]] == ["user"]
    for request in (asked, wordless):  # `instructions` do not count
        assert [item["role"] for item in told(request, "responses")["input"]] == ["system", "user"]
    assert [item["role"] for item in told(spoken, "responses")["input"]] == ["user"]


DECLARED: dict[str, Any] = {"type": "object", "properties": {"q": {"type": "string"}}}
CHOICES: dict[str, dict[str, Any]] = {
    "openai": {
        "messages": [HI],
        "tools": [{"type": "function", "function": {"name": n}} for n in "abc"],
        "tool_choice": {
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "required",
                "tools": [{"type": "function", "function": {"name": n}} for n in "ab"],
            },
        },
    },
    "responses": {
        "input": [HI],
        "tools": [{"type": "function", "name": n, "parameters": DECLARED} for n in "abc"],
        "tool_choice": {
            "type": "allowed_tools",
            "mode": "required",
            "tools": [{"type": "function", "name": n} for n in "ab"],
        },
    },
    "gemini": {
        "contents": in_turn({"text": "hi"}, "parts"),
        "tools": [{"functionDeclarations": [{"name": n} for n in "abc"]}],
        "toolConfig": {
            "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["a", "b"]}
        },
    },
}


@pytest.mark.parametrize(("first", "second"), list(product(CHOICES, DIALECTS)))
def test_a_choice_among_some_tools_is_not_one_among_all(first: str, second: str) -> None:
    body = switched(first, CHOICES[first], second)
    if first == second:
        assert body.items() >= CHOICES[first].items()
        return
    request = ALL[second].read_request(encoded({"model": "m", **body}), "m").request
    assert [tool.name for tool in request.tools if isinstance(tool, Tool)] == ["a", "b"]
    mode = request.tool_choice.mode if request.tool_choice else None
    assert mode == ("required" if second != "ollama" else None)
