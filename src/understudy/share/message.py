"""What processes tell each other, as bytes. Durations only: clocks of hosts differ by minutes."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

LARGEST = 8 * 1024  # bytes; more was not written by us
STAMP_MOST = 2**53  # what a double, and so a script in Redis, can hold

Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
Text = Annotated[str, msgspec.Meta(max_length=2000)]


class Message(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A bench, a clearing, or a newcomer's question what is known. Frozen, like all values."""

    kind: Literal["bench", "clear", "hello"]
    origin: Text  # who learned it: one life of one process
    stamp: Annotated[int, msgspec.Meta(ge=0, le=STAMP_MOST)]  # its number there
    sender: Text = ""  # who passes it on, mostly the origin
    sent: float | None = None  # the sender's own clock; compared with itself only
    key: Text = ""
    host: Text = ""  # the origin's, for people
    left: Seconds | None = None  # how long it matters; None: for ever
    age: Seconds = 0.0  # seconds since it was learned
    head: Seconds = 0.0  # seconds that whoever learned it is ahead of the others at its end
    fault: Text = ""
    scope: Text = "target"
    source: Text = "rule"  # of the bench's length, or of the clearing
    why: Text = ""
    rounds: Annotated[int, msgspec.Meta(ge=0, le=10**9)] = 0

    @property
    def rank(self) -> tuple[int, str]:
        """Its place in the order of all that was ever learned about a key."""
        return self.stamp, self.origin


def encode(message: Message) -> bytes:
    return msgspec.json.encode(message)


def decode(data: bytes) -> Message | None:
    """None for what is no message, or of a kind that is not known here."""
    if len(data) > LARGEST:
        return None
    try:
        return msgspec.json.decode(data, type=Message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
