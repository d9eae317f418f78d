"""What never became a request, and what is said of it. Knows no sockets and no dialects."""

from __future__ import annotations

HEAD_MAX = 64 * 1024  # bytes of request line and headers


class Unfit(Exception):
    """A status, a sentence, and rendered header lines."""

    def __init__(self, status: int, why: str, headers: bytes = b"") -> None:
        super().__init__(why)
        self.status = status
        self.why = why
        self.headers = headers


NONSENSE = Unfit(400, "this is not HTTP/1.1")
LATE = Unfit(408, "the request took too long to arrive")
LONG_HEAD = Unfit(431, f"the headers are larger than {HEAD_MAX} bytes")
# Another worker or replica is there at once.
STOPPED = Unfit(503, "the gateway was stopped; ask again", b"retry-after: 1\r\n")


def no_proxy() -> Unfit:
    return Unfit(400, "CONNECT is asked of proxies, and this is none")


def too_large(most: int) -> Unfit:
    return Unfit(413, f"the body is larger than {most} bytes")
