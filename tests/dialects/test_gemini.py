"""The generateContent dialect: laws, and answers that came whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_more import cuts, pieces, spoken, words
from strategies_others import gemini_requests, gemini_responses
from wire_rig import encoded, heard

from understudy.dialects.base import Dialect, Garbled, Inbound, WireError
from understudy.dialects.gemini import Gemini
from understudy.messages.parts import File, Image, Json, Opaque, Part, Reasoning, Text, ToolCall
from understudy.messages.request import Request
from understudy.messages.response import FinishReason, Response, TextDelta, Usage

DIALECT: Dialect = Gemini()
MODEL = "gemini-3-flash-preview"


def answered(*parts: dict[str, Any], **more: Any) -> bytes:
    """A body with one candidate."""
    candidate = {"content": {"role": "model", "parts": [*parts]}, "finishReason": "STOP"}
    return encoded({"candidates": [candidate], **more})


# Laws


@given(gemini_requests(), st.booleans())
def test_a_request_survives_being_written_and_read(request: Request, stream: bool) -> None:
    body = encoded(DIALECT.write_request(request, MODEL, stream))
    assert DIALECT.read_request(body, MODEL, stream) == Inbound(MODEL, stream, request)


@given(gemini_responses())
def test_a_response_survives_being_written_and_read(response: Response) -> None:
    body = encoded(DIALECT.write_response(response, response.model))
    assert DIALECT.read_response(body) == response


@given(gemini_responses(), spoken(st.builds(Reasoning, words, st.just("gemini"))), st.data())
def test_a_streamed_answer_is_the_same_whatever_the_slicing_and_the_framing(
    response: Response, parts: tuple[Part, ...], data: st.DataObject
) -> None:
    called = any(isinstance(part, ToolCall) for part in parts)
    stopped: FinishReason = "tool_calls" if called else "stop"
    finish = stopped if response.finish_raw == "STOP" else response.finish_reason
    answer = replace(response, parts=parts, text="", reasoning="", finish_reason=finish)
    answer = answer if parts else replace(answer, tool_calls=(), parts=())
    array, whole = data.draw(st.booleans()), data.draw(st.booleans())
    writer = Gemini(array=array).writer(answer.model)
    told = [] if whole else pieces(parts)
    body = b"".join(writer.write_event(event) for event in [*told, answer])
    body = body if array else b": comment\r\n\r\n" + body
    body = data.draw(st.sampled_from((body, body.replace(b"\r\n", b"\n"))))
    events, reader = heard(DIALECT, body, data.draw(cuts(len(body))))
    assert events[-1] == answer
    assert whole or events[:-1] == told
    assert (reader.done, reader.failure) == (True, None)


# Where requests go


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("gemini-2.5-flash", "/v1beta/models/gemini-2.5-flash:generateContent"),
        ("models/gemini-2.5-pro", "/v1beta/models/gemini-2.5-pro:generateContent"),
        ("tunedModels/mine", "/v1beta/tunedModels/mine:generateContent"),
        ("a b?c#d:e", "/v1beta/models/a%20b%3Fc%23d%3Ae:generateContent"),
        ("../../v1/x", "/v1beta/models/..%2F..%2Fv1%2Fx:generateContent"),
        ("models//x", "/v1beta/models/models%2F%2Fx:generateContent"),
    ],
)
def test_the_model_is_a_safe_part_of_the_path(model: str, path: str) -> None:
    assert DIALECT.path(model, stream=False) == path


def test_streams_are_asked_for_as_events() -> None:
    assert DIALECT.path("m", stream=True) == "/v1beta/models/m:streamGenerateContent?alt=sse"


# Answers


@pytest.mark.parametrize(
    ("raw", "finish", "told"),
    [
        ("STOP", "stop", "STOP"),
        ("MAX_TOKENS", "length", "MAX_TOKENS"),
        ("SAFETY", "content_filter", "SAFETY"),
        ("RECITATION", "content_filter", "RECITATION"),
        ("BLOCKLIST", "content_filter", "BLOCKLIST"),
        ("PROHIBITED_CONTENT", "content_filter", "PROHIBITED_CONTENT"),
        ("SPII", "content_filter", "SPII"),
        ("MODEL_ARMOR", "content_filter", "MODEL_ARMOR"),
        ("IMAGE_SAFETY", "content_filter", "IMAGE_SAFETY"),
        ("UNEXPECTED_TOOL_CALL", "other", "UNEXPECTED_TOOL_CALL"),
        ("MALFORMED_FUNCTION_CALL", "other", "MALFORMED_FUNCTION_CALL"),
        (1, "stop", "STOP"),
        (2, "length", "MAX_TOKENS"),
        (3, "content_filter", "SAFETY"),
        (77, "other", "OTHER"),
        (None, "other", ""),
    ],
)
def test_every_finish_reason_has_its_finish(raw: Json, finish: str, told: str) -> None:
    body = encoded({"candidates": [{"finishReason": raw}]})
    response = DIALECT.read_response(body)
    assert (response.finish_reason, response.finish_raw, response.parts) == (finish, told, ())


def test_a_stop_beside_a_call_is_a_call() -> None:
    response = DIALECT.read_response(answered({"functionCall": {"name": "f", "args": {"a": 1}}}))
    assert (response.finish_reason, response.finish_raw) == ("tool_calls", "STOP")
    assert response.tool_calls[0].arguments == '{"a":1}'


def test_a_blocked_prompt_is_a_filtered_answer() -> None:
    feedback = {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": "no"}
    body = encoded({"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 4}})
    response = DIALECT.read_response(body)
    assert (response.finish_reason, response.finish_raw) == (
        "content_filter",
        "block:PROHIBITED_CONTENT",
    )
    assert not response.blank
    assert DIALECT.write_response(response, "")["promptFeedback"] == feedback
    assert (
        DIALECT.read_response(b'{"promptFeedback": {"blockReason": 1}}').finish_raw
        == "block:SAFETY"
    )


@pytest.mark.parametrize(
    "body", [b"{}", b'{"candidates": []}', b'{"candidates": [{"content": {}}]}']
)
def test_no_candidate_and_no_content_are_empty_answers(body: bytes) -> None:
    response = DIALECT.read_response(body)
    assert (response.parts, response.finish_reason, response.usage) == ((), "other", None)
    assert response.blank


def test_calls_without_ids_get_ids_of_their_own_the_same_every_time() -> None:
    call = {"functionCall": {"name": "roll", "args": {}}}
    body = answered(call, call, {"functionCall": {"name": "roll", "id": "x"}}, responseId="r1")
    first, again = (DIALECT.read_response(body).tool_calls for _ in range(2))
    assert first == again
    assert len({c.id for c in first}) == 3
    assert first[2].id == "x"
    other = DIALECT.read_response(answered(call, responseId="r2")).tool_calls
    assert other[0].id not in {c.id for c in first}
    written: Any = DIALECT.write_response(DIALECT.read_response(body), "")
    ids = [part["functionCall"].get("id") for part in written["candidates"][0]["content"]["parts"]]
    assert ids == [None, None, "x"]


def test_thoughts_signatures_and_provider_run_tools_are_told_apart() -> None:
    tool: dict[str, Json] = {"toolCall": {"toolType": "FILE_SEARCH", "id": "1"}}
    code: dict[str, Json] = {"executableCode": {"language": "PYTHON", "code": "1"}}
    response = DIALECT.read_response(
        answered(
            {"text": "hm", "thought": True, "thoughtSignature": "s1"},
            {"text": "a", "thoughtSignature": "s2"},
            {"text": "", "thoughtSignature": "s3"},
            {"functionCall": {"name": "f"}, "thoughtSignature": "s4"},
            {"functionCall": {"name": "", "args": {}}},
            {"text": ""},
            {"text": 7},
            {"thoughtSignature": "s5", "text": None},
            {"text": "", "thought": True, "thoughtSignature": "s6"},
            tool,
            code,
        )
    )
    call = response.tool_calls[0]
    assert response.parts == (
        Reasoning("hm", "gemini", "s1"),
        Text("a", {"thoughtSignature": "s2"}),
        Reasoning("", "gemini", "s3"),
        ToolCall(call.id, "f", "{}", "gemini", {"thoughtSignature": "s4"}),
        Reasoning("", "gemini", "s5"),
        Reasoning("", "gemini", "s6", extra={"thought": True}),
        Opaque("gemini", tool),
        Opaque("gemini", code),
    )
    assert (response.text, response.reasoning) == ("a", "hm")


def test_pictures_and_sounds_are_answers_too() -> None:
    body = answered(
        {"inlineData": {"mimeType": "image/png", "data": "AQ-_"}},
        {"inlineData": {"mimeType": "audio/pcm", "data": "AQ=="}},
    )
    assert DIALECT.read_response(body).parts == (
        Image(b"\x01\x0f\xbf", "image/png"),
        File(b"\x01", "audio/pcm"),
    )


def test_counts_are_google_s_own() -> None:
    counts = {
        "promptTokenCount": 100,
        "candidatesTokenCount": 7,
        "totalTokenCount": 152,
        "cachedContentTokenCount": 60,
        "thoughtsTokenCount": 40,
        "toolUsePromptTokenCount": 5,
        "trafficType": "ON_DEMAND",
    }
    response = DIALECT.read_response(answered({"text": "a"}, usageMetadata=counts))
    usage = Usage(100, 7, cache_read=60, reasoning=40, tool_input=5, reasoning_apart=True)
    assert response.usage == usage
    assert DIALECT.write_response(response, "")["usageMetadata"] == counts
    absent = DIALECT.read_response(answered(usageMetadata={"totalTokenCount": 3}))
    assert absent.usage == Usage(reasoning_apart=True)


def test_an_answer_of_another_vendor_is_shown_with_google_s_way_of_counting() -> None:
    response = Response(
        parts=(
            Reasoning("hm", "anthropic", "sig"),
            Reasoning(issuer="anthropic", data="x"),
            Text("a"),
            Opaque("anthropic", {}),
        ),
        finish_reason="content_filter",
        finish_raw="refusal",
        usage=Usage(30, 50, cache_read=60, cache_write=10, reasoning=20, cache_apart=True),
        issuer="anthropic",
        extra={"container": 1},
    )
    assert DIALECT.write_response(response, "m") == {
        "candidates": [
            {
                "content": {
                    "parts": [{"text": "hm", "thought": True}, {"text": "a"}],
                    "role": "model",
                },
                "finishReason": "SAFETY",
                "index": 0,
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 100,
            "candidatesTokenCount": 30,
            "cachedContentTokenCount": 60,
            "thoughtsTokenCount": 20,
            "totalTokenCount": 150,
        },
        "modelVersion": "m",
    }


def test_a_refusal_is_shown_as_text() -> None:
    body = encoded(DIALECT.write_response(Response(refusal="no"), "m"))
    assert DIALECT.read_response(body).text == "no"


def test_grounding_and_other_candidates_ride_along() -> None:
    candidates = [
        {"index": 1, "content": {"parts": [{"text": "b"}]}, "finishReason": "STOP"},
        {
            "index": 0,
            "content": {"parts": [{"text": "a"}], "role": "model"},
            "finishReason": "STOP",
            "groundingMetadata": {"webSearchQueries": ["q"]},
        },
    ]
    response = DIALECT.read_response(encoded({"candidates": candidates, "createTime": "t"}))
    assert response.text == "a"
    written: Any = DIALECT.write_response(response, "")
    assert written == {"candidates": [candidates[1], candidates[0]], "createTime": "t"}


ERROR: dict[str, Json] = {
    "error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"},
}


@pytest.mark.parametrize("value", [ERROR, [ERROR]])
def test_an_error_under_status_200_is_an_error(value: Json) -> None:
    with pytest.raises(WireError) as caught:
        DIALECT.read_response(encoded(value))
    assert (caught.value.body, caught.value.status) == (encoded(value), 503)
    assert DIALECT.read_error(encoded(value)) == "overloaded"


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b'{"candidates": [', b"[]", b"null", b'[{"a": 1}]']
)
def test_what_is_no_answer_is_garbled(body: bytes) -> None:
    with pytest.raises(Garbled):
        DIALECT.read_response(body)


def test_a_stream_that_arrived_whole_is_an_answer() -> None:
    chunks = [
        {"candidates": [{"content": {"parts": [{"text": "a"}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "b"}]}, "finishReason": "STOP"}]},
    ]
    assert DIALECT.read_response(encoded(chunks)).parts == (Text("ab"),)
    with pytest.raises(WireError):
        DIALECT.read_response(encoded([chunks[0], ERROR]))


@pytest.mark.parametrize(
    ("status", "word"),
    [
        (400, "INVALID_ARGUMENT"),
        (429, "RESOURCE_EXHAUSTED"),
        (500, "INTERNAL"),
        (418, "FAILED_PRECONDITION"),
    ],
)
def test_errors_are_written_in_the_words_of_the_dialect(status: int, word: str) -> None:
    body: Any = DIALECT.write_error(status, "no", "rate_limit")
    error = body["error"]
    assert (error["code"], error["message"], error["status"]) == (status, "no", word)
    assert error["details"][0]["reason"] == "RATE_LIMIT"
    assert DIALECT.read_error(encoded(body)) == "no"


def test_text_a_stream_told_is_not_told_again_at_the_end() -> None:
    writer = DIALECT.writer("m")
    picture = Image(b"1", "image/png")
    response = Response(parts=(Text("a"), picture))
    body = writer.write_event(TextDelta("a")) + writer.write_event(response)
    last = heard(DIALECT, body)[0][-1]
    assert isinstance(last, Response)
    assert last.parts == response.parts
