"""Answers of generateContent, whole ones and the chunks of a stream, which are answers in little.

Of several candidates the first is the answer; the others ride in `extra`.
"""

from __future__ import annotations

from understudy.core.errors import InvalidRequest
from understudy.dialects.base import WireError
from understudy.dialects.calls import made_up
from understudy.dialects.error_body import sentence, wire_error
from understudy.dialects.extras import given, kept, overlaid
from understudy.dialects.gemini.parts import (
    ISSUER,
    is_welcome,
    read_part,
    signed,
    with_id,
    write_part,
    write_thought,
)
from understudy.dialects.json_access import Node, items, obj, text, whole
from understudy.dialects.telling import shown
from understudy.messages.parts import NO_EXTRA, Json, Part, Reasoning, Text, ToolCall
from understudy.messages.response import FinishReason, Response, Usage

_FINISHES: dict[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
}  # anything else is "other"
_REASONS = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "other": "OTHER",
}
# Vertex may write its enumerations as numbers.
_NUMBERED = (
    "",  # unspecified
    "STOP",
    "MAX_TOKENS",
    "SAFETY",
    "RECITATION",
    "OTHER",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MALFORMED_FUNCTION_CALL",
    "MODEL_ARMOR",
)
_BLOCKS = ("", "SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "MODEL_ARMOR", "JAILBREAK")
_UNFINISHED = ("", "FINISH_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED")
BLOCKED = "block:"

_COUNTS = {
    "promptTokenCount": "input",
    "candidatesTokenCount": "output",
    "cachedContentTokenCount": "cache_read",
    "thoughtsTokenCount": "reasoning",
    "toolUsePromptTokenCount": "tool_input",
}
_ENVELOPE = ("candidates", "usageMetadata", "modelVersion", "responseId", "promptFeedback")


def failed(payload: bytes, value: Json) -> WireError | None:
    """The error in a payload, if it is one: an object or, without `alt=sse`, an array of one.

    Proxies write theirs in other shapes: a sentence, and nothing that belongs to an answer.
    """
    first = obj(value[0] if isinstance(value, list) and value else value)
    strange = not first.keys() & set(_ENVELOPE) and bool(sentence(first))
    return wire_error(payload, value) if first.get("error") or strange else None


def first_candidate(chunk: dict[str, Json]) -> dict[str, Json]:
    found = (obj(item) for item in items(chunk.get("candidates")))
    return next((item for item in found if not item.get("index")), {})


def read_content(candidate: dict[str, Json], response_id: str, calls: int = 0) -> list[Part]:
    """The parts of a candidate. Calls get ids made up of the answer's id and their place."""
    parts: list[Part] = []
    for value in items(obj(candidate.get("content")).get("parts")):
        try:
            part = read_part(Node(value))
        except InvalidRequest:
            continue  # the rest of the answer is still good
        if isinstance(part, ToolCall):
            if not part.name:
                continue
            part = with_id(part, made_up(response_id, calls, part.name, part.arguments))
            calls += 1
        if part != Text(""):
            parts.append(part)
    return parts


def response_of(chunk: dict[str, Json], parts: list[Part]) -> Response:
    """The answer in this envelope, whose parts were read elsewhere."""
    candidate, counts = first_candidate(chunk), obj(chunk.get("usageMetadata"))
    raw = finish_of(chunk)
    others = [item for item in items(chunk.get("candidates")) if obj(item) is not candidate]
    extra = dict(kept(chunk, _ENVELOPE)) | given(
        candidate=dict(kept(candidate, ("content", "finishReason", "index"))),
        candidates=others,
        usageMetadata=dict(kept(counts, (*_COUNTS, "totalTokenCount"))),
        promptFeedback=dict(kept(obj(chunk.get("promptFeedback")), ("blockReason",))),
    )
    return Response(
        parts=tuple(parts),
        finish_reason=_finish(raw, parts),
        finish_raw=raw,
        usage=_read_usage(counts),
        model=text(chunk.get("modelVersion")),
        id=text(chunk.get("responseId")),
        issuer=ISSUER,
        extra=extra or NO_EXTRA,
    )


def finish_of(chunk: dict[str, Json]) -> str:
    """The wire's word for the end, "" while there is none; `block:` marks a refused prompt."""
    raw = _word(first_candidate(chunk).get("finishReason"), _NUMBERED)
    if raw:
        return raw
    blocked = _word(obj(chunk.get("promptFeedback")).get("blockReason"), _BLOCKS)
    return f"{BLOCKED}{blocked}" if blocked else ""


def _word(value: Json, numbered: tuple[str, ...]) -> str:
    number = whole(value)
    if number is not None:
        return numbered[number] if 0 <= number < len(numbered) else "OTHER"
    return "" if text(value) in _UNFINISHED else text(value)


def _finish(raw: str, parts: list[Part]) -> FinishReason:
    if raw.startswith(BLOCKED):
        return "content_filter"
    if raw == "STOP" and any(isinstance(part, ToolCall) for part in parts):
        return "tool_calls"  # the wire has no word for it
    return _FINISHES.get(raw, "other")


def _read_usage(counts: dict[str, Json]) -> Usage | None:
    if not counts:
        return None
    found = {ours: whole(counts.get(theirs)) or 0 for theirs, ours in _COUNTS.items()}
    return Usage(
        found["input"],
        found["output"],
        cache_read=found["cache_read"],
        reasoning=found["reasoning"],
        tool_input=found["tool_input"],
        reasoning_apart=True,
    )


def _write_usage(usage: Usage) -> dict[str, Json]:
    """Cached tokens within the prompt, thinking beside the answer, as Google counts."""
    cached = usage.cache_read + usage.cache_write if usage.cache_apart else 0
    within = 0 if usage.reasoning_apart else usage.reasoning
    portions = {
        "cachedContentTokenCount": usage.cache_read,
        "thoughtsTokenCount": usage.reasoning,
        "toolUsePromptTokenCount": usage.tool_input,
    }
    return {
        "promptTokenCount": usage.input + cached,
        "candidatesTokenCount": max(0, usage.output - within),
        **{name: count for name, count in portions.items() if count},
        "totalTokenCount": usage.total,
    }


def write_response(response: Response, model: str) -> dict[str, Json]:
    return write_chunk(response, model, shown(response))


def write_chunk(response: Response, model: str, parts: tuple[Part, ...]) -> dict[str, Json]:
    """The whole answer, or the last chunk of one whose other parts were written before."""
    same = response.issuer == ISSUER
    extra = dict(response.extra) if same else {}
    candidate_extra, others = obj(extra.pop("candidate", {})), items(extra.pop("candidates", []))
    raw = response.finish_raw if same else _REASONS[response.finish_reason]
    chunk: dict[str, Json] = {}
    if raw.startswith(BLOCKED):
        chunk["promptFeedback"] = {"blockReason": raw.removeprefix(BLOCKED)}
    else:
        content = {**_content(write_answered(parts, same)), **given(finishReason=raw)}
        chunk["candidates"] = [{**content, "index": 0, **candidate_extra}, *others]
    if response.usage is not None:
        chunk["usageMetadata"] = _write_usage(response.usage)
    chunk |= given(modelVersion=model or response.model, responseId=response.id)
    return overlaid(chunk, extra)


def _content(parts: list[Json]) -> dict[str, Json]:
    return {"content": {"parts": parts, "role": "model"}} if parts else {}


def write_delta(part: Json, model: str) -> dict[str, Json]:
    """A chunk in the middle of a stream."""
    return {"candidates": [{**_content([part]), "index": 0}], **given(modelVersion=model)}


def write_answered(parts: tuple[Part, ...], same: bool) -> list[Json]:
    """Parts for a client. It is shown everybody's thinking, but nobody else's signatures.

    What it shows to Gemini again must be welcome there: calls of others are told as such.
    """
    written: list[Json] = []
    for part in parts if same else signed(parts):
        if isinstance(part, Reasoning):
            if part.text or (part.issuer == ISSUER and part.signature):
                written.append(write_thought(part))
        elif is_welcome(part, same):
            written.append(write_part(part, same))
    return written
