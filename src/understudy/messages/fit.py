"""A request made to fit one target. Never changes what it is given; nothing to do: same object.

Always fit the caller's own request, never one fitted before: what one target cannot take must not
be lost for the next. Changing pictures is heavy; `needs_work` says beforehand whether it will be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import is_

from understudy.messages.calls import distinct
from understudy.messages.capabilities import Capabilities, refusal
from understudy.messages.media import fits, fitted, unsupported
from understudy.messages.parts import File, Image, Part, Text, ToolResult
from understudy.messages.request import Message, Request

OMITTED = "[earlier image omitted to fit this model's per-request image limit]"


def fit(request: Request, caps: Capabilities, *, stream: bool = False) -> Request:
    """The request as a target with these capabilities can take it, or `unsupported`."""
    if stream and not caps.streaming:
        raise unsupported("does not stream")
    if reason := refusal(request, caps):
        raise unsupported(reason)
    request = distinct(request)
    if request.output is not None and not caps.structured:
        from understudy.messages.schema import state_schema  # rarely needed, and slow to load

        request = state_schema(request)
    images = pictures(request)
    return _with_pictures(request, images, caps) if images else request


def needs_work(request: Request, caps: Capabilities) -> bool:
    """Whether fitting will decode and write pictures, and so belongs in a thread."""
    images = pictures(request)
    return bool(images) and not all(fits(image, caps) for image in _kept(images, caps))


def pictures(request: Request) -> list[Image]:
    """Every picture, oldest first, those in tool results included."""
    found: list[Image] = []
    for message in request.messages:
        for part in message.parts:
            # `type` and not `isinstance`: this is all that most requests cost.
            kind = type(part)
            if kind is Image:
                found.append(part)  # type: ignore[arg-type]
            elif kind is ToolResult:
                found += [item for item in part.content if type(item) is Image]  # type: ignore[union-attr]
    return found


def _kept(images: list[Image], caps: Capabilities) -> list[Image]:
    """The newest, as many as the target takes."""
    if caps.max_images is None or len(images) <= caps.max_images:
        return images
    return images[len(images) - caps.max_images :]


def _with_pictures(request: Request, images: list[Image], caps: Capabilities) -> Request:
    kept = _kept(images, caps)
    new: list[Image | Text] = [Text(OMITTED)] * (len(images) - len(kept))
    new += [fitted(image, caps) for image in kept]
    if _same(new, images):
        return request
    supply = iter(new)
    return replace(request, messages=tuple(_message(m, supply) for m in request.messages))


def _message(message: Message, supply: Iterator[Image | Text]) -> Message:
    parts = tuple(_part(part, supply) for part in message.parts)
    return message if _same(parts, message.parts) else replace(message, parts=parts)


def _part(part: Part, supply: Iterator[Image | Text]) -> Part:
    if isinstance(part, Image):
        return next(supply)
    if not isinstance(part, ToolResult):
        return part
    content: tuple[Text | Image | File, ...] = tuple(
        next(supply) if isinstance(item, Image) else item for item in part.content
    )
    return part if _same(content, part.content) else replace(part, content=content)


def _same(new: Sequence[object], old: Sequence[object]) -> bool:
    return all(map(is_, new, old))
