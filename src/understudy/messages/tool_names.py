"""Names of tools as every vendor takes them, and back.

Claude and OpenAI's models know letters, digits, `_` and `-`, 64 of them; Gemini wants a letter or
`_` first. The longer and the odder names of others, of MCP servers mostly, are told shortened,
always alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256

from understudy.messages.parts import Part, ToolCall, ToolResult
from understudy.messages.request import Message, Request, Tool, ToolChoice

_FIT = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", re.ASCII)
_ODD = re.compile(r"[^a-zA-Z0-9_-]", re.ASCII)
_MARK = 8  # letters of a digest, which tell names apart that would become the same

Names = Mapping[str, str]  # what a name was, by what it became


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
    """The request with such names everywhere; the same object if all are well."""
    turns = tuple(map(_turn, request.messages))
    tools = tuple(_tool(tool) if isinstance(tool, Tool) else tool for tool in request.tools)
    choice = request.tool_choice and _choice(request.tool_choice)
    if (turns, tools, choice) == (request.messages, request.tools, request.tool_choice):
        return request
    return replace(request, messages=turns, tools=tools, tool_choice=choice)


def original(part: Part, names: Names) -> Part:
    """A call under the name that its client knows."""
    if isinstance(part, ToolCall) and part.name in names:
        return replace(part, name=names[part.name])
    return part


def _turn(turn: Message) -> Message:
    if all(_is_fit(part) for part in turn.parts):
        return turn
    return replace(turn, parts=tuple(map(_part, turn.parts)))


def _is_fit(part: Part) -> bool:
    return not isinstance(part, ToolCall | ToolResult) or fitted_name(part.name) == part.name


def _part(part: Part) -> Part:
    if isinstance(part, ToolCall | ToolResult):
        return replace(part, name=fitted_name(part.name))
    return part


def _tool(tool: Tool) -> Tool:
    name = fitted_name(tool.name)
    return tool if name == tool.name else replace(tool, name=name)


def _choice(choice: ToolChoice) -> ToolChoice:
    name, only = fitted_name(choice.name), tuple(map(fitted_name, choice.only))
    if (name, only) == (choice.name, choice.only):
        return choice
    return replace(choice, name=name, only=only)
