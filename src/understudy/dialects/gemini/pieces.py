"""Calls whose arguments come piece by piece, each under its path, as Vertex streams them if asked.

No piece says which call it belongs to: it goes on with the one before it. A call is whole when a
piece does not promise another, and at the latest when something else comes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise

from understudy.dialects.json_access import Wire, items, obj, text
from understudy.messages.parts import Json

_CALL = "functionCall"
_PIECE = frozenset(("partialArgs", "willContinue"))
_VALUES = ("stringValue", "numberValue", "boolValue")  # none of them: null
_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,9})\]|\[(?:'([^']*)'|"([^"]*)")\]""")
_PATH = re.compile(rf"\$(?:{_STEP.pattern})+")


@dataclass(slots=True)
class Pieces:
    """The call of one stream that is in the making, if there is one."""

    open: Wire | None = None  # the part it came in
    _told: dict[str, list[Json]] = field(default_factory=dict)  # values by path, in order

    def whole(self, candidate: Wire) -> Wire:
        """The same candidate with only such calls as are whole."""
        content = obj(candidate.get("content"))
        parts = items(content.get("parts"))
        if self.open is None and not any(_CALL in obj(part) for part in parts):
            return candidate
        found = [whole for part in parts for whole in self._add(obj(part))]
        return {**candidate, "content": {**content, "parts": found}}

    def rest(self) -> list[Json]:
        """The call that is left, as whole as it became."""
        if self.open is None:
            return []
        call = obj(self.open[_CALL])
        args: Wire = dict(obj(call.get("args")))
        for path, values in self._told.items():
            _put(args, _steps(path), _joined(values))
        made = {**self.open, _CALL: {**call, "args": args}}
        self.open, self._told = None, {}
        return [made]

    def _add(self, part: Wire) -> list[Json]:
        call = obj(part.get(_CALL))
        if _CALL not in part or text(call.get("name")):
            before = self.rest()
            if call.keys().isdisjoint(_PIECE):
                return [*before, part]
            self.open = {**part, _CALL: {k: v for k, v in call.items() if k not in _PIECE}}
        elif self.open is None:
            return [part]
        else:
            before = []
            self.open |= {k: v for k, v in part.items() if k != _CALL}
        for piece in map(obj, items(call.get("partialArgs"))):
            value = next((piece[key] for key in _VALUES if key in piece), None)
            self._told.setdefault(text(piece.get("jsonPath")), []).append(value)
        return before if call.get("willContinue") is True else [*before, *self.rest()]


def _joined(values: list[Json]) -> Json:
    said = [value for value in values if isinstance(value, str)]
    return "".join(said) if len(said) == len(values) else values[-1]


def _steps(path: str) -> list[str | int]:
    """`$.a[0].b` is a, 0, b; what is no path leads nowhere."""
    found = _STEP.finditer(path) if _PATH.fullmatch(path) else ()
    return [int(step[2]) if step[2] else step[1] or step[3] or step[4] or "" for step in found]


def _put(args: Wire, steps: list[str | int], value: Json) -> None:
    node: Json = args
    for step, following in pairwise(steps):
        node = _set(node, step, [] if isinstance(following, int) else {}, grow=True)
    if steps:
        _set(node, steps[-1], value)


def _set(node: Json, step: str | int, value: Json, *, grow: bool = False) -> Json:
    """The value in its place, or with `grow` what stands there; a step that cannot be is none."""
    if isinstance(node, dict) and isinstance(step, str):
        if grow:
            return node.setdefault(step, value)
        node[step] = value
    elif isinstance(node, list) and isinstance(step, int):
        if step >= len(node):  # never further: an index costs no memory
            node.append(value)
        elif grow:
            return node[step]
        else:
            node[step] = value
    return value
