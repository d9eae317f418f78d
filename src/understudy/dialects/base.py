"""What every dialect can do, and the errors a wire can contain. No I/O, no vendor names.

A dialect is symmetric: `read_` means wire to ours, `write_` ours to wire. Providers use one half,
the gateway the other, and a round trip through both loses nothing the neutral types can say.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from understudy.core.errors import UnderstudyError
from understudy.messages.bends import Bends
from understudy.messages.parts import Json
from understudy.messages.request import Request
from understudy.messages.response import Event, Response


class WireError(UnderstudyError):
    """An error the provider put where an answer should be: in a 200, or inside a stream."""

    def __init__(self, body: bytes, status: int | None = None) -> None:
        super().__init__(body[:200].decode("utf-8", "replace"))
        self.body = body  # the payload as it came, for the classifier
        self.status = status  # a status named inside the payload, if any


class Garbled(UnderstudyError):
    """Bytes that are not this dialect at all: HTML, cut JSON, a line without sense."""


class Truncated(UnderstudyError):
    """A stream that ended without its terminator. Never a finish (contract T6)."""


@dataclass(frozen=True, slots=True)
class Inbound:
    """What a client asked a surface for."""

    model: str
    stream: bool
    request: Request


@dataclass(frozen=True, slots=True)
class Asked:
    """What an answer takes from its question. A dialect has neither clock nor dice."""

    request: Request = field(default_factory=Request)
    id: str = ""  # for an answer whose vendor gave none
    now: int = 0  # seconds since 1970
    foreign: bool = False  # somebody answers who speaks another dialect


UNASKED = Asked()


class StreamReader(Protocol):
    """One answer's bytes, fed as they come. Not shared, not reused.

    `feed` returns the events finished by these bytes, whatever the slicing. An error event sets
    `failure` (events before it are still returned); the terminator sets `done`, and the final
    `Response` is the last event returned with it. `end` is called once when the body is over: it
    returns what was still due, or raises `Truncated` or `Garbled`.
    """

    failure: WireError | None
    done: bool
    beats: int  # frames with content so far, pieces of tool calls included: a sign of life

    @property
    def finished(self) -> bool:
        """Has all come that matters? Asked where a wire has no terminator of its own."""

    def feed(self, data: bytes) -> list[Event]: ...
    def end(self) -> list[Event]: ...


class StreamWriter(Protocol):
    """One answer written as a stream. The first call writes the envelope before the event.

    The final `Response` event writes finish, usage and the dialect's terminator. `write_error`
    writes the dialect's error event and no terminator.
    """

    def write_event(self, event: Event) -> bytes: ...
    def write_error(self, status: int, message: str, kind: str) -> bytes: ...


class Dialect(Protocol):
    """The read/write pairs of one wire format. Stateless; one instance serves everybody."""

    name: str  # also the `issuer` of what it reads
    quirks: frozenset[str]  # of vendors: flags of the constructor
    id_prefix: str  # what the ids of its answers begin with

    def path(self, model: str, stream: bool) -> str:
        """Where requests go, below the base URL; begins with a slash."""

    def is_own(self, body: bytes, model: str) -> bool:
        """May a body of this dialect go to this model as it came? Asked of bytes, and quick.

        Not if its history tells of an answer of another vendor that we translated: what the
        client was shown then is refused where it is taken for the vendor's own (contract M6).
        """

    def read_request(self, body: bytes, model: str = "", stream: bool = False) -> Inbound:
        """Raises InvalidRequest naming the path of the wrong field. Gemini has model and stream
        in the URL: those are the two arguments; other dialects ignore them."""

    def write_request(self, request: Request, model: str, stream: bool) -> dict[str, Json]: ...

    def bends(self, request: Request, model: str) -> Bends:
        """What the written request says otherwise, because this model would refuse it.

        Whoever asks undoes them in the answer.
        """

    def read_response(self, body: bytes) -> Response:
        """Raises WireError for an error payload, Garbled for something else entirely."""

    def write_response(
        self, response: Response, model: str, asked: Asked = UNASKED
    ) -> dict[str, Json]: ...

    def reader(self) -> StreamReader: ...

    def writer(self, model: str, asked: Asked = UNASKED) -> StreamWriter: ...

    def read_error(self, body: bytes) -> str:
        """The human sentence of an error body, "" if there is none; never raises."""

    def write_error(self, status: int, message: str, kind: str) -> dict[str, Json]:
        """An error body in this dialect; `kind` is a short machine word such as a fault."""
