"""A stream written no further than a stop that its model could not be told of."""

from __future__ import annotations

from understudy.dialects.base import StreamWriter
from understudy.messages.response import Event
from understudy.messages.stops import Cutting, Stops


class Cut:
    """Writes as another writer does. See `StreamWriter`."""

    def __init__(self, writer: StreamWriter, stops: Stops) -> None:
        self._writer = writer
        self._cutting = Cutting(stops)

    def write_event(self, event: Event) -> bytes:
        return b"".join(map(self._writer.write_event, self._cutting.events([event])))

    def write_error(self, status: int, message: str, kind: str) -> bytes:
        return self._writer.write_error(status, message, kind)
