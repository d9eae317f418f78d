"""A caller's own fields and spellings, written back while they still mean the same.

A dialect keeps in `Request.extra` every top-level field its own writing would not reproduce. An
option changed since (`request.having(max_tokens=5)`) wins over the spelling it came in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from understudy.dialects.json_access import Node, Wire
from understudy.messages.parts import Extra
from understudy.messages.request import Request


@dataclass(frozen=True, slots=True)
class Spelling:
    """Which fields are options of this wire, and how they are read."""

    options: frozenset[str]
    read: Callable[[Node], Request]
    others: Mapping[str, str] = field(default_factory=dict)  # another name -> the one we write

    def over(self, body: Wire, extra: Extra) -> Wire:
        """`body` as this caller would have written it."""
        plain = {key: value for key, value in body.items() if key in self.options}
        for key, value in extra.items():
            if key not in self.options:
                body.setdefault(key, value)
                continue
            ours = self.others.get(key, key)
            spelled = {k: v for k, v in plain.items() if k != ours} | {key: value}
            if self.read(Node(spelled)) == self.read(Node(plain)):
                body.pop(ours, None)
                body[key] = value
                plain = spelled
        return body


def unsaid(wire: Wire, again: Wire, apart: frozenset[str]) -> Wire:
    """The fields of `wire` that `again`, our own writing of it, does not hold alike."""
    return {k: v for k, v in wire.items() if k not in apart and (k not in again or again[k] != v)}
