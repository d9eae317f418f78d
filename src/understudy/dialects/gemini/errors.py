"""Error bodies of Google's APIs. The status decides their word; our own rides as the reason."""

from __future__ import annotations

from understudy.messages.parts import Json

_WORDS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def write_error(status: int, message: str, kind: str) -> dict[str, Json]:
    word = _WORDS.get(status, "INTERNAL" if status >= 500 else "FAILED_PRECONDITION")
    info: dict[str, Json] = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": kind.upper(),
        "domain": "understudy",
    }
    error: dict[str, Json] = {"code": status, "message": message, "status": word}
    return {"error": {**error, "details": [info]}}
