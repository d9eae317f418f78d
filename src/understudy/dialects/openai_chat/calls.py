"""Tool calls that arrive in pieces, put together. Forgives vendors their indexes and ids."""

from __future__ import annotations

from dataclasses import dataclass, field

from understudy.dialects.base import Garbled
from understudy.dialects.json_access import decode, encode, items, obj, text, whole, without
from understudy.dialects.openai_chat.parts import LEGACY, read_call
from understudy.messages.parts import Json, ToolCall

_PIECE = frozenset(("index", "id", "type", "function", "custom"))


@dataclass(slots=True)
class _Slot:
    id: str = ""
    name: str = ""
    kind: str = ""  # "custom" for free-text tools, or LEGACY
    arguments: list[str] = field(default_factory=list)
    extra: dict[str, Json] = field(default_factory=dict)

    def wire(self) -> dict[str, Json]:
        said = "".join(self.arguments)
        if self.kind == "custom":
            inner: dict[str, Json] = {"name": self.name, "input": said}
            return {**self.extra, "id": self.id, "type": "custom", "custom": inner}
        inner = {"name": self.name, "arguments": said}
        return {**self.extra, "id": self.id, "type": self.kind, "function": inner}

    def whole(self) -> bool:
        """Did the arguments come in one piece that is complete?"""
        if len(self.arguments) != 1:
            return False
        try:
            decode(self.arguments[0].encode("utf-8", "replace"))
        except Garbled:
            return False
        return True


@dataclass(slots=True)
class CallSlots:
    """The calls of one answer so far, in order of their first piece."""

    slots: list[_Slot] = field(default_factory=list)
    _at: dict[int, _Slot] = field(default_factory=dict)

    def add(self, pieces: Json) -> None:
        for piece in items(pieces):
            self._add(obj(piece))

    def add_legacy(self, piece: dict[str, Json]) -> None:
        """The old `function_call`: one call without index and id."""
        self._add({"index": -1, "function": piece}, LEGACY)

    def _add(self, piece: dict[str, Json], kind: str = "") -> None:
        custom = obj(piece.get("custom"))
        inner = custom or obj(piece.get("function"))
        said = inner.get("input" if custom else "arguments")
        name, words = text(inner.get("name")), _spelled(said)
        slot = self._slot(piece, name, words)
        slot.id = slot.id or text(piece.get("id"))
        slot.kind = slot.kind or ("custom" if custom else kind)
        if name != slot.name and not slot.arguments:
            slot.name += name
        if words:
            slot.arguments.append(words)
        slot.extra.update(without(piece, _PIECE))

    def _slot(self, piece: dict[str, Json], name: str, words: str) -> _Slot:
        index, found = whole(piece.get("index")), text(piece.get("id"))
        if index is None:
            # Older Mistral: no index, and every call comes whole with an id of its own.
            known = next((s for s in self.slots if found and s.id == found), None)
            last = self.slots[-1] if self.slots and not found and not name else None
            return known or last or self._new()
        slot = self._at.get(index)
        if slot is None or _another(slot, found, name, words):
            slot = self._at[index] = self._new()
        return slot

    def _new(self) -> _Slot:
        self.slots.append(_Slot())
        return self.slots[-1]

    def finished(self, place: str) -> list[ToolCall]:
        calls = (read_call(slot.wire(), place, n) for n, slot in enumerate(self.slots))
        return [call for call in calls if call.name]


def _another(slot: _Slot, found: str, name: str, words: str) -> bool:
    """A new call under an old index: Google's endpoint numbers parallel calls all 0."""
    if found and slot.id:
        return found != slot.id
    return bool(name and words and slot.name and slot.whole())


def _spelled(arguments: Json) -> str:
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return encode(arguments).decode()
