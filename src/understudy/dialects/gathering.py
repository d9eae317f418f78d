"""Parts of an answer while they grow, chunk by chunk. Neighbouring pieces of one kind are one."""

from __future__ import annotations

from dataclasses import dataclass, field

from understudy.messages.parts import Part, Reasoning, Text


@dataclass(slots=True)
class Gathering:
    """Collects pieces; each run of plain text, or of unsigned thinking, becomes one part."""

    _parts: list[Part] = field(default_factory=list)
    _kind: type[Text] | type[Reasoning] | None = None
    _issuer: str = ""
    _pieces: list[str] = field(default_factory=list)

    def add(self, part: Part) -> None:
        match part:
            case Text(extra=extra) if not extra:
                self._grow(Text, "", part.text)
            case Reasoning(signature="", data="", extra=extra) if not extra:
                self._grow(Reasoning, part.issuer, part.text)
            case Reasoning(data="", extra=extra) if self._kind is Reasoning and part.text:
                self._pieces.append(part.text)  # the signature is for all that was thought
                thought, self._kind = "".join(self._pieces), None
                self._parts.append(Reasoning(thought, part.issuer, part.signature, extra=extra))
            case _:
                self._close()
                self._parts.append(part)

    def parts(self) -> list[Part]:
        self._close()
        return list(self._parts)

    def _grow(self, kind: type[Text] | type[Reasoning], issuer: str, piece: str) -> None:
        if self._kind is not kind:
            self._close()
            self._kind, self._issuer, self._pieces = kind, issuer, []
        self._pieces.append(piece)

    def _close(self) -> None:
        said = "".join(self._pieces)
        if self._kind is Text and said:
            self._parts.append(Text(said))
        elif self._kind is Reasoning and said:
            self._parts.append(Reasoning(said, self._issuer))
        self._kind, self._pieces = None, []
