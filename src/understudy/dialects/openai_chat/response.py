"""A whole Chat Completions answer: choice 0 becomes parts, the other choices stay in `extra`."""

from __future__ import annotations

from dataclasses import replace

from understudy.dialects.base import Garbled
from understudy.dialects.blobs import to_base64
from understudy.dialects.error_body import error_in, nested_error, wire_error
from understudy.dialects.json_access import Wire, decode, items, obj, text, whole, without
from understudy.dialects.openai_chat.messages import read_assistant, write_assistant
from understudy.dialects.openai_chat.parts import FIELDS, ISSUER, LEGACY
from understudy.messages.parts import (
    NO_EXTRA,
    Extra,
    File,
    Image,
    Json,
    Part,
    Reasoning,
    ToolCall,
)
from understudy.messages.response import FinishReason, Response, Usage

FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",  # Together
    "eos_token": "stop",  # Hugging Face
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",  # Mistral
    "model_context_window_exceeded": "length",  # Z.ai
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "sensitive": "content_filter",  # Z.ai
}
UNNAMED = "chatcmpl-understudy"  # the id of an answer whose vendor gave none
_TOP = frozenset(("id", "object", "model", "choices", "usage", "x_groq"))
_CHOICE = frozenset(("index", "message", "finish_reason"))
_MESSAGE = FIELDS | {"refusal"}
_USAGE = frozenset(
    [
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "prompt_tokens_details",
        "completion_tokens_details",
    ]
)


def read_response(body: bytes) -> Response:
    """Raises WireError for an error, Garbled for anything that is no answer."""
    value = decode(body)
    wire = obj(value)
    if error_in(value) or nested_error(wire.get("choices")):
        raise wire_error(body, value)
    if "choices" not in wire:
        raise Garbled("an answer without choices")
    return read_answer(wire)


def read_answer(wire: Wire) -> Response:
    choices = [obj(choice) for choice in items(wire.get("choices"))]
    choice = next((c for c in choices if not c.get("index")), choices[0] if choices else {})
    message = obj(choice.get("message"))
    found = text(wire.get("id"))
    raw = text(choice.get("finish_reason"))
    return Response(
        parts=read_assistant(message, found),
        finish_reason=FINISH.get(raw, "other"),
        usage=read_usage(wire),
        model=text(wire.get("model")),
        refusal=text(message.get("refusal")),
        id=found,
        finish_raw=raw,
        issuer=ISSUER,
        extra=_kept(wire, choices, message),
    )


def _kept(wire: Wire, choices: list[Wire], message: Wire) -> Extra:
    """What our own writing would not say: as it came, whole choices included."""
    kept: Wire = {k: v for k, v in wire.items() if k not in _TOP and v is not None}
    if kept.get("created") == 0:
        del kept["created"]
    odd = any(_said(choices[0], _CHOICE)) or any(_said(message, _MESSAGE)) if choices else False
    if len(choices) > 1 or odd:
        kept["choices"] = wire["choices"]
    if obj(wire.get("usage")).keys() - _USAGE:
        kept["usage"] = wire["usage"]
    return kept or NO_EXTRA


def _said(wire: Wire, known: frozenset[str]) -> list[Json]:
    return [value for key, value in wire.items() if key not in known and value]


def read_usage(wire: Wire) -> Usage | None:
    """The last word of an answer or a chunk on tokens; Groq's streams put it into a drawer."""
    usage = obj(wire.get("usage")) or obj(obj(wire.get("x_groq")).get("usage"))
    sent, received = whole(usage.get("prompt_tokens")), whole(usage.get("completion_tokens"))
    if sent is None and received is None:
        return None
    before = obj(usage.get("prompt_tokens_details"))
    after = obj(usage.get("completion_tokens_details"))
    hits = (before.get("cached_tokens"), usage.get("cached_tokens"))
    hits_elsewhere = (usage.get("prompt_cache_hit_tokens"), usage.get("cache_read_input_tokens"))
    writes = (before.get("cache_write_tokens"), usage.get("cache_creation_input_tokens"))
    thoughts = (after.get("reasoning_tokens"), usage.get("reasoning_tokens"))
    cached = _first(*hits, *hits_elsewhere)
    return Usage(
        input=sent or 0,
        output=received or 0,
        cache_read=cached,
        cache_write=_first(*writes),
        reasoning=_first(*thoughts),
        cache_apart=cached > (sent or 0),  # as with Grok at Azure: they cannot be among them
    )


def _first(*counts: Json) -> int:
    return next((n for n in map(whole, counts) if n), 0)


def write_response(response: Response, model: str, legacy: bool = False) -> Wire:
    response = in_old_style(response) if legacy else response
    same = response.issuer == ISSUER
    kept = without(response.extra, ("choices", "usage")) if same else NO_EXTRA
    body: Wire = {
        "id": response.id or UNNAMED,
        "object": "chat.completion",
        "created": 0,
        **kept,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": write_message(response),
                "logprobs": None,
                "finish_reason": finish_word(response),
            }
        ],
    }
    if response.usage:
        body["usage"] = write_usage(response.usage)
    return body


def in_old_style(response: Response) -> Response:
    """The answer for a client that asked with `functions`: of calls it knows one, without an id.

    The model asks for the others again when it is told the result of the first.
    """
    if not response.tool_calls:
        return response
    first = replace(response.tool_calls[0], issuer=ISSUER, extra={"type": LEGACY})
    rest = tuple(part for part in response.parts if not isinstance(part, ToolCall))
    raw = LEGACY if response.finish_reason == "tool_calls" else response.finish_raw
    return replace(response, parts=(*rest, first), finish_raw=raw)


def write_message(response: Response) -> Wire:
    same = response.issuer == ISSUER
    if response.text and len(response.parts) == 1:  # nothing but words, as most are
        said: Wire = {"content": response.text, "role": "assistant"}
        return said | {"refusal": response.refusal or None}
    parts = response.parts if same else tuple(map(_unbound, response.parts))
    wire = {"content": None, **write_assistant(parts, same=True)}
    if not same:
        wire["content"] = response.text or None  # here an answer's words are one string
    wire["refusal"] = response.refusal or None
    foreign = [p.text for p in parts if isinstance(p, Reasoning) and p.issuer != ISSUER]
    if any(foreign):  # thinking is shown to whoever reads the answer, bound to nobody
        wire["reasoning_content"] = "".join(foreign)
    sound = next((p for p in parts if isinstance(p, File) and "audio" in p.extra), None)
    if sound:
        wire["audio"] = {**obj(sound.extra["audio"]), "data": to_base64(sound.data)}
    return wire


def _unbound(part: Part) -> Part:
    """Another dialect's extras are its own business."""
    return replace(part, extra=NO_EXTRA) if isinstance(part, Image | File) else part


def finish_word(response: Response) -> str | None:
    """The wire's own word if it was this wire's; ours otherwise."""
    raw = response.finish_raw
    own = response.issuer == ISSUER or raw == LEGACY
    if own and FINISH.get(raw, "other") == response.finish_reason:
        return raw or None
    return "stop" if response.finish_reason == "other" else response.finish_reason


def write_usage(usage: Usage) -> Wire:
    """Here the cached tokens are among the prompt's, and thinking is among the output."""
    return {
        "prompt_tokens": usage.total_input,
        "completion_tokens": usage.total_output,
        "total_tokens": usage.total,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read,
            **({"cache_write_tokens": usage.cache_write} if usage.cache_write else {}),
        },
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }
