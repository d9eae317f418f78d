"""What every stream reader does with bytes, whatever they mean: once over, it stays so."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from understudy.dialects.base import Garbled, WireError
from understudy.dialects.json_access import Halves
from understudy.messages.response import Event


@dataclass(slots=True)
class Fed(ABC):
    """See `StreamReader`. A framing says how bytes are taken apart.

    `beats` counts the frames that carried content, pieces of tool calls included, which give no
    event until they are whole: a stream that beats is alive.
    """

    failure: WireError | None = None
    done: bool = False
    beats: int = 0
    _broken: Garbled | None = None
    _started: bool = False  # something of this wire was understood
    _halves: Halves = field(default_factory=Halves)

    @property
    def finished(self) -> bool:
        return self.done

    def feed(self, data: bytes) -> list[Event]:
        if self._broken:
            raise self._broken
        events: list[Event] = []
        if self.done or self.failure:
            return events
        try:
            self._digest(data, events)
        except Garbled as error:
            self._broken = error
            if not events:
                raise
        return events  # what came before the nonsense is still good

    def end(self) -> list[Event]:
        if self._broken:
            raise self._broken
        events: list[Event] = []
        if not (self.done or self.failure):
            self._conclude(events)
        return events

    @abstractmethod
    def _digest(self, data: bytes, events: list[Event]) -> None:
        """Append the events these bytes finish; note the terminator or an error."""

    @abstractmethod
    def _conclude(self, events: list[Event]) -> None:
        """The body is over: append what was still due, or raise Truncated or Garbled."""
