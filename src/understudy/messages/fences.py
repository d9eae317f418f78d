"""JSON out of the code fence that some models put round it, asked or not (contract M5)."""

from __future__ import annotations

import string
from dataclasses import replace

from understudy.messages.parts import Part, Text
from understudy.messages.response import Response

_FENCE = "```"
_TAG = string.ascii_letters + string.digits + "+-_."


def unfenced(text: str) -> str:
    """Without the code fence round the whole of it, if there is one."""
    text = text.strip().removeprefix("\ufeff")
    if len(text) < 2 * len(_FENCE) or not (text.startswith(_FENCE) and text.endswith(_FENCE)):
        return text
    return text.strip("`").lstrip(_TAG).strip()


def bare(response: Response) -> Response:
    """An answer that was to be JSON, without a fence; the same object if there is none."""
    if _FENCE not in response.text:
        return response
    inside = unfenced(response.text)
    if inside == response.text.strip():
        return response
    at = next(n for n, part in enumerate(response.parts) if isinstance(part, Text))
    others = [part for part in response.parts if not isinstance(part, Text)]
    parts: list[Part] = [*others[:at], Text(inside), *others[at:]]
    return replace(response, parts=tuple(parts))
