"""What a client's head asks of the gateway itself: by which key, under which id and limits."""

from __future__ import annotations

from understudy.gateway.http import Request

ID_MOST = 128  # characters of a client's own id


class Wishes:
    """Read once from each head; requests that say the same share it. Holds keys: never shown."""

    __slots__ = ("id", "policy", "secrets", "timeout", "trace")

    def __init__(self, request: Request) -> None:
        self.secrets = _secrets(request)
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


def _secrets(request: Request) -> tuple[str, ...]:
    """What may be the client's key, wherever its SDK puts it (contract G7).

    Clients send two: a key where their dialect has it, and a stale one of their environment.
    """
    bearer = request.header(b"authorization")
    found = (
        bearer[7:].strip() if bearer[:7].lower() == "bearer " else "",
        request.header(b"x-api-key"),
        request.header(b"x-goog-api-key"),
        request.header(b"api-key"),
        request.parameter("key"),
    )
    return tuple(secret for secret in found if secret)


def _id(given: str) -> str:
    """The client's own id if it is a sane one, else ""."""
    return given if len(given) <= ID_MOST and given.isascii() and given.isprintable() else ""
