"""JSON out of the code fence that some models put round it, asked or not (contract M5)."""

from __future__ import annotations

import string
from dataclasses import replace

from understudy.messages.parts import Part, Text
from understudy.messages.response import Event, Response, TextDelta

_FENCE = "```"
_ENDING = "`" + string.whitespace
_TAG = string.ascii_letters + string.digits + "+-_."


def unfenced(text: str) -> str:
    """Without the code fence round the whole of it, if there is one."""
    text = text.strip().removeprefix("\ufeff")
    if len(text) < 2 * len(_FENCE) or not (text.startswith(_FENCE) and text.endswith(_FENCE)):
        return text
    return text.strip("`").lstrip(_TAG).strip()


def bare(response: Response) -> Response:
    """An answer that was to be JSON, without a fence; the same object if there is none."""
    if _FENCE not in response.text:
        return response
    inside = unfenced(response.text)
    if inside == response.text.strip():
        return response
    at = next(n for n, part in enumerate(response.parts) if isinstance(part, Text))
    others = [part for part in response.parts if not isinstance(part, Text)]
    parts: list[Part] = [*others[:at], Text(inside), *others[at:]]
    return replace(response, parts=tuple(parts))


class Unfencing:
    """The same for text that comes in pieces: what may be a fence is held until that is clear."""

    def __init__(self) -> None:
        self._held = ""
        self._fenced: bool | None = None  # None: it may still be

    def events(self, events: list[Event]) -> list[Event]:
        return [told for event in events for told in self._event(event)]

    def _event(self, event: Event) -> list[Event]:
        match event:
            case TextDelta():
                return _said(self.feed(event.text))
            case Response():
                return [*_said(self.end()), bare(event)]
        return [event]

    def feed(self, text: str) -> str:
        """What is surely inside, so far."""
        if self._fenced is False:
            return text
        self._held += text
        if self._fenced is None:
            self._look()
        if self._fenced is None:
            return ""
        inside = self._held.rstrip(_ENDING) if self._fenced else self._held
        self._held = self._held[len(inside) :]
        return inside

    def end(self) -> str:
        """What was held for nothing."""
        closed = self._fenced and self._held.strip().endswith(_FENCE)
        return "" if closed else self._held

    def _look(self) -> None:
        said = self._held.lstrip().removeprefix("\ufeff")
        if not said.startswith(_FENCE):
            self._fenced = None if _FENCE.startswith(said) else False
        elif inside := said.lstrip("`").lstrip(_TAG).lstrip():
            self._fenced, self._held = True, inside


def _said(text: str) -> list[Event]:
    return [TextDelta(text)] if text else []
