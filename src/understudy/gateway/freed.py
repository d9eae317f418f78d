"""Calls of tools that take free text, told so to the client whose tools they are.

Only OpenAI's wires have such tools. Everybody else is given one that takes the text in an object.
"""

from __future__ import annotations

from dataclasses import replace

from understudy.dialects.base import StreamWriter
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
        return replace(response, parts=tuple(map(self.part, response.parts)))

    def part(self, part: Part) -> Part:
        if isinstance(part, ToolCall) and part.name in self._names:
            return freed(part, self._issuer)
        return part


class Freed:
    """Writes as another writer does, with such calls told so. See `StreamWriter`."""

    def __init__(self, writer: StreamWriter, freeing: Freeing) -> None:
        self._writer = writer
        self._freeing = freeing

    def write_event(self, event: Event) -> bytes:
        match event:
            case ToolCall():
                part = self._freeing.part(event)
                event = part if isinstance(part, ToolCall) else event
            case Response():
                event = self._freeing.response(event)
        return self._writer.write_event(event)

    def write_error(self, status: int, message: str, kind: str) -> bytes:
        return self._writer.write_error(status, message, kind)
