"""Ids of tool calls in a history: one for each call, echoed by its result (contract M4).

Wires without ids leave it to us to make them up, and some servers give the same one to every call.
In a history of several turns two calls may then have one id, which other vendors refuse.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from understudy.messages.parts import Part, ToolCall, ToolResult
from understudy.messages.request import Message, Request


def distinct(request: Request) -> Request:
    """The request with every call told from every other; the same object if they are already."""
    known: set[str] = set()
    for message in request.messages:
        if message.role == "assistant":
            for part in message.parts:
                if type(part) is ToolCall:
                    if part.id in known:
                        return _renamed(request)
                    known.add(part.id)
    return request


def _renamed(request: Request) -> Request:
    parts = (part for message in request.messages for part in message.parts)
    naming = _Naming({part.id for part in parts if isinstance(part, ToolCall)})
    return replace(request, messages=tuple(map(naming.message, request.messages)))


class _Naming:
    """From turn to turn: what each id was given to, and who has not been answered yet."""

    def __init__(self, asked: set[str]) -> None:
        self._asked = asked  # the ids of the history as it came
        self._given: set[str] = set()
        self._times: dict[str, int] = {}
        self._open: dict[str, deque[str]] = {}
        self._last: dict[str, str] = {}

    def message(self, message: Message) -> Message:
        return replace(message, parts=tuple(map(self._part, message.parts)))

    def _part(self, part: Part) -> Part:
        if isinstance(part, ToolCall):
            return replace(part, id=self._named(part.id))
        if isinstance(part, ToolResult):
            return replace(part, id=self._answered(part.id))
        return part

    def _named(self, found: str) -> str:
        """The first to have an id keeps it; the second has it with a 2, if that is free."""
        n = self._times.get(found, 0) + 1
        name = found if n == 1 else f"{found}_{n}"
        while name in self._given or (n > 1 and name in self._asked):
            n += 1
            name = f"{found}_{n}"
        self._times[found] = n
        self._given.add(name)
        self._open.setdefault(found, deque()).append(name)
        return name

    def _answered(self, found: str) -> str:
        """Calls are answered in their order; what comes again belongs to the one before."""
        waiting = self._open.get(found)
        if waiting:
            self._last[found] = waiting.popleft()
        return self._last.get(found, found)
