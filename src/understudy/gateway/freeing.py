"""Calls of tools that take free text, told so to the client whose tools they are.

Only OpenAI's wires have such tools. Everybody else is given one that takes the text in an object.
"""

from __future__ import annotations

from understudy.dialects.calls import free_tools, freed
from understudy.messages.parts import ToolCall
from understudy.messages.request import Request
from understudy.messages.response import Event, Response, with_call, with_calls


class Freeing:
    """The tools of one request that take free text, and calls of them as their client wants."""

    def __init__(self, request: Request) -> None:
        self._issuer = request.issuer
        self._names = free_tools(request)

    def __bool__(self) -> bool:
        return bool(self._names)

    def response(self, response: Response) -> Response:
        return with_calls(response, self._call) if self._names else response

    def events(self, events: list[Event]) -> list[Event]:
        return [with_call(event, self._call) for event in events]

    def _call(self, call: ToolCall) -> ToolCall:
        return freed(call, self._issuer) if call.name in self._names else call
