"""Error bodies of the Messages API. The status decides the type; our own word rides as `code`."""

from __future__ import annotations

from understudy.messages.parts import Json

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def write_error(status: int, message: str, kind: str) -> dict[str, Json]:
    named = _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": named, "message": message, "code": kind}}
