"""A stream of a model that was asked otherwise than its client did, written as that one asked."""

from __future__ import annotations

from understudy.dialects.base import StreamWriter
from understudy.messages.bends import Bends, Undoing
from understudy.messages.response import Event


class Unbent:
    """Writes as another writer does. See `StreamWriter`."""

    def __init__(self, writer: StreamWriter, bends: Bends) -> None:
        self._writer = writer
        self._undoing = Undoing(bends)

    def write_event(self, event: Event) -> bytes:
        return b"".join(map(self._writer.write_event, self._undoing.events([event])))

    def write_error(self, status: int, message: str, kind: str) -> bytes:
        return self._writer.write_error(status, message, kind)
