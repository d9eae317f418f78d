"""What readers of JSON payloads share, however these are framed: one by one, and the end."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from understudy.dialects.base import Garbled, Truncated
from understudy.dialects.fed import Fed
from understudy.messages.response import Event


@dataclass(slots=True)
class PayloadReader(Fed):
    """A wire of JSON payloads says how they are split, what they mean, how it ends."""

    def _digest(self, data: bytes, events: list[Event]) -> None:
        self._read(self._split(data), events)

    def _conclude(self, events: list[Event]) -> None:
        due = self._rest()
        try:
            self._read(due, events)
        except Garbled as error:
            if self._started:
                raise Truncated(f"the stream was cut: {error}") from error
            raise
        if not (self.done or self.failure):
            self._finish(events)

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
