"""What a model is asked otherwise than its client did, and how its answer is put back.

A dialect says which bends a request needs for a model; whoever asks undoes them in the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from understudy.messages.parts import ToolCall
from understudy.messages.request import Request
from understudy.messages.response import Event, Response
from understudy.messages.stops import Cutting, Stops, cut
from understudy.messages.tool_names import misfits, original, with_fitted_names


@dataclass(frozen=True, slots=True)
class Bends:
    """False if there is nothing to undo."""

    stops: Stops = ()  # left out of the request: the answer is cut there
    names: Mapping[str, str] = field(default_factory=dict)  # of tools, by the names they go under
    strict: bool = False  # about names of tools, of those in the history too

    def __bool__(self) -> bool:
        return bool(self.stops or self.names)

    def told(self, request: Request) -> Request:
        """The request as it is put to the model; the same object if nothing is bent."""
        if self.stops:
            request = replace(request, stop=tuple(s for s in request.stop if s not in self.stops))
        return with_fitted_names(request) if self.strict else request

    def undone(self, response: Response) -> Response:
        if not self:
            return response
        if self.names and response.tool_calls:
            parts = tuple(original(part, self.names) for part in response.parts)
            response = replace(response, parts=parts)
        return cut(response, self.stops)


STRAIGHT = Bends()
_STRICT = Bends(strict=True)


def bends_for(request: Request, stops: Stops = ()) -> Bends:
    """For a vendor that is strict about the names of tools, and hears nothing of these stops."""
    names = misfits(request) if request.tools else {}
    return Bends(stops, names, strict=True) if stops or names else _STRICT


class Undoing:
    """The same for a stream."""

    def __init__(self, bends: Bends) -> None:
        self._bends = bends
        self._cutting = Cutting(bends.stops)

    def events(self, events: list[Event]) -> list[Event]:
        return self._cutting.events([self._event(event) for event in events])

    def _event(self, event: Event) -> Event:
        if isinstance(event, Response):
            return self._bends.undone(event)
        told = original(event, self._bends.names) if isinstance(event, ToolCall) else event
        return told if isinstance(told, ToolCall) else event
