"""generateContent streams: events, arrays, plain answers; finished, failed and cut off."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_more import values
from wire_rig import encoded, final, heard

from understudy.dialects.base import Dialect, Garbled, Truncated
from understudy.dialects.gemini import Gemini
from understudy.dialects.json_values import Values
from understudy.dialects.openai_chat import OpenAIChat
from understudy.messages.parts import Opaque, Reasoning, Text, ToolCall
from understudy.messages.response import ReasoningDelta, Response, TextDelta, Usage

DIALECT: Dialect = Gemini()


def chunk(*parts: dict[str, Any], finish: object = None, **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": [*parts], "role": "model"}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": "g", "responseId": "r", **more}


def sse(*chunks: object, end: bytes = b"\r\n\r\n") -> bytes:
    return b"".join(b"data: " + encoded(it) + end for it in chunks)


def test_counts_on_every_chunk_are_totals() -> None:
    body = sse(
        chunk({"text": "a"}, usageMetadata={"promptTokenCount": 5, "candidatesTokenCount": 1}),
        chunk({"text": "b"}, usageMetadata={"promptTokenCount": 5, "candidatesTokenCount": 2}),
        chunk(finish="STOP"),
        {"usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 3}},
    )
    response = final(DIALECT, body)
    assert response.usage == Usage(5, 3, reasoning_apart=True)
    assert (response.text, response.model, response.id) == ("ab", "g", "r")


def test_what_a_chunk_does_not_repeat_still_holds() -> None:
    counts = {"promptTokenCount": 5, "candidatesTokenCount": 2}
    bare = {"candidates": [{"content": {"parts": [{"text": "b"}]}, "index": 0}]}
    response = final(
        DIALECT, sse(chunk({"text": "a"}, usageMetadata=counts), bare, chunk(finish="STOP"))
    )
    assert response.usage == Usage(5, 2, reasoning_apart=True)
    bare["candidates"][0]["finishReason"] = "STOP"
    response = final(DIALECT, sse(chunk({"text": "a"}, usageMetadata=counts), bare))
    assert (response.usage, response.id) == (Usage(5, 2, reasoning_apart=True), "r")


def test_thinking_is_gathered_until_its_signature() -> None:
    events, _ = heard(
        DIALECT,
        sse(
            chunk({"text": "h", "thought": True}),
            chunk({"text": "m", "thought": True, "thoughtSignature": "s"}),
            chunk({"text": "more", "thought": True}),
            chunk({"text": "a"}),
            chunk({"text": "b"}),
            chunk({"text": "", "thoughtSignature": "t"}, finish="STOP"),
        ),
    )
    told = [
        ReasoningDelta("h"),
        ReasoningDelta("m"),
        ReasoningDelta("more"),
        TextDelta("a"),
        TextDelta("b"),
    ]
    assert events[:-1] == told
    last = events[-1]
    assert isinstance(last, Response)
    assert last.parts == (
        Reasoning("hm", "gemini", "s"),
        Reasoning("more", "gemini"),
        Text("ab"),
        Reasoning("", "gemini", "t"),
    )


@pytest.mark.parametrize(
    "part",
    [
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK"}},
        {"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {}, "id": "t"}},
        {"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "response": {}, "id": "t"}},
        {"unheardOf": {}, "thought": True},
    ],
)
def test_a_signed_part_that_google_made_itself_is_kept_whole(part: dict[str, Any]) -> None:
    signed = {**part, "thoughtSignature": "s"}
    response = final(DIALECT, sse(chunk(signed), chunk(finish="STOP")))
    assert response.parts == (Opaque("gemini", signed),)
    assert (response.reasoning, response.blank) == ("", "")
    written: Any = DIALECT.write_response(response, "m")
    assert written["candidates"][0]["content"]["parts"] == [signed]
    body = {"contents": [{"role": "model", "parts": [signed]}]}
    request = DIALECT.read_request(encoded(body), "m").request
    assert DIALECT.write_request(request, "m", stream=False)["contents"] == body["contents"]
    history: Any = OpenAIChat().write_request(request, "m", stream=False)
    assert history["messages"] == []


def numbered(index: int, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    content = {"content": {"parts": [*parts], "role": "model"}} if parts else {}
    return {"candidates": [{**content, "index": index, **more}], "modelVersion": "g"}


def test_the_other_candidates_of_a_stream_are_kept_as_those_of_a_plain_answer() -> None:
    call = {"functionCall": {"name": "f"}}
    thought = {"text": "hm", "thought": True}
    whole = [
        numbered(0, {"text": "a"}, finishReason="MAX_TOKENS"),
        numbered(1, thought, {"text": "bcd"}, call, finishReason="STOP"),
        numbered(2, finishReason="SAFETY", safetyRatings=[]),
    ]
    body = sse(
        numbered(1, {"text": "h", "thought": True}),
        numbered(0, {"text": "a"}),
        numbered(1, {"text": "m", "thought": True}, {"text": "b"}),
        numbered(2, finishReason="SAFETY"),
        numbered(1, {"text": "c"}),
        numbered(500, {"text": "nobody asked for so many"}),
        numbered(1, {"text": "d"}, call, finishReason="STOP"),
        numbered(0, finishReason="MAX_TOKENS"),
        numbered(2, safetyRatings=[]),
    )
    events, _ = heard(DIALECT, body)
    assert events[:-1] == [TextDelta("a")]
    plain = {"candidates": [it["candidates"][0] for it in whole], "modelVersion": "g"}
    assert events[-1] == DIALECT.read_response(encoded(plain))


def test_candidates_without_an_index_are_known_by_their_place() -> None:
    one, two = ({"content": {"parts": [{"text": text}]}} for text in "ab")
    body = sse({"candidates": [one, two]}, {"candidates": [one, two]}, chunk(finish="STOP"))
    response = final(DIALECT, body)
    assert response.text == "aa"
    assert response.extra["candidates"] == [{"content": {"parts": [{"text": "bb"}]}}]


def test_equal_calls_in_different_chunks_have_different_ids() -> None:
    call = {"functionCall": {"name": "roll", "args": {}}}
    events, _ = heard(DIALECT, sse(chunk(call), chunk(call), chunk(finish=1)))
    calls = [event for event in events if isinstance(event, ToolCall)]
    assert len({c.id for c in calls}) == 2
    last = events[-1]
    assert isinstance(last, Response)
    assert (last.tool_calls, last.finish_reason) == (tuple(calls), "tool_calls")


def piece(path: str, *, more: bool = True, **value: Any) -> dict[str, Any]:
    call: dict[str, Any] = {"partialArgs": [{"jsonPath": path, **value}]}
    return {"functionCall": {**call, "willContinue": True} if more else call}


BEGUN = {"functionCall": {"name": "f", "willContinue": True}, "thoughtSignature": "s"}
ENDINGS: dict[str, list[dict[str, Any]]] = {
    "a bare call": [chunk({"functionCall": {}}), chunk({"text": ""}, finish="STOP")],
    "the finish": [chunk(finish="STOP")],
    "text": [chunk({"text": "b"}), chunk(finish="STOP")],
    "another call": [chunk({"functionCall": {"name": "g"}}, finish="STOP")],
}


@pytest.mark.parametrize("end", ENDINGS)
def test_arguments_that_come_in_pieces_are_put_together(end: str) -> None:
    body = sse(
        chunk({"text": "a"}),
        chunk(BEGUN),
        chunk(piece("$.rows[0].name", stringValue="Bos")),
        chunk(
            piece("$.rows[0].name", stringValue="ton"), piece("$.rows[0]['a.b']", boolValue=True)
        ),
        chunk(piece("$.rows[1].price", numberValue=0.5)),
        chunk(piece("$.none", nullValue="NULL_VALUE", more=end != "text")),
        *ENDINGS[end],
    )
    events, _ = heard(DIALECT, body)
    *_, response = events
    assert isinstance(response, Response)
    assert response.finish_reason == "tool_calls"
    call, *others = response.tool_calls
    rows: Any = [{"name": "Boston", "a.b": True}, {"price": 0.5}]
    assert (call.name, json.loads(call.arguments)) == ("f", {"rows": rows, "none": None})
    assert call.extra == {"thoughtSignature": "s"}
    assert [other.name for other in others] == (["g"] if end == "another call" else [])
    assert tuple(e for e in events if isinstance(e, ToolCall)) == response.tool_calls
    told = [type(part) for part in response.parts]
    assert told[:2] == [Text, ToolCall]


def test_a_call_in_pieces_is_a_sign_of_life_before_it_is_an_event() -> None:
    reader = DIALECT.reader()
    assert reader.feed(sse(chunk(BEGUN))) == []
    assert reader.beats == 1
    assert reader.feed(sse(chunk(piece("$.a", stringValue="b")))) == []
    assert reader.beats == 2


@pytest.mark.parametrize(
    "path", ["", "$", "$[0]", "$.a[99999999].b", "$.a.b", "$.a[" + "9" * 5000]
)
def test_a_path_that_leads_nowhere_costs_nothing_but_its_value(path: str) -> None:
    body = sse(
        chunk(BEGUN),
        chunk(piece("$.a", numberValue=1)),
        chunk(piece(path, stringValue="c"), finish="STOP"),
    )
    (call,) = final(DIALECT, body).tool_calls
    assert (call.name, json.loads(call.arguments)["a"]) == ("f", 1)


@pytest.mark.parametrize("array", [False, True])
def test_a_stream_without_a_finish_was_cut_off(array: bool) -> None:
    chunks = [chunk({"text": "a"}), chunk({"text": "b"})]
    body = encoded(chunks) if array else sse(*chunks)
    with pytest.raises(Truncated):
        heard(DIALECT, body)
    with pytest.raises(Truncated):
        heard(DIALECT, body[:-9] if array else b"")


def test_a_stream_may_end_without_the_last_blank_line_or_bracket() -> None:
    chunks = [chunk({"text": "a"}), chunk({"text": "b"}, finish="STOP")]
    assert final(DIALECT, sse(*chunks, end=b"\n\n")[:-2]).text == "ab"
    assert final(DIALECT, encoded(chunks)[:-1]).text == "ab"


def test_a_blocked_prompt_ends_the_stream() -> None:
    response = final(DIALECT, sse({"promptFeedback": {"blockReason": "SAFETY"}}))
    assert (response.finish_reason, response.finish_raw) == ("content_filter", "block:SAFETY")


def test_an_unspecified_finish_is_no_finish() -> None:
    with pytest.raises(Truncated):
        heard(DIALECT, sse(chunk({"text": "a"}, finish="FINISH_REASON_UNSPECIFIED")))


def test_a_plain_object_is_a_whole_answer() -> None:
    assert final(DIALECT, encoded(chunk({"text": "a"}, finish="STOP"))).text == "a"
    assert final(DIALECT, encoded({"candidates": []})).finish_reason == "other"


ERROR = {"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}}


@pytest.mark.parametrize(
    "body",
    [
        sse(chunk({"text": "a"}), ERROR, chunk({"text": "b"}, finish="STOP")),
        sse(chunk({"text": "a"})) + encoded(ERROR) + b"\n\n",
        encoded([chunk({"text": "a"}), ERROR]),
        sse(chunk({"text": "a"}), [ERROR]),
    ],
)
def test_an_error_keeps_what_came_before_it(body: bytes) -> None:
    events, reader = heard(DIALECT, body)
    assert (events, reader.done) == ([TextDelta("a")], False)
    assert reader.failure is not None
    assert reader.failure.status == 429
    assert DIALECT.read_error(reader.failure.body) == "quota"


@pytest.mark.parametrize("body", [encoded(ERROR), encoded([ERROR]), b"  \n" + encoded([ERROR])])
def test_an_error_instead_of_a_stream_is_a_failure(body: bytes) -> None:
    events, reader = heard(DIALECT, body)
    assert events == []
    assert reader.failure is not None


@pytest.mark.parametrize(
    "body", [b"<html>oops</html>", b"data: {\n\n", b"upstream error", b"[1, 2]"]
)
def test_something_else_entirely_is_garbled(body: bytes) -> None:
    with pytest.raises(Garbled):
        heard(DIALECT, body)


def test_another_dialects_terminator_is_passed_over() -> None:
    assert (
        final(DIALECT, sse(chunk({"text": "a"}, finish="STOP")) + b"data: [DONE]\n\n").text == "a"
    )


def test_an_error_in_a_written_stream_is_no_end() -> None:
    for dialect in (Gemini(), Gemini(array=True)):
        writer = dialect.writer("m")
        body = writer.write_event(TextDelta("a")) + writer.write_error(503, "gone", "transient")
        events, reader = heard(DIALECT, body)
        assert (events, reader.done) == ([TextDelta("a")], False)
        assert reader.failure is not None


@given(
    st.lists(st.dictionaries(st.text(max_size=3), values, max_size=3)),
    st.integers(1, 9),
    st.data(),
)
def test_objects_of_an_array_come_whole_whatever_the_slicing(
    objects: list[dict[str, Any]], size: int, data: st.DataObject
) -> None:
    body = encoded(objects) if data.draw(st.booleans()) else b"\n".join(map(encoded, objects))
    splitter = Values()
    found = [v for at in range(0, len(body), size) for v in splitter.feed(body[at : at + size])]
    splitter.end()
    assert found == [encoded(it) for it in objects]


def test_garbage_after_a_value_does_not_cost_the_value() -> None:
    reader = DIALECT.reader()
    assert reader.feed(encoded(chunk({"text": "a"})) + b" <oops>") == [TextDelta("a")]
    assert reader.beats == 1
    with pytest.raises(Garbled, match="oops"):
        reader.feed(b"more")
    with pytest.raises(Garbled, match="oops"):
        reader.end()
    with pytest.raises(Garbled, match="oops"):
        heard(DIALECT, encoded(chunk({"text": "a"})) + b" <oops>")


def test_a_value_larger_than_the_limit_is_refused() -> None:
    with pytest.raises(Garbled, match="more than 20 bytes"):
        Values(limit=20).feed(b'[{"text": "' + b"a" * 30)
