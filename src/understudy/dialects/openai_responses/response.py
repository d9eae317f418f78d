"""A whole Responses answer: its output items become parts, its echo of the request `extra`."""

from __future__ import annotations

from understudy.dialects.base import Garbled
from understudy.dialects.error_body import error_in, wire_error
from understudy.dialects.json_access import Wire, decode, items, obj, text, whole
from understudy.dialects.openai_responses.items import (
    ISSUER,
    place_of,
    plain,
    read_item,
    refusal_text,
    refused,
    write_output,
)
from understudy.messages.parts import NO_EXTRA, Extra, Json, Part, ToolCall
from understudy.messages.response import FinishReason, Response, Usage

UNNAMED = "resp_understudy"  # the id of an answer whose vendor gave none

# What the API echoes of the request; SDKs expect the fields to be there.
ECHO: Wire = {
    "object": "response",
    "created_at": 0,
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "store": False,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "truncation": "disabled",
}
_KNOWN = frozenset(("id", "model", "output", "usage", "status", "error", "incomplete_details"))
_CUT: dict[str, FinishReason] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
}


def read_response(body: bytes) -> Response:
    """Raises WireError for an error or a failed run, Garbled for anything that is no answer."""
    value = decode(body)
    wire = obj(value)
    if error_in(value) or wire.get("status") == "failed":
        raise wire_error(body, value)
    if "output" not in wire:
        raise Garbled("an answer without output")
    return read_answer(wire)


def read_answer(wire: Wire) -> Response:
    output = [obj(item) for item in items(wire.get("output"))]
    found = text(wire.get("id"))
    parts = tuple(_read_parts(output, found))
    raw = _raw_finish(wire)
    return Response(
        parts=parts,
        finish_reason=_finish(raw, any(isinstance(part, ToolCall) for part in parts)),
        usage=read_usage(obj(wire.get("usage"))),
        model=text(wire.get("model")),
        refusal="".join(map(refusal_text, output)),
        id=found,
        finish_raw=raw,
        issuer=ISSUER,
        extra=_kept(wire),
    )


def _read_parts(output: list[Wire], place: str) -> list[Part]:
    parts: list[Part] = []
    for index, item in enumerate(output):
        part = read_item(item, place, index)
        if part is None or (isinstance(part, ToolCall) and not part.name):
            continue
        again = write_output(plain(part), place_of(place, index), same=True)
        parts.append(plain(part) if again == item else part)
    return parts


def _raw_finish(wire: Wire) -> str:
    status = text(wire.get("status"))
    reason = text(obj(wire.get("incomplete_details")).get("reason"))
    return f"{status}:{reason}" if status == "incomplete" and reason else status


def _finish(raw: str, called: bool) -> FinishReason:
    """This wire has no word for a stop that waits for tools."""
    status, _, reason = raw.partition(":")
    if status == "incomplete":
        return _CUT.get(reason, "other")
    if status != "completed":
        return "other"
    return "tool_calls" if called else "stop"


def _kept(wire: Wire) -> Extra:
    kept = {
        key: value
        for key, value in wire.items()
        if key not in _KNOWN and value is not None and ECHO.get(key) != value
    }
    return kept or NO_EXTRA


def read_usage(usage: Wire) -> Usage | None:
    sent, received = whole(usage.get("input_tokens")), whole(usage.get("output_tokens"))
    if sent is None and received is None:
        return None
    before, after = obj(usage.get("input_tokens_details")), obj(usage.get("output_tokens_details"))
    return Usage(
        input=sent or 0,
        output=received or 0,
        cache_read=whole(before.get("cached_tokens")) or 0,
        cache_write=whole(before.get("cache_write_tokens")) or 0,
        reasoning=whole(after.get("reasoning_tokens")) or 0,
    )


def write_response(response: Response, model: str) -> Wire:
    return envelope(response, model, write_items(response))


def write_items(response: Response) -> list[Wire]:
    answer = response.id or UNNAMED
    same = response.issuer == ISSUER
    written: list[Wire] = []
    for part in response.parts:
        item = write_output(part, place_of(answer, len(written)), same)
        if item is not None:
            written.append(item)
    if response.refusal and not any(map(refusal_text, written)):
        written.append(refused(response.refusal, place_of(answer, len(written))))
    return written


def envelope(response: Response, model: str, output: list[Wire]) -> Wire:
    same = response.issuer == ISSUER
    status, _, reason = raw_word(response).partition(":")
    return {
        "id": response.id or UNNAMED,
        **ECHO,
        **(response.extra if same else {}),
        "status": status,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "model": model,
        "output": list[Json](output),
        "usage": write_usage(response.usage) if response.usage else None,
    }


_WORDS: dict[FinishReason, str] = {
    "stop": "completed",
    "tool_calls": "completed",
    "length": "incomplete:max_output_tokens",
    "content_filter": "incomplete:content_filter",
    "other": "completed",
}


def raw_word(response: Response) -> str:
    """The wire's own word if it was this wire's and still holds; ours otherwise."""
    meant = _finish(response.finish_raw, bool(response.tool_calls))
    if response.issuer == ISSUER and response.finish_raw and meant == response.finish_reason:
        return response.finish_raw
    return _WORDS[response.finish_reason]


def write_usage(usage: Usage) -> Wire:
    """Here the cached tokens are among the input, and thinking is among the output."""
    return {
        "input_tokens": usage.total_input,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read,
            **({"cache_write_tokens": usage.cache_write} if usage.cache_write else {}),
        },
        "output_tokens": usage.total_output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total,
    }
