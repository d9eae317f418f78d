"""Calls of tools that take free text, told so to the client whose tools they are.

Only OpenAI's wires have such tools. Everybody else is given one that takes the text in an object.
"""

from __future__ import annotations

from dataclasses import replace

from understudy.dialects.calls import free_tools, freed
from understudy.messages.parts import Part, ToolCall
from understudy.messages.request import Request
from understudy.messages.response import Event, Response


class Freeing:
    """The tools of one request that take free text, and calls of them as their client wants."""

    def __init__(self, request: Request) -> None:
        self._issuer = request.issuer
        self._names = free_tools(request)

    def __bool__(self) -> bool:
        return bool(self._names)

    def response(self, response: Response) -> Response:
        if self._names.isdisjoint(call.name for call in response.tool_calls):
            return response
        return replace(response, parts=tuple(map(self._part, response.parts)))

    def events(self, events: list[Event]) -> list[Event]:
        return [self._event(event) for event in events]

    def _event(self, event: Event) -> Event:
        match event:
            case Response():
                return self.response(event)
            case ToolCall() if event.name in self._names:
                return freed(event, self._issuer)
        return event

    def _part(self, part: Part) -> Part:
        if isinstance(part, ToolCall) and part.name in self._names:
            return freed(part, self._issuer)
        return part
