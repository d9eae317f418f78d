"""What all event-stream readers share: slicing, plain JSON instead of a stream, and the end."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

from understudy.dialects.base import Garbled, Truncated, WireError
from understudy.dialects.error_body import wire_error
from understudy.dialects.fed import Fed
from understudy.dialects.json_access import decode
from understudy.dialects.sse import Body, Frame
from understudy.dialects.telling import told
from understudy.messages.response import Event, Response


@dataclass(slots=True)
class FramedReader(Fed):
    """A wire of event-stream frames says how they are read, and what its end looks like."""

    _body: Body = field(default_factory=Body)

    def _digest(self, data: bytes, events: list[Event]) -> None:
        self._read(self._body.feed(data), events)

    def _conclude(self, events: list[Event]) -> None:
        if self._body.plain is not None:
            return self._plain(bytes(self._body.plain), events)
        try:
            self._read(self._body.end(), events)
        except Garbled as error:
            raise Truncated(f"the stream was cut: {error}") from error
        if self.done or self.failure or self._complete(events):
            return None
        if not (self._started or self.beats or self._body.empty):
            raise Garbled("a stream without a single event")
        raise Truncated("the stream ended without its terminator")

    @abstractmethod
    def _read(self, frames: list[Frame], events: list[Event]) -> None:
        """Append the events of these frames; stop at the terminator or an error."""

    def _complete(self, events: list[Event]) -> bool:
        """Was the answer over, though no terminator came?"""
        return False

    @abstractmethod
    def _whole(self, body: bytes) -> Response:
        """A plain answer."""

    def _plain(self, body: bytes, events: list[Event]) -> None:
        try:
            events += told(self._whole(body))
        except WireError as error:
            self.failure = error
        else:
            self.done = True

    def _finish(self, response: Response, events: list[Event]) -> None:
        events.extend(response.tool_calls)
        events.append(response)
        self.done = True

    def _fail(self, payload: bytes) -> None:
        try:
            self.failure = wire_error(payload, decode(payload))
        except Garbled:
            self.failure = WireError(payload)
