"""What is asked. Values only; `Request` is never changed, options act on a copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from understudy.core.errors import InvalidRequest
from understudy.core.values import quick
from understudy.messages.parts import Extra, Json, Part, Text, ToolCall, ToolResult
from understudy.messages.wellformed import (
    NONE,
    Kinds,
    check_fields,
    check_kind,
    check_parts,
    kind_of,
    listed,
)

Role = Literal["system", "user", "assistant", "tool"]
Mode = Literal["auto", "none", "required", "tool"]


@quick
@dataclass(frozen=True, slots=True)
class Message:
    """One turn. Assistant turns may hold tool calls, tool turns hold tool results."""

    role: Role
    parts: tuple[Part, ...] = ()
    extra: Extra = field(default_factory=dict, repr=False)

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


@dataclass(frozen=True, slots=True)
class Tool:
    """A function the model may call; `parameters` is a JSON schema, None for no arguments."""

    name: str
    description: str = ""
    parameters: dict[str, Json] | None = None
    extra: Extra = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool the vendor runs itself (web search, code); goes to its issuer only."""

    issuer: str
    value: Json = field(repr=False)


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """`auto`, `none`, `required`, or `tool` with a name."""

    mode: Mode = "auto"
    name: str = ""
    parallel: bool | None = None  # may the model call several tools at once
    only: tuple[str, ...] = ()  # the tools to choose from, where that is not all of them


@dataclass(frozen=True, slots=True)
class Schema:
    """Structured output: a JSON schema, or None for any JSON object."""

    schema: dict[str, Json] | None = None
    name: str = "response"
    strict: bool | None = None
    description: str = ""


@quick
@dataclass(frozen=True)
class Request:
    """One conversation to be answered. System prompts are messages of role `system`."""

    messages: tuple[Message, ...] = ()
    tools: tuple[Tool | ServerTool, ...] = ()
    tool_choice: ToolChoice | None = None
    output: Schema | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    reasoning: str | None = None  # effort: "none", "minimal", "low", "medium", "high", …
    reasoning_tokens: int | None = None  # a budget, where the wire speaks in tokens
    user: str | None = None
    issuer: str = ""  # the dialect that read this request; `extra` goes back to it only
    extra: Extra = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, prompt: Prompt) -> Request:
        """A request from what callers like to write: text, messages, or a request as it is.

        Raises InvalidRequest for anything else, before any target could be blamed for it.
        """
        if isinstance(prompt, str):
            return cls(messages=(user(prompt),))
        if isinstance(prompt, Request):
            _check_messages(prompt.messages)
            _check_options(vars(prompt))
            return prompt
        if isinstance(prompt, Message):
            prompt = (prompt,)
        if isinstance(prompt, bytes | Mapping) or not isinstance(prompt, Iterable):
            raise InvalidRequest(f"a prompt is text, messages or a Request, not {kind_of(prompt)}")
        messages = tuple(prompt)
        _check_messages(messages)
        return cls(messages=messages)

    def having(self, **options: object) -> Request:
        """A copy with other options; an unknown one is named, and so is a wrong one.

        `stop="END"` and `tool_choice="required"` are what they look like.
        """
        for name, meant in _SHORT.items():
            if isinstance(options.get(name), str):
                options[name] = meant(options[name])
        _check_options(options)
        try:
            return replace(self, **options)  # type: ignore[arg-type]
        except TypeError:
            known = [spec.name for spec in fields(self)]
            unknown = sorted(set(options) - set(known))
            told = ", ".join(known)
            raise TypeError(f"unknown request option {unknown}; known: {told}") from None


Prompt = str | Request | Message | Iterable[Message]  # what callers like to write


_SHORT: Mapping[str, Callable[[Any], object]] = {
    "stop": lambda text: (text,),
    "tool_choice": ToolChoice,
}
_ROLES, _MODES = get_args(Role), get_args(Mode)
_OPTIONS: Mapping[str, Kinds] = {
    "tool_choice": (ToolChoice, NONE),
    "output": (Schema, NONE),
    "max_tokens": (int, NONE),
    "temperature": (int, float, NONE),
    "top_p": (int, float, NONE),
    "top_k": (int, NONE),
    "seed": (int, NONE),
    "reasoning": (str, NONE),
    "reasoning_tokens": (int, NONE),
    "user": (str, NONE),
}
_TOOL: Mapping[str, Kinds] = {"name": (str,), "description": (str,), "parameters": (dict, NONE)}


def _check_messages(messages: object) -> None:
    for n, message in enumerate(listed("messages", messages)):
        if not isinstance(message, Message):
            raise InvalidRequest(
                f"messages[{n}] is {kind_of(message)}; make one with user(...), assistant(...), "
                "system(...) or Message(role, parts)"
            )
        _check_word(f"messages[{n}].role", message.role, _ROLES)
        check_parts(f"messages[{n}].parts", message.parts)


def _check_options(options: Mapping[str, object]) -> None:
    for name, kinds in _OPTIONS.items():
        if name in options:
            check_kind(name, options[name], kinds)
    for n, tool in enumerate(listed("tools", options.get("tools", ()))):
        if isinstance(tool, Tool):
            check_fields(f"tools[{n}]", tool, _TOOL)
        elif not isinstance(tool, ServerTool):
            raise InvalidRequest(f"tools[{n}] is {kind_of(tool)}; make one with Tool(name, …)")
    for n, stop in enumerate(listed("stop", options.get("stop", ()))):
        check_kind(f"stop[{n}]", stop, (str,))
    choice = options.get("tool_choice")
    if isinstance(choice, ToolChoice):
        _check_word("tool_choice.mode", choice.mode, _MODES)


def _check_word(path: str, found: object, known: tuple[str, ...]) -> None:
    if found not in known:
        raise InvalidRequest(f"{path} is {found!r}; it must be one of {', '.join(known)}")


def system(text: str) -> Message:
    return Message("system", (Text(text),))


def user(*parts: str | Part) -> Message:
    return Message("user", tuple([Text(p) if isinstance(p, str) else p for p in parts]))


def assistant(*parts: str | Part) -> Message:
    return Message("assistant", tuple(Text(p) if isinstance(p, str) else p for p in parts))


def tool_result(call: ToolCall, content: str, *, is_error: bool = False) -> Message:
    return Message("tool", (ToolResult(call.id, call.name, (Text(content),), is_error),))
