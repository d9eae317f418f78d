"""What a message is made of. A new kind of part is a decision, never a silent pass-through.

`extra` carries wire fields the neutral types do not know; only the dialect that read them may
write them back. A part with an `issuer` is bound to that vendor's dialect (thinking signatures,
encrypted reasoning, provider-run tools) and is left out for every other one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from understudy.core.values import quick

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Extra = Mapping[str, Json]
NO_EXTRA: Extra = {}  # shared, never written to


@quick
@dataclass(frozen=True, slots=True)
class Text:
    """Visible text."""

    text: str
    extra: Extra = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Image:
    """A picture as bytes, or as a URL that we pass on and never fetch."""

    data: bytes = field(default=b"", repr=False)
    mime: str = ""
    url: str = ""
    extra: Extra = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class File:
    """A document, sound or film: bytes, a URL, or an id the issuer knows."""

    data: bytes = field(default=b"", repr=False)
    mime: str = ""
    url: str = ""
    name: str = ""
    extra: Extra = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Thinking. `signature` and `data` (encrypted or redacted) mean something to `issuer` only."""

    text: str = ""
    issuer: str = ""  # dialect name
    signature: str = field(default="", repr=False)
    data: str = field(default="", repr=False)
    extra: Extra = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model asks for a tool. `arguments` is the raw JSON text, `"{}"` when there are none."""

    id: str
    name: str
    arguments: str = "{}"
    issuer: str = ""  # set when `extra` is bound to that dialect (Gemini thought signatures)
    extra: Extra = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer of a tool, echoing the call's id."""

    id: str
    name: str = ""
    content: tuple[Text | Image | File, ...] = ()
    is_error: bool = False
    extra: Extra = field(default_factory=dict, repr=False)

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.content if isinstance(part, Text))

    @property
    def paragraphs(self) -> str:
        """The texts as one, for wires that know only one."""
        return "\n\n".join(part.text for part in self.content if isinstance(part, Text))


@dataclass(frozen=True, slots=True)
class Opaque:
    """A part only its issuer understands (a provider-run tool, a citation block), kept whole.

    `vital`: without it the question is another one (a file the vendor keeps, known by its id).
    Then it is not left out for others: they cannot be asked at all.
    """

    issuer: str
    value: Json = field(repr=False)
    vital: bool = False


Part = Text | Image | File | Reasoning | ToolCall | ToolResult | Opaque
