"""Chat Completions answers as vendors write them, whole and streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chat_rig import (
    CHAT,
    answering,
    call_piece,
    chunk,
    final,
    sent,
    sse,
    streamed,
)

from understudy.dialects.base import Truncated
from understudy.messages.parts import (
    File,
    Image,
    Json,
    Opaque,
    Reasoning,
    Text,
)
from understudy.messages.request import (
    Message,
    Request,
)
from understudy.messages.response import ReasoningDelta, Response, TextDelta, Usage


@pytest.mark.parametrize(
    ("raw", "finish"),
    [
        ("stop", "stop"),
        ("eos", "stop"),
        ("eos_token", "stop"),
        ("length", "length"),
        ("model_length", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("content_filter", "content_filter"),
        ("", "other"),
        (None, "other"),
        ("never_heard_of", "other"),
    ],
)
def test_finish_reasons_map_by_the_wires_word_alone(raw: str | None, finish: str) -> None:
    response = CHAT.read_response(answering({"content": "a"}, raw))
    assert (response.finish_reason, response.finish_raw) == (finish, raw or "")
    if raw != "stop":
        assert final(chunk({"content": "a"}, raw)).finish_reason == finish


def test_content_that_is_an_object_is_its_json() -> None:  # Cloudflare with a schema
    assert CHAT.read_response(answering({"content": {"a": [1]}})).text == '{"a":[1]}'


def test_zero_values_everywhere_are_nothing() -> None:  # Snowflake
    message = {
        "content": "a",
        "refusal": "",
        "function_call": {"name": "", "arguments": ""},
        "audio": {"id": "", "data": ""},
        "tool_calls": None,
    }
    response = CHAT.read_response(answering(message, "", usage=None))
    assert response.parts == (Text("a"),)
    assert (response.usage, response.refusal) == (None, "")


def test_a_stream_that_never_gives_a_finish_reason_but_done_is_over() -> None:  # Snowflake
    response = final(chunk({"content": "a", "refusal": ""}), chunk({"content": ""}))
    assert (response.text, response.finish_reason, response.finish_raw) == ("a", "other", "")


def test_a_close_after_a_finish_reason_ends_a_stream() -> None:  # Perplexity, GPUStack
    both = {"message": {"role": "assistant", "content": "1 2"}}
    first = json.dumps({"choices": [{"index": 0, "delta": {"content": "1 "}, **both}]})
    last = json.dumps(
        {
            "object": "chat.completion.done",
            "usage": {"prompt_tokens": 1, "completion_tokens": 2},
            "choices": [{"index": 0, "delta": {"content": "2"}, "finish_reason": "stop", **both}],
        }
    )
    response = final(first, last, ending="")
    assert (response.text, response.usage) == ("1 2", Usage(1, 2))


def test_a_stream_without_done_and_finish_reason_is_truncated() -> None:
    with pytest.raises(Truncated):
        streamed(sse(chunk({"content": "a"}), ending=""))


@pytest.mark.parametrize("cut", [b'data: {"choices":[{"del', b"data: [DO", b"da"])
def test_a_stream_cut_within_a_line_is_truncated(cut: bytes) -> None:
    with pytest.raises(Truncated):
        streamed(sse(chunk({"content": "a"}), ending="") + cut)


def test_strings_and_parts_may_mix_in_one_stream() -> None:  # Mistral's reasoning models
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    *_, response = events = streamed(
        sse(
            chunk({"role": "assistant", "content": ""}),
            chunk({"content": [thinking]}),
            chunk({"content": [{"type": "text", "text": "4"}]}),
            chunk({"content": "2"}, "stop"),
        )
    )
    assert events[:3] == [ReasoningDelta("hm"), TextDelta("4"), TextDelta("2")]
    assert isinstance(response, Response)
    back = sent(Request((Message("assistant", response.parts),)))
    (turn,) = back["messages"]
    assert turn == {"role": "assistant", "content": [thinking, {"type": "text", "text": "42"}]}


def test_usage_that_is_repeated_is_not_added_up() -> None:  # Databricks, NVIDIA, DeepSeek
    usages = [{"prompt_tokens": 5, "completion_tokens": n} for n in (None, 1, 2)]
    payloads = [chunk({"content": "a"}, usage=usage) for usage in usages]
    assert final(*payloads).usage == Usage(5, 2)


def test_a_finish_reason_may_be_repeated_with_usage() -> None:  # OpenRouter
    usage = {"prompt_tokens": 1, "completion_tokens": 2}
    response = final(chunk({"content": "a"}), chunk({}, "stop"), chunk({}, "stop", usage=usage))
    assert (response.finish_raw, response.usage) == ("stop", Usage(1, 2))


def test_azure_opens_with_a_filter_verdict_and_leaves_a_delta_out() -> None:
    verdict = json.dumps({"id": "", "model": "", "choices": [], "prompt_filter_results": [1]})
    response = final(verdict, chunk({"content": "a"}), chunk(None), chunk({}, "stop"))
    assert (response.text, response.id, response.model) == ("a", "r", "m")


def test_a_model_named_once_and_late_is_not_lost() -> None:  # Azure
    opening, last = chunk(None, model=""), chunk({}, "stop", model="")
    assert final(opening, chunk({"content": "Hi"}, model="gpt"), last).model == "gpt"


def test_groq_keeps_usage_in_a_drawer() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 4}
    last = chunk({}, "stop", x_groq={"usage": usage}, id="stub")
    assert final(chunk({"reasoning": "hm"}), last).usage == Usage(3, 4)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 2}, Usage(5, 2)),
        ({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}}, Usage(5, 0, 4)),
        ({"prompt_tokens": 5, "prompt_cache_hit_tokens": 4}, Usage(5, 0, 4)),
        ({"prompt_tokens": 5, "cached_tokens": 4}, Usage(5, 0, 4)),
        ({"prompt_tokens": 5, "cache_read_input_tokens": 4}, Usage(5, 0, 4)),
        (
            {"prompt_tokens": 5, "prompt_tokens_details": {"cache_write_tokens": 3}},
            Usage(5, 0, 0, 3),
        ),
        (
            {"completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 4}},
            Usage(0, 5, reasoning=4),
        ),
        ({"prompt_tokens_details": None}, None),
        (None, None),
        ({}, None),
    ],
)
def test_usage_is_read_under_all_its_names(usage: Any, expected: Usage | None) -> None:
    assert CHAT.read_response(answering({"content": "a"}, usage=usage)).usage == expected


@pytest.mark.parametrize(
    ("fields", "thought"),
    [
        ({"reasoning_content": "hm"}, "hm"),
        ({"reasoning": "hm"}, "hm"),
        ({"reasoning_content": "hm", "reasoning": "hm"}, "hm"),
        ({"reasoning_content": None, "reasoning": "hm", "reasoning_details": []}, "hm"),
        ({"reasoning_details": [{"type": "reasoning.text", "text": "hm", "index": 0}]}, "hm"),
        ({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x"}]}, ""),
    ],
)
def test_reasoning_is_read_under_all_its_names_and_goes_back_as_it_came(
    fields: dict[str, Any], thought: str
) -> None:
    whole = CHAT.read_response(answering({"role": "assistant", "content": "a", **fields}))
    stream = final(chunk(fields), chunk({"content": "a"}, "stop"))
    for response in (whole, stream):
        assert (response.reasoning, response.text) == (thought, "a")
        body = sent(Request((Message("assistant", response.parts),)))
        (turn,) = body["messages"]
        said = {key: value for key, value in fields.items() if value}
        assert turn == {"role": "assistant", "content": "a", **said}


def test_details_of_reasoning_that_come_in_pieces_are_joined() -> None:
    details = [
        [{"type": "reasoning.text", "text": "h", "index": 0}],
        [{"type": "reasoning.text", "text": "m", "index": 0}],
        [{"type": "reasoning.text", "signature": "s", "index": 0}],
        [{"type": "reasoning.encrypted", "data": "x", "index": 1}],
    ]
    response = final(*(chunk({"reasoning_details": detail}) for detail in details))
    (part,) = response.parts
    assert isinstance(part, Reasoning)
    assert part.text == "hm"
    assert part.extra["reasoning_details"] == [
        {"type": "reasoning.text", "text": "hm", "signature": "s", "index": 0},
        {"type": "reasoning.encrypted", "data": "x", "index": 1},
    ]


def test_a_refusal_is_no_text_but_an_answer() -> None:
    whole = CHAT.read_response(answering({"content": None, "refusal": "I can't"}))
    stream = final(chunk({"refusal": "I "}), chunk({"refusal": "can't"}), chunk({}, "stop"))
    for response in (whole, stream):
        assert (response.text, response.refusal, response.blank) == ("", "I can't", "")


def test_words_in_several_parts_are_one_string_in_an_answer() -> None:
    several = Response(parts=(Text("see "), Opaque("anthropic", {"search": 1}), Text("above")))
    (choice,) = CHAT.write_response(several, "m")["choices"]
    assert choice["message"]["content"] == "see above"


def test_pictures_and_sounds_are_parts() -> None:
    images = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAEC"}}]
    audio = {"id": "a", "data": "AAEC", "transcript": "hello", "expires_at": 1}
    message = {"content": None, "images": images, "audio": audio}
    whole = CHAT.read_response(answering(message))
    pieces = [
        chunk({"images": images, "audio": {"id": "a", "data": "AA==", "transcript": "hel"}}),
        chunk({"audio": {"data": "AQI=", "transcript": "lo"}}),
        chunk({"audio": {"expires_at": 1}}, "stop"),
    ]
    for response in (whole, final(*pieces)):
        picture, sound = response.parts
        assert picture == Image(b"\0\1\2", "image/png")
        assert isinstance(sound, File)
        assert sound.data == b"\0\1\2"
        assert sound.extra["audio"] == {"id": "a", "transcript": "hello", "expires_at": 1}
        assert not response.blank
    shown: Any = CHAT.write_response(whole, "m")["choices"]
    assert shown[0]["message"]["audio"] == audio


def test_only_the_first_choice_speaks_and_the_others_are_kept() -> None:
    choices = [
        {"index": 1, "message": {"content": "b"}, "finish_reason": "length"},
        {"index": 0, "message": {"content": "a"}, "finish_reason": "stop"},
    ]
    whole = CHAT.read_response(json.dumps({"choices": choices}).encode())
    assert (whole.text, whole.finish_reason, whole.extra["choices"]) == ("a", "stop", choices)


def test_the_other_choices_of_a_stream_are_kept_as_those_of_a_plain_answer() -> None:
    calls = [call_piece(0, id="c", name="f", arguments='{"a"')], [call_piece(0, arguments=":1}")]
    told: list[tuple[int, dict[str, Any], str | None]] = [
        (2, {"role": "assistant", "tool_calls": calls[0]}, None),
        (0, {"role": "assistant", "content": "a"}, None),
        (1, {"content": "b"}, None),
        (500, {"content": "nobody asked for so many"}, None),
        (2, {"tool_calls": calls[1]}, "tool_calls"),
        (1, {"content": "c"}, "length"),
        (0, {}, "stop"),
    ]
    chunks = [
        json.dumps({"choices": [{"index": index, "delta": delta, "finish_reason": finish}]})
        for index, delta, finish in told
    ]
    *events, response = streamed(sse(*chunks))
    assert events == [TextDelta("a")]
    assert isinstance(response, Response)
    function = {"name": "f", "arguments": '{"a":1}'}
    words: dict[str, Any] = {"role": "assistant", "refusal": None}
    calling = [{"id": "c", "type": "function", "function": function}]
    assert response.extra["choices"] == [
        {"index": 0, "message": {**words, "content": "a"}, "finish_reason": "stop"},
        {"index": 1, "message": {**words, "content": "bc"}, "finish_reason": "length"},
        {
            "index": 2,
            "message": {**words, "content": None, "tool_calls": calling},
            "finish_reason": "tool_calls",
        },
    ]


def test_unknown_fields_of_an_answer_are_kept_and_written_back() -> None:
    body = answering({"content": "a"}, system_fingerprint="fp", created=5, citations=["u"])
    response = CHAT.read_response(body)
    assert response.extra == {"system_fingerprint": "fp", "created": 5, "citations": ["u"]}
    assert CHAT.write_response(response, "m").items() >= response.extra.items()


def test_half_of_a_surrogate_pair_does_not_cost_the_answer() -> None:
    body = sse('{"choices":[{"delta":{"content":"\\ude00a\\ud83d"},"finish_reason":"stop"}]}')
    *_, response = streamed(body)
    assert isinstance(response, Response)
    assert response.text == "\ufffda"


def test_finish_details_are_no_finish_reason() -> None:  # gpt-4-vision-preview
    choice = {"index": 0, "message": {"content": "a"}, "finish_details": {"type": "max_tokens"}}
    response = CHAT.read_response(json.dumps({"choices": [choice]}).encode())
    assert (response.text, response.finish_reason, response.finish_raw) == ("a", "other", "")
    assert response.extra["choices"] == [choice]


@pytest.mark.parametrize("content", [["a", "", "b"], [{"type": "output_text", "text": "ab"}]])
def test_content_may_be_a_list_of_odd_things(content: list[Any]) -> None:
    assert CHAT.read_response(answering({"content": content})).text == "ab"


def test_a_part_nobody_knows_is_kept_whole_in_streams_too() -> None:
    odd: Json = {"type": "reference", "reference_ids": [1]}
    response = final(chunk({"content": [odd, {"type": "text", "text": ""}]}), chunk({}, "stop"))
    assert response.parts == (Opaque("openai", odd),)


def test_zero_values_are_no_sign_of_life() -> None:
    reader = CHAT.reader()
    zeros = {"content": "", "function_call": {"name": "", "arguments": ""}, "audio": {"id": ""}}
    assert reader.feed(sse(chunk(zeros), chunk(zeros), ending="")) == []
    assert reader.beats == 0


def test_a_message_instead_of_a_delta_is_read() -> None:
    whole = json.dumps({"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]})
    assert final(whole).text == "a"
