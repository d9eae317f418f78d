"""Errors as the OpenAI-like world writes them: told apart from answers, and their sentence.

Knows the shapes, not their meaning: what an error is called in our taxonomy is decided elsewhere.
"""

from __future__ import annotations

from understudy.core.answers import FAILED_ENDS
from understudy.dialects.base import Garbled, WireError
from understudy.dialects.json_access import decode, items, obj, whole
from understudy.dialects.sse import Frames
from understudy.messages.parts import Json

# Where the sentence is, in order of preference; a value may be text, an object or a list again.
_SENTENCES = (
    "message",
    "Message",  # AWS
    "error",
    "detail",
    "details",
    "errors",
    "msg",
    "error_message",
    "reason",
    "response",
    "choices",  # OpenRouter, see `nested_error`
)
_LONGEST = 2000  # characters of a sentence; some gateways repeat the whole request
_DEEPEST = 6
_SHORT = 300  # bytes of a body that is no JSON: a proxy's one line


def error_in(value: Json) -> bool:
    """Is this an error object? `"error": null` beside an answer is not."""
    if isinstance(value, list):
        return bool(value) and error_in(value[0])
    body = obj(value)
    if body.get("error"):
        return True
    if body.get("object") == "error" or body.get("type") == "error":
        return True
    return "choices" not in body and "output" not in body and bool(sentence(body))


def wire_error(payload: bytes, value: Json) -> WireError:
    """The error of this payload, with the status it names, if any."""
    body = obj(value[0]) if isinstance(value, list) and value else obj(value)
    inner = obj(body.get("error"))
    named = (inner.get("status_code"), inner.get("code"), inner.get("status"))
    outer = (body.get("status_code"), body.get("code"), body.get("status"))
    return WireError(payload, next((s for s in map(_status, (*named, *outer)) if s), None))


def _status(value: Json) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3:
        value = int(value)
    found = whole(value)
    return found if found is not None and 400 <= found <= 599 else None


def read_error(body: bytes) -> str:
    """The human sentence of an error body, "" if there is none; never raises."""
    for payload in (body, *_framed(body)):
        try:
            value = decode(payload)
        except Garbled:
            continue
        return sentence(value) or _of_choice(obj(value).get("choices"))
    plain = body[:_SHORT].decode("utf-8", "replace").strip()
    return "" if plain[:1] in ("<", "{", "[") else plain.partition("\n")[0].strip()


def _framed(body: bytes) -> list[bytes]:
    """Some servers frame even an error as an event, because a stream was asked for."""
    if not body.lstrip().startswith((b"data:", b"event:")):
        return []
    frames = Frames()
    try:
        return [frame.data for frame in (*frames.feed(body), *frames.end())]
    except Garbled:
        return []


def sentence(value: Json, depth: int = 0) -> str:
    """The first sentence in an error value, whatever its shape."""
    if isinstance(value, str):
        return value.strip()[:_LONGEST]
    if depth > _DEEPEST:
        return ""
    if isinstance(value, list):
        return next(filter(None, (sentence(item, depth + 1) for item in value[:5])), "")
    body = obj(value)
    found = (sentence(body[key], depth + 1) for key in _SENTENCES if key in body)
    return next(filter(None, found), "")


def write_error(status: int, message: str, kind: str) -> dict[str, Json]:
    """The body OpenAI itself sends; clients read `message`, `type` and `code`."""
    return {"error": {"message": message, "type": _kind(status), "param": None, "code": kind}}


_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


def _kind(status: int) -> str:
    return _KINDS.get(status, "invalid_request_error" if status < 500 else "server_error")


def nested_error(choices: Json) -> bool:
    """OpenRouter puts an upstream's failure into the choice, under status 200; others have only a
    word for an answer that broke off."""
    return bool(_of_choice(choices))


def _of_choice(choices: Json) -> str:
    """The failure a choice tells of, never what it answered; "" if none does."""
    for choice in map(obj, items(choices)):
        reason = choice.get("finish_reason")
        if choice.get("error") or reason in FAILED_ENDS:
            return sentence(choice.get("error")) or f"the answer broke off: {reason or 'error'}"
    return ""
