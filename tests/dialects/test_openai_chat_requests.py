"""Chat Completions requests as clients write them, read and written back."""

from __future__ import annotations

from typing import Any

import pytest
from chat_rig import (
    CHAT,
    asking,
    read,
    rewritten,
    sent,
)
from hypothesis import given
from hypothesis import strategies as st

from understudy.core.errors import InvalidRequest
from understudy.dialects.json_access import Node
from understudy.dialects.openai_chat.messages import read_messages, write_messages
from understudy.dialects.openai_chat.request import read_options, read_request, write_options
from understudy.messages.parts import (
    File,
    Image,
    Json,
    Opaque,
    Text,
    ToolCall,
    ToolResult,
)
from understudy.messages.request import (
    Message,
    Request,
    Schema,
    assistant,
    tool_result,
)


@pytest.mark.parametrize(
    "wire",
    [
        asking({"role": "user", "content": [{"type": "text", "text": "a"}]}),
        asking({"role": "developer", "content": "be brief"}, {"role": "user", "content": "a"}),
        asking({"role": "user", "content": "a", "name": "bob"}),
        asking({"role": "tool", "tool_call_id": "of a turn long gone", "content": "1"}),
        asking({"role": "user", "content": ""}, {"role": "assistant", "content": None}),
        asking({"role": "user", "content": "a"}, max_tokens=5, stop="x", seed=None, n=3),
        asking({"role": "user", "content": "a"}, random_seed=5, safe_prompt=True),
        asking({"role": "user", "content": "a"}, reasoning={"effort": "low", "exclude": True}),
        asking({"role": "user", "content": "a"}, reasoning={"max_tokens": 9}),
        asking({"role": "user", "content": "a"}, reasoning={"max_tokens": 9, "exclude": True}),
        asking(
            {"role": "user", "content": "a"},
            reasoning={"summary": "auto", "effort": "low", "enabled": True, "max_tokens": 9},
        ),
        asking({"role": "user", "content": "a"}, tools=[], tool_choice=None),
        asking({"role": "user", "content": "a"}, response_format={"type": "text"}),
        asking(
            {"role": "user", "content": "a"},
            tool_choice={"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}},
        ),
        asking({"role": "user", "content": "a"}, tool_choice="auto", parallel_tool_calls=False),
        asking({"role": "user", "content": "a"}, tool_choice="any"),
        asking(
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
                    {"type": "image_url", "image_url": {"url": "https://x/y", "detail": "low"}},
                    {"type": "image_url", "image_url": "https://x/y"},
                    {"type": "document_url", "document_url": "https://x/y.pdf"},
                    {"type": "video_url", "video_url": {"url": "https://x/y.mp4"}},
                    {"type": "file", "file": {"file_id": "f"}},
                ],
            }
        ),
        asking(
            {
                "role": "assistant",
                "content": "a",
                "reasoning": "hm",
                "reasoning_details": [{"type": "reasoning.text", "text": "hm", "signature": "s"}],
            }
        ),
        asking(
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                    {"type": "text", "text": "a"},
                ],
                "prefix": True,
            }
        ),
        asking(
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {
                        "id": "c",
                        "type": "function",
                        "index": 0,
                        "function": {"name": "f", "arguments": '{"a": 1}'},
                        "extra_content": {"google": {"thought_signature": "s"}},
                    },
                    {"id": "d", "type": "custom", "custom": {"name": "g", "input": "free text"}},
                ],
            },
            {"role": "tool", "tool_call_id": "c", "name": "f", "content": "1"},
            {"role": "tool", "tool_call_id": "d", "content": [{"type": "text", "text": "2"}]},
        ),
        asking(
            {"role": "user", "content": "a"},
            tools=[
                {"type": "function", "function": {"name": "f", "strict": True, "parameters": {}}},
                {"type": "function", "function": {"name": "g", "description": None}},
                {"type": "custom", "custom": {"name": "h"}},
            ],
            logit_bias={"1": 2},
        ),
    ],
)
def test_what_a_client_wrote_is_written_back_as_it_was(wire: dict[str, Any]) -> None:
    assert rewritten(wire) == wire


def test_a_changed_option_wins_over_the_spelling_it_came_in() -> None:
    request = read(asking({"role": "user", "content": "a"}, max_tokens=5, stop="x"))
    body = sent(request.having(max_tokens=6, stop=("y",)))
    assert (body["max_completion_tokens"], body["stop"]) == (6, ["y"])
    assert "max_tokens" not in body


def test_a_changed_message_is_not_written_as_it_came() -> None:
    request = read(
        asking({"role": "user", "name": "bob", "content": [{"type": "text", "text": "a"}]})
    )
    (message,) = request.messages
    changed = request.having(messages=(Message("user", (Text("b"),), message.extra),))
    body = sent(changed)
    assert body["messages"] == [{"role": "user", "content": "b", "name": "bob"}]


def test_pictures_become_bytes_and_other_urls_stay_urls() -> None:
    (message,) = read(
        asking(
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAEC"}},
                    {"type": "image_url", "image_url": {"url": "https://x/y", "detail": "high"}},
                    {"type": "input_audio", "input_audio": {"data": "AAEC", "format": "mp3"}},
                    {
                        "type": "file",
                        "file": {
                            "filename": "a.pdf",
                            "file_data": "data:application/pdf;base64,AA==",
                        },
                    },
                ],
            }
        )
    ).messages
    assert message.parts == (
        Image(b"\0\1\2", "image/png"),
        Image(url="https://x/y", extra={"detail": "high"}),
        File(b"\0\1\2", "audio/mpeg"),
        File(b"\0", "application/pdf", name="a.pdf"),
    )


def test_missing_call_ids_are_made_up_unique_and_echoed() -> None:
    called: dict[str, Any] = {
        "role": "assistant",
        "tool_calls": [
            {"type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        ],
    }
    wire = asking(called, {"role": "tool", "content": "1"}, {"role": "tool", "content": "2"})
    request, again = read(wire), read(wire)
    first, second = request.messages[0].tool_calls
    results = [part for m in request.messages[1:] for part in m.parts]
    assert first.id != second.id
    assert results == [
        ToolResult(first.id, "f", (Text("1"),)),
        ToolResult(second.id, "f", (Text("2"),)),
    ]
    assert request == again


def test_a_failed_tool_is_told_by_its_prefix() -> None:
    call = ToolCall("c", "f")
    request = Request((assistant(call), tool_result(call, "no disk", is_error=True)))
    body = sent(request)
    told = {"role": "tool", "tool_call_id": "c", "content": "ERROR: no disk"}
    assert body["messages"][1] == told
    (result,) = read(asking(*body["messages"])).messages[1].parts
    assert result == ToolResult("c", "f", (Text("no disk"),), is_error=True)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b"", "the request body is not JSON"),
        (b"[]", r"\$: expected an object, got an array"),
        (b"[" * 5000, "the request body is not JSON"),
        (b'{"model":"m","messages":"hi"}', r"\$\.messages: expected an array"),
        (b'{"model":1,"messages":[]}', r"\$\.model: expected a string, got 1"),
        (b'{"messages":[]}', r"\$\.model: expected a string, got nothing"),
        (b'{"model":"m","messages":[{"role":"boss"}]}', r"\$\.messages\[0\]\.role: expected"),
        (b'{"model":"m","messages":[{"role":"user","content":1}]}', r"messages\[0\]\.content"),
        (
            b'{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":2}]}]}',
            r"\$\.messages\[0\]\.content\[0\]\.text: expected a string, got 2",
        ),
        (
            b'{"model":"m","messages":[{"role":"assistant","tool_calls":[{}]}]}',
            r"\$\.messages\[0\]\.tool_calls\[0\]\.function: expected an object",
        ),
        (
            b'{"model":"m","messages":[{"role":"tool","content":"x"}]}',
            r"\$\.messages\[0\]\.tool_call_id: expected the id of a tool call",
        ),
        (
            b'{"model":"m","messages":[],"temperature":"hot"}',
            r"\$\.temperature: expected a number",
        ),
        (b'{"model":"m","messages":[],"stop":[1]}', r"\$\.stop\[0\]: expected a string"),
        (b'{"model":"m","messages":[],"stream":"yes"}', r"\$\.stream: expected true or false"),
        (b'{"model":"m","messages":[],"max_tokens":1.5}', r"\$\.max_tokens: expected a whole"),
        (b'{"model":"m","messages":[],"tools":[1]}', r"\$\.tools\[0\]: expected an object"),
    ],
)
def test_a_wrong_request_is_refused_with_the_place_of_the_fault(body: bytes, path: str) -> None:
    with pytest.raises(InvalidRequest, match=path):
        CHAT.read_request(body)


def test_the_path_names_the_model_when_the_body_does_not() -> None:
    assert CHAT.read_request(b'{"messages":[]}', "deployed").model == "deployed"


def test_structured_output_is_a_schema_or_any_object() -> None:
    schema: dict[str, Json] = {"type": "object"}
    wire = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": True}}
    assert read(asking(response_format=wire)).output == Schema(schema, "n", True)
    assert read(asking(response_format={"type": "json_object"})).output == Schema()


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (
            {"type": "document_url", "document_url": "data:application/pdf;base64,AA=="},
            File(b"\0", "application/pdf"),
        ),
        (
            {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AA=="}},
            File(b"\0", "video/mp4"),
        ),
        (
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,not base64"}},
            Image(url="data:image/png;base64,not base64"),
        ),
        (
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,_-8"}},
            Image(b"\xff\xef", "image/png"),
        ),
        (
            {"type": "image_url", "image_url": {}},
            Opaque("openai", {"type": "image_url", "image_url": {}}, vital=True),
        ),
    ],
)
def test_data_urls_are_bytes_where_they_can_be(part: dict[str, Any], expected: Any) -> None:
    (turn,) = read(asking({"role": "user", "content": [part]})).messages
    assert turn.parts == (expected,)


@given(st.sampled_from(["system", "user"]), st.text())
def test_a_turn_of_nothing_but_words_reads_as_it_does_among_other_fields(
    role: str, words: str
) -> None:
    plain: dict[str, Json] = {"role": role, "content": words}
    (short,) = read_messages(Node([plain]))
    (long,) = read_messages(Node([{**plain, "tool_calls": None}]))
    assert (short.role, short.parts) == (long.role, long.parts)
    assert not short.extra
    assert write_messages((short,), same=True) == [plain]


def maybe(values: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.none() | values


COUNTS = maybe(st.integers(0, 9) | st.just(4.0))
RATES = maybe(st.floats(0, 2) | st.integers(0, 1))
WIRES = st.fixed_dictionaries(
    {},
    optional={
        "temperature": RATES,
        "top_p": RATES,
        "top_k": COUNTS,
        "max_tokens": COUNTS,
        "max_completion_tokens": COUNTS,
        "seed": COUNTS,
        "random_seed": COUNTS,
        "user": maybe(st.sampled_from(["", "u-1"])),
        "logit_bias": maybe(st.just({"50256": -100})),
        "stop": maybe(st.sampled_from(["END", ["END"], []])),
        "tools": st.none() | st.just([]),
        "reasoning_effort": maybe(st.sampled_from(["low", "high"])),
    },
)


@given(wire=WIRES)
def test_what_rides_along_is_just_what_our_own_writing_would_not_say(
    wire: dict[str, Json],
) -> None:
    request = read_request(Node({"model": "m", "messages": [], **wire}))
    written = write_options(read_options(Node(wire)))
    unsaid = {k: v for k, v in wire.items() if k not in written or written[k] != v}
    assert dict(request.extra) == unsaid | ({"tools": []} if wire.get("tools") == [] else {})
