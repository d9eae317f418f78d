"""A stream that was to be JSON, written without the fence that some models put round it."""

from __future__ import annotations

from understudy.dialects.base import StreamWriter
from understudy.messages.fences import Unfencing, bare
from understudy.messages.response import Event, Response, TextDelta


class Bared:
    """Writes as another writer does. See `StreamWriter`."""

    def __init__(self, writer: StreamWriter) -> None:
        self._writer = writer
        self._text = Unfencing()

    def write_event(self, event: Event) -> bytes:
        match event:
            case TextDelta():
                return self._said(self._text.feed(event.text))
            case Response():
                return self._said(self._text.end()) + self._writer.write_event(bare(event))
        return self._writer.write_event(event)

    def write_error(self, status: int, message: str, kind: str) -> bytes:
        return self._writer.write_error(status, message, kind)

    def _said(self, text: str) -> bytes:
        return self._writer.write_event(TextDelta(text)) if text else b""
