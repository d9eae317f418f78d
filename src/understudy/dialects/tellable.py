"""A history and its tools as another vendor can be told them, if it can be told at all."""

from __future__ import annotations

import re
from dataclasses import replace

from understudy.core.errors import ProviderError
from understudy.core.faults import Fault
from understudy.messages.parts import File, Image, Opaque, Part
from understudy.messages.request import Request, ServerTool

# Addresses of files that only Google can follow, and only for the account they belong to.
_GOOGLES = re.compile(r"gs://|https://generativelanguage\.googleapis\.com/.*files/")


def tellable(request: Request, name: str) -> Request:
    """The request as it can be told in the dialect of this name.

    Raises `unsupported` where the question would be another one: a model would answer without the
    file or the turns, and nobody would know.
    """
    for message in request.messages:
        for part in message.parts:
            kind = type(part)
            if (kind is Opaque or kind is Image or kind is File) and _is_out_of_reach(part, name):
                points = "the request points to what another vendor has kept"
                raise ProviderError(Fault.UNSUPPORTED, message=points, billing="not_sent")
    choice = request.tool_choice
    if request.issuer == name or choice is None or not choice.only:
        return request
    # Few wires can say which tools are meant: the others are not offered at all.
    tools = (t for t in request.tools if isinstance(t, ServerTool) or t.name in choice.only)
    return replace(request, tools=tuple(tools), tool_choice=replace(choice, only=()))


def _is_out_of_reach(part: Part, name: str) -> bool:
    if isinstance(part, Opaque):
        return part.vital and part.issuer != name
    url = part.url if isinstance(part, Image | File) else ""
    return name != "gemini" and _GOOGLES.match(url) is not None
