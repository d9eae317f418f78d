"""What never became a request, and what is said of it. Knows no sockets and no dialects."""

from __future__ import annotations

HEAD_MAX = 64 * 1024  # bytes of request line and headers


class Unfit(Exception):
    """A status, a sentence, rendered header lines, and a word for machines."""

    def __init__(
        self, status: int, why: str, headers: bytes = b"", kind: str = "invalid_request"
    ) -> None:
        super().__init__(why)
        self.status = status
        self.why = why
        self.headers = headers
        self.kind = kind


NONSENSE = Unfit(400, "this is not HTTP/1.1")
LATE = Unfit(408, "the request took too long to arrive")
LONG_HEAD = Unfit(431, f"the headers are larger than {HEAD_MAX} bytes")
BROKEN = Unfit(500, "the gateway itself failed; its log says how", kind="internal")
SOON = b"retry-after: 1\r\n"
# Another worker or replica is there at once.
STOPPED = Unfit(503, "the gateway was stopped; ask again", SOON, "stopped")


# Those that are raised are made anew: an exception holds on to every frame it was raised through.


def crowded() -> Unfit:
    """Who is inside is served; places come free as those leave."""
    return Unfit(503, "all connections are taken; ask again", SOON, "crowded")


def no_proxy() -> Unfit:
    return Unfit(400, "CONNECT is asked of proxies, and this is none")


def too_large(most: int) -> Unfit:
    return Unfit(413, f"the body is larger than {most} bytes")
