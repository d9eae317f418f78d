"""What must be known of a relayed stream without reading it: progress, errors, its true end.

After the commit point chunks go through as they came. They are only searched for marks that
cannot stand inside a JSON string: there a line break is escaped, and so is every quote.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Marks:
    """One dialect's marks. `over` ends a stream for good; `finish` is enough if it just closes."""

    over: re.Pattern[bytes]
    finish: re.Pattern[bytes]
    error: re.Pattern[bytes]
    quiet: re.Pattern[bytes]  # frames that are no progress


NEVER = re.compile(rb"(?!)")
_DATA_ERROR = rb'(?:^|\n)data: ?\{\s*"error"\s*:\s*[\{"]'

MARKS = {
    "openai": Marks(
        re.compile(rb"(?:^|\n)data: ?\[DONE\]"),
        re.compile(rb'"finish_reason":\s*"'),
        re.compile(_DATA_ERROR + rb"|(?:^|\n)event: ?error"),
        NEVER,
    ),
    "responses": Marks(
        re.compile(rb'"type":\s*"response\.(?:completed|incomplete|failed|cancelled)"'),
        NEVER,
        re.compile(
            _DATA_ERROR + rb'|(?:^|\n)event: ?error|"type":\s*"(?:error|response\.failed)"'
        ),
        re.compile(rb'"type":\s*"keepalive"'),
    ),
    "anthropic": Marks(
        re.compile(rb'"type":\s*"message_stop"'),
        NEVER,
        re.compile(rb'(?:^|\n)event: ?error|(?:^|\n)data: ?\{\s*"type":\s*"error"'),
        re.compile(rb'"type":\s*"ping"'),
    ),
    "gemini": Marks(
        NEVER,
        re.compile(rb'"(?:finishReason|blockReason)":\s*["\d]'),
        re.compile(_DATA_ERROR + rb'|(?:^|\n)\[?,?\s*\{\s*"error":\s*\{'),
        NEVER,
    ),
    "ollama": Marks(
        re.compile(rb'"done":\s*true'),
        NEVER,
        re.compile(rb'(?:^|\n)\{\s*"error":'),
        NEVER,
    ),
}
OVERLAP = 64  # bytes kept from the chunk before, so that a mark cut in two is still found


class Scan:
    """One stream, chunk by chunk."""

    __slots__ = ("_marks", "_tail", "error", "finished", "over")

    def __init__(self, dialect: str) -> None:
        self._marks = MARKS[dialect]
        self._tail = b""
        self.over = False
        self.finished = False  # the answer's own end was told, though not the stream's
        self.error = b""  # what came with an error mark, for the classifier

    def feed(self, data: bytes) -> bool:
        """Look at a chunk; was it progress?"""
        window = self._tail + data
        self._tail = window[-OVERLAP:]
        marks = self._marks
        if not self.over and marks.over.search(window):
            self.over = True
        if not self.finished and marks.finish.search(window):
            self.finished = True
        if not self.error and (found := marks.error.search(window)):
            self.error = window[found.start() :]
        if b"{" not in data:
            return b"[DONE]" in data  # comments and blank lines are silence
        return not (marks.quiet is not NEVER and self._only_quiet(data))

    @property
    def complete(self) -> bool:
        return (self.over or self.finished) and not self.error

    def _only_quiet(self, data: bytes) -> bool:
        return data.count(b"data:") == len(self._marks.quiet.findall(data))
