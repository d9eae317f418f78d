"""What a target can take. Data about a model, not flags on a class; unknown is None."""

from __future__ import annotations

from dataclasses import dataclass

from understudy.messages.parts import Image, ToolResult
from understudy.messages.request import Request, Tool


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Limits of one model. Zero images means it takes none; None means no declared limit."""

    context_window: int | None = None  # tokens
    max_output: int | None = None  # tokens
    max_images: int | None = None
    max_image_bytes: int | None = None
    max_image_pixels: int | None = None  # the longer side
    image_types: tuple[str, ...] = ()  # MIME types; empty means any
    tools: bool = True
    structured: bool = True  # takes a JSON schema; False: it is stated as an instruction instead
    streaming: bool = True


ANYTHING = Capabilities()


def refusal(request: Request, caps: Capabilities) -> str:
    """Why a target with these capabilities cannot take the request at all, or ""."""
    if not caps.tools and any(isinstance(tool, Tool) for tool in request.tools):
        return "takes no tools"
    if caps.max_images == 0 and has_images(request):
        return "takes no images"
    return ""


def has_images(request: Request) -> bool:
    """In a turn itself, or in what a tool gave back."""
    parts = (part for message in request.messages for part in message.parts)
    within = (p.content if isinstance(p, ToolResult) else (p,) for p in parts)
    return any(isinstance(item, Image) for items in within for item in items)
