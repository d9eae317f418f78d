"""The candidates beside the first, put together from a stream as a plain answer holds them."""

from __future__ import annotations

from dataclasses import dataclass, field

from understudy.dialects.extras import kept
from understudy.dialects.json_access import items, obj, whole, without
from understudy.messages.parts import Extra, Json

_SAID = frozenset(("text", "thought"))  # all that a part holds whose text may grow
_MOST = 128  # far more than Google allows; no peer may have us open candidates without end


@dataclass(slots=True)
class _Other:
    """One candidate while it grows: what it last told of itself, and its parts as runs of text."""

    told: dict[str, Json] = field(default_factory=dict)
    content: dict[str, Json] = field(default_factory=dict)
    runs: list[tuple[Extra, list[str]]] = field(default_factory=list)

    def add(self, piece: dict[str, Json]) -> None:
        content = obj(piece.get("content"))
        self.told |= kept(piece, ("content",))
        self.content |= kept(content, ("parts",))
        for part in items(content.get("parts")):
            self._grow(obj(part))

    def _grow(self, part: dict[str, Json]) -> None:
        said = part.get("text")
        if not isinstance(said, str):
            self.runs.append((part, []))
            return
        rest = without(part, ("text",))
        if self.runs and self.runs[-1][0] == rest and part.keys() <= _SAID:
            self.runs[-1][1].append(said)
        else:
            self.runs.append((rest, [said]))

    def made(self) -> dict[str, Json]:
        parts: list[Json] = [
            {"text": "".join(said), **rest} if said else dict(rest) for rest, said in self.runs
        ]
        content: dict[str, Json] = {"parts": parts, **self.content} if parts else self.content
        return {**({"content": content} if content else {}), **self.told}


@dataclass(slots=True)
class Others:
    """All of them, by their index or, where the wire has none, by their place."""

    _found: dict[int, _Other] = field(default_factory=dict)

    def add(self, chunk: dict[str, Json], first: dict[str, Json]) -> None:
        for at, item in enumerate(items(chunk.get("candidates"))):
            candidate = obj(item)
            index = whole(candidate.get("index")) or at
            if candidate and candidate is not first and index < _MOST:
                self._found.setdefault(index, _Other()).add(candidate)

    def made(self) -> list[Json]:
        return [other.made() for _, other in sorted(self._found.items())]
