"""Names of tools as every vendor takes them, and back.

Claude and OpenAI's models know letters, digits, `_` and `-`, 64 of them; Gemini wants a letter or
`_` first. The longer and the odder names of others, of MCP servers mostly, are told shortened,
always alike.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256

from understudy.messages.parts import Part, ToolCall, ToolResult
from understudy.messages.request import Message, Request, Tool, ToolChoice

_FIT = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", re.ASCII)
_ODD = re.compile(r"[^a-zA-Z0-9_-]", re.ASCII)
_NAMED = (ToolCall, ToolResult)
_MARK = 8  # letters of a digest, which tell names apart that would become the same


@lru_cache(4096)
def fitted_name(name: str) -> str:
    if not name or _FIT.fullmatch(name):
        return name
    mark = sha256(name.encode("utf-8", "replace")).hexdigest()[:_MARK]
    plain = _ODD.sub("_", name)[: 64 - _MARK - 2]
    return f"{plain if plain[0].isalpha() else '_' + plain}_{mark}"


def misfits(request: Request) -> dict[str, str]:
    """The tools of a request whose names have to be changed: what each is, by what it becomes."""
    names = (tool.name for tool in request.tools if isinstance(tool, Tool))
    return {fitted_name(name): name for name in names if fitted_name(name) != name}


def with_fitted_names(request: Request) -> Request:
    """The request with such names everywhere; the same object if all are well, as mostly."""
    if all(_is_fit(tool) for tool in request.tools) and all(map(_is_told, request.messages)):
        return request
    turns = tuple(replace(turn, parts=_parts(turn)) for turn in request.messages)
    tools = tuple(
        replace(t, name=fitted_name(t.name)) if isinstance(t, Tool) else t for t in request.tools
    )
    choice = request.tool_choice and _choice(request.tool_choice)
    return replace(request, messages=turns, tools=tools, tool_choice=choice)


def _is_told(turn: Message) -> bool:
    return all(type(part) not in _NAMED or _is_fit(part) for part in turn.parts)


def _is_fit(named: object) -> bool:
    name = getattr(named, "name", "")
    return fitted_name(name) == name


def _parts(turn: Message) -> tuple[Part, ...]:
    return tuple(
        replace(part, name=fitted_name(part.name))
        if isinstance(part, ToolCall | ToolResult)
        else part
        for part in turn.parts
    )


def _choice(choice: ToolChoice) -> ToolChoice:
    only = tuple(map(fitted_name, choice.only))
    return replace(choice, name=fitted_name(choice.name), only=only)
