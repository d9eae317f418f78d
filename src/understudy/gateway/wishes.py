"""What a client's head asks of the gateway itself: by which key, under which id and limits."""

from __future__ import annotations

from understudy.gateway.http import Request

ID_MOST = 128  # characters of a client's own id


class Wishes:
    """Read once from each head; requests that say the same share it. Holds a key: never shown."""

    __slots__ = ("id", "policy", "secret", "timeout", "trace")

    def __init__(self, request: Request) -> None:
        self.secret = _secret(request)
        self.id = _id(request.header(b"x-request-id"))
        self.policy = request.header(b"x-understudy-policy")
        self.timeout = request.header(b"x-understudy-timeout")  # as it was written
        self.trace = request.header(b"traceparent")


def wishes_of(request: Request) -> Wishes:
    head = request.head
    known = head.wishes
    if known is None:
        known = head.wishes = Wishes(request)
    return known


def _secret(request: Request) -> str:
    """The client's key, wherever its SDK puts it (contract G7)."""
    bearer = request.header(b"authorization")
    if bearer[:7].lower() == "bearer ":
        return bearer[7:].strip()
    return (
        request.header(b"x-api-key")
        or request.header(b"x-goog-api-key")
        or request.header(b"api-key")
        or request.parameter("key")
    )


def _id(given: str) -> str:
    """The client's own id if it is a sane one, else ""."""
    return given if len(given) <= ID_MOST and given.isascii() and given.isprintable() else ""
