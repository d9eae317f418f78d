"""The seam to the network: a request goes out as bytes, an answer comes back as bytes.

    origin = Origin.from_url("https://api.example.com/v1")
    head = render_head("POST", origin, "/v1/chat/completions", {"authorization": "Bearer ..."})
    answer = await transport.send(Outgoing(origin, head, body), limits)

    whole = await answer.read()              # one way to take the body,
    async for chunk in answer: ...           # another, with backpressure,
    answer.push(sink)                        # or a third: called back, no future per chunk;
                                             # `pause()` and `resume()` are its backpressure
    answer.close()                           # the rest is not wanted: the connection ends now
    answer.finish()                          # no more than an end is missing: let it come

What a transport promises:

- `send` returns when the headers are in hand, or raises `ProviderError` with its billing label.
  It keeps one deadline, `limits.connect` (name lookup and TLS included, waiting for a free
  connection not). The other seconds in `Limits` are for the caller, who cancels: cancelling
  `send`, `read` or an iteration closes the connection at once and leaves nothing behind.
- A request is written once. No redirect is followed and nothing is sent again, except when a
  kept connection proved dead before a byte of the request left.
- A body is unpacked only if its `content-encoding` says so, and never grows past `max_reply`.
- Its connection is free for others as soon as the whole body has arrived, read or not.
- Whoever has an `Answer` reads it to its end, or closes it, or finishes it.

`Pool` (direct) and `Proxied` (through a proxy) are the transports; `route` chooses. Both may be
used from several event loops at once. This module knows values and bytes; it opens no sockets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

from understudy.core.errors import InvalidDSN, InvalidRequest
from understudy.providers.answer import Answer, Sink

__all__ = ["Answer", "Limits", "Origin", "Outgoing", "Sink", "Transport", "render_head"]

PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Origin:
    """Who is spoken to: scheme, host (IPv6 without brackets) and port."""

    scheme: str
    host: str
    port: int
    key: str = field(init=False, repr=False, compare=False)  # a str hashes once, a dataclass anew

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", f"{self.scheme}://{self.host}:{self.port}")

    @classmethod
    def from_url(cls, url: str) -> Origin:
        """The origin of a base URL; its path is somebody else's business."""
        # urlsplit drops tabs and newlines without a word, so they are looked for first.
        if any(char <= " " or char == "\x7f" for char in url):
            raise InvalidDSN("a base URL must not hold blanks or control characters")
        try:
            parts = urlsplit(url)
            host, port = _ascii(parts.hostname or ""), parts.port
        except ValueError as error:
            raise InvalidDSN(f"a base URL that cannot be read: {_cause(error)}") from None
        if parts.scheme not in PORTS:
            raise InvalidDSN(f"a base URL starts with http:// or https://, not {parts.scheme!r}")
        if "@" in parts.netloc:
            raise InvalidDSN("a base URL must not hold a user or a password")
        if not host or port == 0:
            raise InvalidDSN("a base URL needs a host and a port other than 0")
        return cls(parts.scheme, host, port or PORTS[parts.scheme])

    @property
    def authority(self) -> str:
        """As the Host header has it: brackets around IPv6, no default port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS.get(self.scheme) else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"


def _ascii(host: str) -> str:
    # An IPv6 literal has no labels; all else must be a name that a resolver would take.
    return host if ":" in host else host.encode("idna").decode("ascii")


def _cause(error: ValueError) -> str:
    # The codec's own message quotes its input, and a mistyped URL may hold a password.
    return "the host is no domain name" if isinstance(error, UnicodeError) else "bad host or port"


@dataclass(slots=True, eq=False)  # not frozen: one is made for each request, and that costs
class Outgoing:
    """A request as bytes. The head comes from `render_head`, once per target and credential."""

    origin: Origin
    head: bytes = field(repr=False)  # holds the credential
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds and bytes. How long to wait for an answer is for the caller: see `Patience`."""

    connect: float = 5.0  # lookup, TCP and TLS together
    max_reply: int = 64 * 1024 * 1024  # bytes of body, unpacked
    max_head: int = 64 * 1024  # bytes of status line and headers


class Transport(Protocol):
    """Something that can put a request on the network."""

    async def send(self, outgoing: Outgoing, limits: Limits) -> Answer: ...

    async def aclose(self) -> None: ...


# RFC 9110: a token for names and methods; values are visible characters, blanks and tabs.
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
PATH = re.compile(r"/[\x21-\x7e]*")
# How long a message is and where it goes is written by the transport and by nobody else.
FRAMING = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive"}
    | {"te", "trailer", "transfer-encoding", "upgrade"}
)


def render_head(method: str, origin: Origin, path: str, headers: Mapping[str, str]) -> bytes:
    """Request line and headers, all but the content length, checked so that none can be forged."""
    if not TOKEN.fullmatch(method):
        raise InvalidRequest(f"{method!r} is no HTTP method")
    if not PATH.fullmatch(path):
        raise InvalidRequest("a path starts with / and holds no blanks or control characters")
    lines = [f"{method} {path} HTTP/1.1", f"host: {origin.authority}"]
    for name, value in headers.items():
        if not TOKEN.fullmatch(name):
            raise InvalidRequest(f"{name!r} is no header name")
        if name.lower() in FRAMING:
            raise InvalidRequest(f"the header {name!r} is written by the transport")
        if not VALUE.fullmatch(value):
            # The value may be a secret and is not quoted.
            raise InvalidRequest(f"the header {name!r} holds a character that cannot be sent")
        lines.append(f"{name}: {value}")
    return "".join(f"{line}\r\n" for line in lines).encode("latin-1")
