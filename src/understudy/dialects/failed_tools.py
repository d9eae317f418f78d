"""A tool that failed, on wires without a flag for it: the prefix `ERROR: ` (contract M4)."""

from __future__ import annotations

from collections.abc import Iterable

from understudy.messages.parts import File, Image, Part, Text

PREFIX = "ERROR: "

Content = tuple[Text | Image | File, ...]


def marked(content: Content, failed: bool) -> Content:
    """The content of a result, saying so when the tool failed."""
    if not failed:
        return content
    match content:
        case (Text(text=first), *rest):
            return (Text(PREFIX + first), *rest)
    return (Text(PREFIX), *content)


def unmarked(parts: Iterable[Part]) -> tuple[Content, bool]:
    """The content without the mark, and whether the mark was there."""
    content = tuple(part for part in parts if isinstance(part, Text | Image | File))
    match content:
        case (Text(text=first), *rest) if first.startswith(PREFIX):
            left = first.removeprefix(PREFIX)
            return ((Text(left), *rest) if left else tuple(rest)), True
    return content, False
