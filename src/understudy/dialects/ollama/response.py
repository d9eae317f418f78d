"""Answers of /api/chat, and of /api/generate where one comes; chunks are answers in little."""

from __future__ import annotations

from understudy.core.errors import InvalidRequest
from understudy.dialects.base import Garbled
from understudy.dialects.error_body import sentence, wire_error
from understudy.dialects.extras import kept
from understudy.dialects.json_access import Node, decode, excerpt, obj, text, whole
from understudy.dialects.ollama.messages import ISSUER, read_parts, write_parts
from understudy.dialects.telling import shown
from understudy.messages.parts import NO_EXTRA, Json, Part, Reasoning, Text, ToolCall
from understudy.messages.response import FinishReason, Response, Usage

_REASONS = {"stop": "stop", "tool_calls": "stop", "length": "length", "content_filter": "stop"}
_KNOWN = frozenset(
    (
        "model",
        "message",
        "response",
        "thinking",
        "done",
        "done_reason",
        "prompt_eval_count",
        "eval_count",
    )
)
_NO_TIME = "1970-01-01T00:00:00Z"  # clients want a time; this code has no clock


def read_response(body: bytes) -> Response:
    value = decode(body)
    chunk = obj(value)
    if is_error(chunk):
        raise wire_error(body, value)
    if not isinstance(value, dict):
        raise Garbled(f"no answer: {excerpt(body)}")
    return response_of(chunk, read_chunk(chunk))


def is_error(chunk: dict[str, Json]) -> bool:
    """Ollama's errors, and those of proxies: a sentence, and nothing that belongs to an answer."""
    if chunk.get("error"):
        return True
    answer = isinstance(chunk.get("message"), dict) or {"response", "done"} & chunk.keys()
    return not answer and bool(sentence(chunk))


def read_chunk(chunk: dict[str, Json], calls: int = 0) -> list[Part]:
    """The parts of an answer or a chunk; `calls` came before it."""
    said = chunk.get("message")
    if said is None:  # /api/generate
        said = {"content": chunk.get("response"), "thinking": chunk.get("thinking")}
    place = f"{text(chunk.get('model'))} {text(chunk.get('created_at'))} {calls}"
    try:
        parts = read_parts(Node(said), place)
    except InvalidRequest:
        return []  # an oddity must not cost the answer
    return [part for part in parts if not isinstance(part, ToolCall) or part.name]


def response_of(chunk: dict[str, Json], parts: list[Part]) -> Response:
    """The answer that ends with this chunk, whose parts were read elsewhere."""
    raw = text(chunk.get("done_reason"))
    untimed = () if chunk.get("created_at") != _NO_TIME else ("created_at",)
    called = any(isinstance(part, ToolCall) for part in parts)
    return Response(
        parts=tuple(parts),
        finish_reason=_finish(raw, called),
        finish_raw=raw,
        usage=_read_usage(chunk),
        model=text(chunk.get("model")),
        issuer=ISSUER,
        extra=kept(chunk, (*_KNOWN, *untimed)),
    )


def _finish(raw: str, called: bool) -> FinishReason:
    match raw:
        case "stop":
            return "tool_calls" if called else "stop"  # the wire has no word for it
        case "length":
            return "length"
    return "other"


def _read_usage(chunk: dict[str, Json]) -> Usage | None:
    prompt, answer = whole(chunk.get("prompt_eval_count")), whole(chunk.get("eval_count"))
    if prompt is None and answer is None:
        return None
    return Usage(prompt or 0, answer or 0)


def write_response(response: Response, model: str) -> dict[str, Json]:
    return write_last(response, model, shown(response))


def write_last(response: Response, model: str, parts: tuple[Part, ...]) -> dict[str, Json]:
    """The whole answer, or the last chunk of one whose other parts were written before."""
    same = response.issuer == ISSUER
    chunk = {**write_chunk(parts, model or response.model, same), "done": True}
    reason = response.finish_raw if same else _REASONS.get(response.finish_reason, "")
    if reason:
        chunk["done_reason"] = reason
    if response.usage is not None:
        chunk["prompt_eval_count"] = response.usage.total_input
        chunk["eval_count"] = response.usage.total_output
    return {**chunk, **(response.extra if same else NO_EXTRA)}


def write_chunk(parts: tuple[Part, ...], model: str, same: bool) -> dict[str, Json]:
    """A chunk. A client is shown everybody's thinking."""
    own = [Reasoning(p.text, ISSUER) if isinstance(p, Reasoning) else p for p in parts]
    visible = [part for part in own if isinstance(part, Text | Reasoning | ToolCall)]
    message: dict[str, Json] = {"role": "assistant", **write_parts(visible, same)}
    return {"model": model, "created_at": _NO_TIME, "message": message, "done": False}
