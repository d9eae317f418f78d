"""What becomes of a stream's bytes between a target and a client. No sockets, no time.

Everything up to the first content is held: until then the chain may go on to somebody else. From
there on bytes go through as they came where both sides speak alike (`Alike`), else event by event
through the neutral types (`Translated`).
"""

from __future__ import annotations

from typing import Protocol

from understudy.core.errors import ProviderError
from understudy.dialects.base import (
    Garbled,
    StreamReader,
    StreamWriter,
    Truncated,
    WireError,
)
from understudy.dialects.sse import MAX_LINE
from understudy.gateway.events import Events
from understudy.gateway.glance import content_in
from understudy.gateway.scan import MARKS, Scan
from understudy.messages.response import Event, Response, Usage, is_content
from understudy.providers.http import HttpProvider

BITE = 512  # bytes read at a time while looking for the first content


class Flow(Protocol):
    """One stream on its way. Methods raise what is wrong with the stream."""

    @property
    def first(self) -> bytes:
        """What was held, as the client gets it; complete once `hold` said so."""

    @property
    def usage(self) -> Usage | None: ...

    @property
    def alive(self) -> bool:
        """Was the piece passed on last any progress?"""

    @property
    def done(self) -> bool:
        """Nothing that matters can follow, though the connection may still be open."""

    @property
    def whole(self) -> bool:
        """The connection breaks, or is silent: had everything come that matters?"""

    def hold(self, data: bytes) -> bool:
        """One more piece from before the content; is the first content in hand now?"""

    def end(self) -> None:
        """The stream ended while it was held: as an answer, or this raises."""

    def passed(self, data: bytes) -> bytes:
        """A piece from after the first content, as the client gets it."""

    def over(self) -> bytes:
        """The stream ended after its content: as it should, or this raises. What is still due."""

    def parting(self, status: int, message: str, kind: str) -> bytes:
        """The last words to a client whose stream broke."""


class Alike:
    """Bytes through, in whole events: the client speaks the target's dialect.

    Half an event is of no use to a client, and nothing could be said behind it: if the stream
    breaks there, the client must be able to read our error.
    """

    usage: Usage | None = None
    done = False
    alive = False
    _reader: StreamReader | None = None  # made when a glance does not tell
    _size = 0
    _due = b""  # the stream ended within an event, and that one counts

    def __init__(self, provider: HttpProvider, model: str) -> None:
        self._provider = provider
        self._model = model
        self._scan = Scan(provider.dialect.name)
        self._events = Events(MARKS[provider.dialect.name].breaks)
        self._held: list[bytes] = []

    @property
    def first(self) -> bytes:
        held = self._held
        return held[0] if len(held) == 1 else b"".join(held)

    def hold(self, data: bytes) -> bool:
        self._size += len(data)
        events = self._events.feed(data)
        if events:
            self._held.append(events)
            if not self._plain and self._content(events):
                self._commit()
                return True
        if self._size > MAX_LINE:
            raise Garbled(f"more than {MAX_LINE} bytes without content")
        return False

    @property
    def _plain(self) -> bool:
        """Is this a plain answer to a streaming request? Then it is one event, at its end."""
        first = self._held[0].lstrip()[:1]
        return first in (b"{", b"[") and self._provider.dialect.name != "ollama"

    def _content(self, data: bytes) -> bool:
        reader = self._reader
        if reader is None:
            seen = content_in(self._provider.dialect.name, data)
            if seen is not None:
                return seen
            reader, data = self._read(), self.first
        if _fed(reader, data):
            return True
        if reader.failure is not None:
            raise reader.failure
        return False

    def _read(self) -> StreamReader:
        self._reader = self._provider.dialect.reader()
        return self._reader

    def end(self) -> None:
        reader, rest, framed = self._reader, self._events.take(), bool(self._held)
        self._held.append(rest)
        if reader is None:
            reader, rest = self._read(), self.first
        events = [*reader.feed(rest), *reader.end()]
        if reader.failure is not None:
            raise reader.failure
        if not commits(events):
            raise Truncated("the stream ended before any content")
        if self._plain or not framed:
            writer = self._provider.dialect.writer(self._model)
            self._held = [b"".join(writer.write_event(event) for event in events)]
        self._commit()

    def _commit(self) -> None:
        first = self.first
        self._scan.feed(first)
        self.done = self._scan.ended
        if self._scan.garbled:
            self.done = True
            first = first[: self._scan.good]
            if not _fed(self._provider.dialect.reader(), first):
                raise Garbled("an event that is none before any content")
        self._held = [self._provider.clear_body(first) if self._scan.error else first]

    def passed(self, data: bytes) -> bytes:
        scan = self._scan
        data = self._events.feed(data)
        if not data:
            self.alive = self._events.speaks
            return b""
        scan.feed(data)
        self.alive = scan.alive
        if scan.garbled:
            self.done = True
            data = data[: scan.good]
        elif scan.over:
            self.done = scan.ended
        # An upstream's last words go through as they came, but never with our key in them.
        return self._provider.clear_body(data) if scan.error else data

    @property
    def whole(self) -> bool:
        self._settle()
        return self._scan.whole

    def _settle(self) -> None:
        """Nothing more comes: look at what there is of an event."""
        rest = self._events.take()
        if rest and not self._scan.over:
            self._scan.close(rest)
            self._due = rest

    def over(self) -> bytes:
        self._settle()
        if self._scan.error:
            raise WireError(self._scan.error)
        if self._scan.garbled:
            raise Garbled("an event that is none")
        if not self._scan.complete:
            raise Truncated("the stream ended without its end mark")
        self.usage = self._scan.usage(self._provider.dialect.reader()) if self._scan.used else None
        return self._due

    def parting(self, status: int, message: str, kind: str) -> bytes:
        """Not ours where the upstream's own last words went through, or can be told."""
        scan = self._scan
        told = not (scan.garbled or self._due)
        if scan.error and (told or scan.words):
            return self._provider.clear_body(scan.words)
        return self._provider.dialect.writer(self._model).write_error(status, message, kind)


class Translated:
    """Event by event: the client speaks another dialect."""

    __slots__ = ("_complete", "_reader", "_size", "_writer", "alive", "first", "usage")

    def __init__(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._size = 0
        self._complete = False
        self.first = b""
        self.usage: Usage | None = None
        self.alive = False

    @property
    def done(self) -> bool:
        return self._complete or self._reader.failure is not None

    @property
    def whole(self) -> bool:
        return self._complete or self._reader.finished

    def hold(self, data: bytes) -> bool:
        before = self._reader.beats
        events = self._reader.feed(data)
        content = commits(events) or self._reader.beats - before > len(events)
        self.first += self._written(events)
        if self._reader.failure is not None and not content:
            raise self._reader.failure
        self._size += len(data)
        if self._size > MAX_LINE and not content:
            raise Garbled(f"more than {MAX_LINE} bytes without content")
        return content

    def end(self) -> None:
        events = self._reader.end()
        if self._reader.failure is not None:
            raise self._reader.failure
        if not commits(events):
            raise Truncated("the stream ended before any content")
        self.first += self._written(events)

    def passed(self, data: bytes) -> bytes:
        before = self._reader.beats
        events = self._reader.feed(data)
        self.alive = bool(events) or self._reader.beats > before
        return self._written(events)

    def over(self) -> bytes:
        rest = b"" if self.done else self._written(self._reader.end())
        if self._reader.failure is not None:
            raise self._reader.failure
        if not self._complete:
            raise Truncated("the stream ended without its end mark")
        return rest

    def parting(self, status: int, message: str, kind: str) -> bytes:
        return self._writer.write_error(status, message, kind)

    def _written(self, events: list[Event]) -> bytes:
        for event in events:
            if isinstance(event, Response):
                self._complete = True
                self.usage = event.usage
        return b"".join(map(self._writer.write_event, events))


def _fed(reader: StreamReader, data: bytes) -> bool:
    """Read on until the first content, and no further: the rest is not for us to read."""
    for at in range(0, len(data), BITE):
        before = reader.beats
        events = reader.feed(data[at : at + BITE])
        # More beats than events: pieces of a tool call. Blank text beats too, but commits nobody.
        if commits(events) or reader.beats - before > len(events):
            return True
        if reader.failure is not None:
            return False
    return False


def commits(events: list[Event]) -> bool:
    """Is the first content here? A finished answer without any is empty, not content."""
    for event in events:
        if isinstance(event, Response):
            if reason := event.blank:
                raise ProviderError(event.void, message=reason, billing="maybe_billed")
            return True
        if is_content(event):
            return True
    return False
