"""What a target does on the wire, as data: the steps of one answer, good or bad.

A step names what is said in any dialect ("content", "error"); `phrases` has the bytes, `server`
carries the steps out. Nothing here does I/O.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

Piece = str | bytes  # the name of a phrase, or literal bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer with its length; `body` is a phrase or literal bytes."""

    status: int = 200
    body: Piece = "answer"
    kind: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    gzipped: bool = False
    padding: int = 0  # blanks before the body, a multiple of 64 KiB
    missing: int = 0  # bytes of the body announced and not sent
    extra: int = 0  # bytes announced that do not exist


@dataclass(frozen=True, slots=True)
class Open:
    """The head of a stream: 200, no length."""

    kind: str = ""  # content type; "" is the dialect's own


@dataclass(frozen=True, slots=True)
class Say:
    """Pieces of a stream, one after the other."""

    pieces: tuple[Piece, ...]
    times: int = 1

    def __init__(self, *pieces: Piece, times: int = 1) -> None:
        object.__setattr__(self, "pieces", pieces)
        object.__setattr__(self, "times", times)


@dataclass(frozen=True, slots=True)
class First:
    """The first so many events of a whole stream."""

    events: int


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes outside any framing."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Drip:
    """A whole answer, byte by byte, with a rest after each."""

    seconds: float
    stream: bool = False


@dataclass(frozen=True, slots=True)
class Rest:
    """Silence for so many seconds."""

    seconds: float


class Ending(Enum):
    """How a connection or an answer is left."""

    END = "the stream is over, as HTTP has it"
    CLOSE = "the connection is closed"
    RESET = "the connection is reset"
    HANG = "nothing more is said until the peer leaves"


END, CLOSE, RESET, HANG = Ending
Step = Reply | Open | Say | First | Raw | Drip | Rest | Ending
Steps = tuple[Step, ...]
GOOD: Steps = (Reply(),)
GOOD_STREAM: Steps = (Open(), Say("content", "rest", "end"), END)
