"""What the tests of several dialects share: JSON bytes, and a stream fed in slices."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from understudy.dialects.base import Dialect, StreamReader
from understudy.messages.response import Event, Response


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def heard(
    dialect: Dialect, body: bytes, at: list[int] | None = None
) -> tuple[list[Event], StreamReader]:
    """The events of a body cut at these places, and the reader that gave them."""
    reader = dialect.reader()
    places = [0, *(at or []), len(body)]
    events = [event for a, b in pairwise(places) for event in reader.feed(body[a:b])]
    return events + reader.end(), reader


def final(dialect: Dialect, body: bytes) -> Response:
    last = heard(dialect, body)[0][-1]
    assert isinstance(last, Response)
    return last
