"""Answers that end where their client asked, though the model could not be told of it.

Some models take no stop sequences, or few, or none of white space alone. Their answers are cut
here; what the model says behind a stop is nobody's business.
"""

from __future__ import annotations

from dataclasses import replace

from understudy.messages.parts import Part, Text, ToolCall
from understudy.messages.response import Event, Response, TextDelta

Stops = tuple[str, ...]


def cut(response: Response, stops: Stops) -> Response:
    """The answer up to the first of these in its text; the same object if there is none."""
    at = _first(response.text, stops)
    if at < 0:
        return response
    kept: list[Part] = []
    for part in response.parts:
        if isinstance(part, Text):
            kept.append(replace(part, text=part.text[:at]))
            at -= len(part.text)
            if at < 0:
                break
        else:
            kept.append(part)
    parts = tuple(part for part in kept if not isinstance(part, Text) or part.text)
    bare = replace(response, text="", tool_calls=(), reasoning="", parts=())
    return replace(bare, parts=parts, finish_reason="stop", finish_raw="")


class Cutting:
    """The same for a stream: what may be the beginning of a stop is held until that is clear."""

    def __init__(self, stops: Stops) -> None:
        self._stops = stops
        self._held = ""
        self._over = False

    def events(self, events: list[Event]) -> list[Event]:
        if not self._stops:
            return events
        return [told for event in events for told in self._event(event)]

    def _event(self, event: Event) -> list[Event]:
        match event:
            case Response():
                return [*self._due(), cut(event, self._stops)]
            case _ if self._over:
                return []
            case TextDelta():
                return self._text(event.text)
            case ToolCall():  # no stop reaches across a call
                return [*self._due(), event]
        return [event]

    def _text(self, text: str) -> list[Event]:
        held = self._held + text
        at = _first(held, self._stops)
        self._over = at >= 0
        clear = at if self._over else len(held) - self._doubtful(held)
        self._held = "" if self._over else held[clear:]
        return [TextDelta(held[:clear])] if clear else []

    def _doubtful(self, text: str) -> int:
        """How long an end of it may be the beginning of a stop."""
        longest = max(map(len, self._stops)) - 1
        ends = range(min(longest, len(text)), 0, -1)
        return next((n for n in ends if any(s.startswith(text[-n:]) for s in self._stops)), 0)

    def _due(self) -> list[Event]:
        held, self._held = self._held, ""
        return [TextDelta(held)] if held else []


def _first(text: str, stops: Stops) -> int:
    found = (text.find(stop) for stop in stops if stop)
    return min((at for at in found if at >= 0), default=-1)
