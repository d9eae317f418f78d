"""What readers of JSON payloads share, however these are framed: one by one, and the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from understudy.dialects.base import Garbled, Truncated, WireError
from understudy.messages.response import Event


@dataclass(slots=True)
class PayloadReader(ABC):
    """See `StreamReader`. A wire says how payloads are split, what they mean, how it ends."""

    failure: WireError | None = None
    done: bool = False
    beats: int = 0
    _broken: Garbled | None = None
    _started: bool = False  # a payload of this wire was understood

    def feed(self, data: bytes) -> list[Event]:
        if self._broken:
            raise self._broken
        events: list[Event] = []
        if self.done or self.failure:
            return events
        try:
            self._read(self._split(data), events)
        except Garbled as error:
            self._broken = error
            if not events:
                raise
        return events  # what came before the nonsense is still good

    def end(self) -> list[Event]:
        if self._broken:
            raise self._broken
        events: list[Event] = []
        if self.done or self.failure:
            return events
        due = self._rest()
        try:
            self._read(due, events)
        except Garbled as error:
            if self._started:
                raise Truncated(f"the stream was cut: {error}") from error
            raise
        if not (self.done or self.failure):
            self._finish(events)
        return events

    def _read(self, payloads: list[bytes], events: list[Event]) -> None:
        for payload in payloads:
            self._take(payload, events)
            self._started = True
            if self.done or self.failure:
                return

    @abstractmethod
    def _split(self, data: bytes) -> list[bytes]:
        """The payloads that are whole with these bytes."""

    @abstractmethod
    def _rest(self) -> list[bytes]:
        """The payloads still due when the body is over."""

    @abstractmethod
    def _take(self, payload: bytes, events: list[Event]) -> None:
        """Append the events of a payload; note the terminator or an error."""

    def _finish(self, events: list[Event]) -> None:
        """The body is over without a terminator: the answer, or Truncated."""
        raise Truncated("the stream ended without its terminator")
