"""What a model is asked otherwise than its client did, and how its answer is put back.

A dialect says which bends a request needs for a model; whoever asks undoes them in the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from understudy.messages.parts import ToolCall
from understudy.messages.request import Request
from understudy.messages.response import Event, Response, with_call, with_calls
from understudy.messages.stops import Cutting, Stops, cut
from understudy.messages.tool_names import misfits, with_fitted_names


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
        named = with_calls(response, self.named) if self.names else response
        return cut(named, self.stops) if self.stops else named

    def named(self, call: ToolCall) -> ToolCall:
        """A call under the name that its client knows."""
        name = self.names.get(call.name)
        return call if name is None else replace(call, name=name)


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
        if self._bends.names:
            events = [with_call(event, self._bends.named) for event in events]
        return self._cutting.events(events)
