"""Answers of the Messages API, read leniently and written whole."""

from __future__ import annotations

from understudy.core.errors import InvalidRequest
from understudy.dialects.anthropic.blocks import ISSUER, read_block, write_block, write_call
from understudy.dialects.base import Garbled
from understudy.dialects.calls import made_up, spelled
from understudy.dialects.error_body import sentence, wire_error
from understudy.dialects.extras import kept
from understudy.dialects.json_access import Node, decode, excerpt, items, obj, text, whole
from understudy.dialects.telling import shown
from understudy.messages.parts import (
    NO_EXTRA,
    Extra,
    Json,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
)
from understudy.messages.response import FinishReason, Response, Usage

_FINISHES: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}  # anything else, `pause_turn` included, is "other"
_STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}  # "other" has no word here: null

_WORDS = {"type", "text"}
_COUNTS = frozenset(
    [
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
    ]
)
_KNOWN = frozenset(("id", "type", "role", "model", "content", "stop_reason", "usage"))
UNNAMED = "msg_understudy"  # the id of an answer whose vendor gave none


def read_response(body: bytes) -> Response:
    value = decode(body)
    message = obj(value)
    if _is_error(message):
        raise wire_error(body, value)
    if not isinstance(value, dict):
        raise Garbled(f"no message: {excerpt(body)}")
    return response_of(message, read_parts(message.get("content"), text(message.get("id"))))


def _is_error(message: dict[str, Json]) -> bool:
    """Anthropic's errors, and those of clouds and proxies: a sentence where content should be."""
    if message.get("type") == "error" or message.get("error"):
        return True
    return not {"content", "stop_reason", "usage"} & message.keys() and bool(sentence(message))


def read_parts(content: Json, place: str) -> list[Part]:
    if isinstance(content, str):
        return [Text(content)] if content else []
    found = (read_answered(block, place, index) for index, block in enumerate(items(content)))
    return [part for part in found if part is not None]


def read_answered(block: Json, *place: str | int) -> Part | None:
    """A block of an answer; None for one without sense or content. `place` seeds an id."""
    if isinstance(block, dict) and block.keys() == _WORDS and block["type"] == "text":
        said = block["text"]
        if isinstance(said, str):  # nothing but words, as most are
            return Text(said, NO_EXTRA) if said else None
    try:
        part = read_block(Node(_identified(block, *place)))
    except InvalidRequest:
        return None  # the rest of the answer is still good
    blank = isinstance(part, Text) and not (part.text or part.extra)
    return None if blank or (isinstance(part, ToolCall) and not part.name) else part


def _identified(block: Json, *place: str | int) -> Json:
    """The same; a client's tool call without an id gets one, as others than Anthropic send it."""
    call = obj(block)
    if call.get("type") != "tool_use" or text(call.get("id")):
        return block
    made = made_up(*place, text(call.get("name")), spelled(call.get("input")))
    return {**call, "id": made}


def response_of(message: dict[str, Json], parts: list[Part]) -> Response:
    """The answer in this envelope, whose `content` was read elsewhere."""
    raw = text(message.get("stop_reason"))
    counts = obj(message.get("usage"))
    extra = dict(kept(message, _KNOWN))
    if odd := kept(counts, _COUNTS):
        extra["usage"] = dict(odd)
    return Response(
        parts=tuple(parts),
        finish_reason=_FINISHES.get(raw, "other"),
        finish_raw=raw,
        usage=_read_usage(counts),
        model=text(message.get("model")),
        id=text(message.get("id")),
        issuer=ISSUER,
        extra=extra or NO_EXTRA,
    )


def _read_usage(counts: dict[str, Json]) -> Usage | None:
    if not counts:
        return None
    return Usage(
        whole(counts.get("input_tokens")) or 0,
        whole(counts.get("output_tokens")) or 0,
        whole(counts.get("cache_read_input_tokens")) or 0,
        whole(counts.get("cache_creation_input_tokens")) or 0,
        cache_apart=True,
    )


def write_usage(usage: Usage | None, extra: Extra = NO_EXTRA) -> dict[str, Json]:
    """Cached tokens beside the input, thinking within the output, as Anthropic counts."""
    told = usage or Usage()
    cached = 0 if told.cache_apart else told.cache_read + told.cache_write
    counts: dict[str, Json] = {
        "input_tokens": max(0, told.input - cached) + told.tool_input,
        "output_tokens": told.total_output,
    }
    if told.cache_read:
        counts["cache_read_input_tokens"] = told.cache_read
    if told.cache_write:
        counts["cache_creation_input_tokens"] = told.cache_write
    return counts | obj(extra.get("usage"))


def write_ending(response: Response) -> dict[str, Json]:
    """Why it stopped, and the fields of the envelope that come with it."""
    same = response.issuer == ISSUER
    raw = response.finish_raw if same else _STOP_REASONS.get(response.finish_reason)
    extra = {k: v for k, v in response.extra.items() if k != "usage"} if same else {}
    return {"stop_reason": raw or None, "stop_sequence": None} | extra


def write_response(response: Response, model: str) -> dict[str, Json]:
    extra = response.extra if response.issuer == ISSUER else NO_EXTRA
    envelope: dict[str, Json] = {
        "id": response.id or UNNAMED,
        "type": "message",
        "role": "assistant",
        "model": model or response.model,
    }
    same = response.issuer == ISSUER
    blocks = (write_answered(part, same) for part in shown(response))
    content: list[Json] = [block for block in blocks if block]
    ending = write_ending(response)
    return {**envelope, "content": content, **ending, "usage": write_usage(response.usage, extra)}


def write_answered(part: Part, same: bool) -> dict[str, Json] | None:
    """A block for a client; None for pictures and files, which Claude does not answer with."""
    match part:
        case Text(text=said):
            extra = part.extra if same else NO_EXTRA
            return {"type": "text", "text": said, **extra} if said else None
        case Reasoning():
            return _write_thinking(part)
        case ToolCall():
            return write_call(part, same)
        case Opaque():
            return write_block(part, same)
    return None


def _write_thinking(part: Reasoning) -> dict[str, Json] | None:
    """A client is shown everybody's thinking, but nobody else's signatures."""
    if part.issuer == ISSUER and (part.signature or part.data):
        return write_block(part, same=True)
    block: dict[str, Json] = {"type": "thinking", "thinking": part.text, "signature": ""}
    return block if part.text else None
