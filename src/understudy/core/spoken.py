"""HTTP statuses that stand in sentences: which numbers are one, and which only look like it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

SCANNED = 2_048  # characters of a message

_STATUS = re.compile(r"(?<![\w.,])[45]\d\d(?![\w]|[.,]\d)")
_BEFORE_STATUS = ("status", "code", "http", "returned", "error", "错误", "状态码", "<")
_AFTER_STATUS = (
    *("too many", "bad ", "unauth", "forbidden", "payment", "not found", "internal", "service"),
    *("gateway", "request", "unproc", "client error", "server error"),
)


def statuses(messages: Iterable[str]) -> Iterator[int]:
    """The statuses in these messages, in their order."""
    for text in messages:
        for match in islice(_STATUS.finditer(text, 0, SCANNED), 6):
            before = text[max(0, match.start() - 24) : match.start()].lower()
            after = text[match.end() : match.end() + 16].lower().lstrip(" :-")
            if (
                match.start() < 4
                or before.rstrip(" \"'`:=([./12").endswith(_BEFORE_STATUS)
                or after.startswith(_AFTER_STATUS)
            ):
                yield int(match[0])
