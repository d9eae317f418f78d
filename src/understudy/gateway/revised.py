"""A stream written otherwise than its model told it, as its client wants it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from understudy.dialects.base import StreamWriter
from understudy.messages.response import Event

Revision = Callable[[list[Event]], list[Event]]


class Revised:
    """Writes as another writer does what is left of the events. See `StreamWriter`."""

    def __init__(self, writer: StreamWriter, revisions: Sequence[Revision]) -> None:
        self._writer = writer
        self._revisions = revisions

    def write_event(self, event: Event) -> bytes:
        events = [event]
        for revise in self._revisions:
            events = revise(events)
        return b"".join(map(self._writer.write_event, events))

    def write_error(self, status: int, message: str, kind: str) -> bytes:
        return self._writer.write_error(status, message, kind)
