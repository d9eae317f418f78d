"""What is answered: a whole `Response`, or events that end in one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from understudy.core.faults import Fault
from understudy.core.target import Attempt
from understudy.core.values import quick
from understudy.messages.parts import (
    Extra,
    File,
    Image,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
)

OVERFULL = "model_context_window_exceeded"  # a wire's own word, of Anthropic's and of Z.ai's
FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "other"]


@quick
@dataclass(frozen=True)
class Usage:
    """Tokens as the wire counts them.

    The vendors disagree: Anthropic leaves cached tokens out of its input, Gemini leaves reasoning
    out of its output. The two flags say so, and `total_input`, `total_output` are comparable.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    tool_input: int = 0  # prompts of provider-run tools (Gemini), beside `input`
    cache_apart: bool = False  # cache_read and cache_write are not within input
    reasoning_apart: bool = False  # reasoning is not within output

    @property
    def total_input(self) -> int:
        cached = self.cache_read + self.cache_write if self.cache_apart else 0
        return self.input + self.tool_input + cached

    @property
    def total_output(self) -> int:
        return self.output + (self.reasoning if self.reasoning_apart else 0)

    @property
    def total(self) -> int:
        return self.total_input + self.total_output


@quick
@dataclass(frozen=True)
class Response:
    """A whole answer. Give `parts`, or `text`, `reasoning`, `tool_calls`: each tells the other."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    finish_reason: FinishReason = "stop"
    usage: Usage | None = None
    model: str = ""  # from a chain: the `provider/model` that served; from a dialect: the wire's
    attempts: tuple[Attempt, ...] = ()
    refusal: str = ""
    id: str = ""
    finish_raw: str = ""  # the wire's own word
    parts: tuple[Part, ...] = ()
    issuer: str = ""  # the dialect that read this; `extra` goes back to it only
    extra: Extra = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        tell = _from_parts(self.parts) if self.parts else {"parts": _to_parts(self)}
        for name, value in tell.items():
            object.__setattr__(self, name, value)

    @property
    def blank(self) -> str:
        """Why this is no answer, or "" if it is one (contract C11)."""
        if self.text.strip() or self.tool_calls or self.refusal:
            return ""
        if self.finish_reason == "content_filter":
            return ""  # filtered is an answer: another target must not be asked to get round it
        if self.finish_reason == "length" and self._thought:
            return ""  # all it was allowed went into thinking, which may be hidden
        if any(isinstance(part, Image | File | Opaque) for part in self.parts):
            return ""
        if self.finish_raw == OVERFULL:
            return "the request fills the context window"
        return "neither text, tool call nor image came back"

    @property
    def void(self) -> Fault:
        """What a blank answer amounts to: Z.ai refuses too long a request with one."""
        return Fault.CONTEXT_LENGTH if self.finish_raw == OVERFULL else Fault.EMPTY_CONTENT

    @property
    def _thought(self) -> bool:
        told = any(isinstance(part, Reasoning) for part in self.parts)
        return told or (self.usage is not None and self.usage.reasoning > 0)


def _from_parts(parts: tuple[Part, ...]) -> dict[str, object]:
    first = parts[0]
    if len(parts) == 1 and isinstance(first, Text):  # as nearly always
        return {"text": first.text, "reasoning": "", "tool_calls": ()}
    return {
        "text": "".join(part.text for part in parts if isinstance(part, Text)),
        "reasoning": "".join(part.text for part in parts if isinstance(part, Reasoning)),
        "tool_calls": tuple(part for part in parts if isinstance(part, ToolCall)),
    }


def _to_parts(answer: Response) -> tuple[Part, ...]:
    thinking = (Reasoning(answer.reasoning),) if answer.reasoning else ()
    text = (Text(answer.text),) if answer.text else ()
    return (*thinking, *text, *answer.tool_calls)


@quick
@dataclass(frozen=True, slots=True)
class TextDelta:
    """Some more visible text."""

    text: str


@quick
@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """Some more thinking."""

    text: str


@dataclass(frozen=True, slots=True)
class Beat:
    """A sign of life between provider and driver: content is on its way, but not yet whole.

    Pieces of a tool call's arguments give beats, so that a long call is no stall. Callers never
    see one.
    """


BEAT = Beat()

# A stream gives deltas and whole tool calls, then exactly one Response, last.
Event = TextDelta | ReasoningDelta | ToolCall | Response


def is_content(event: Event | Beat) -> bool:
    """Does this commit us to the target? Blank text does not: it may be all there is."""
    if isinstance(event, TextDelta):
        return not event.text.isspace() and event.text != ""
    if isinstance(event, ReasoningDelta):
        return event.text != ""
    return not isinstance(event, Response)


def with_calls(response: Response, change: Callable[[ToolCall], ToolCall]) -> Response:
    """The answer with each of its calls changed; the same object if it calls nothing."""
    if not response.tool_calls:
        return response
    parts = (change(part) if isinstance(part, ToolCall) else part for part in response.parts)
    return replace(response, parts=tuple(parts))


def with_call(event: Event, change: Callable[[ToolCall], ToolCall]) -> Event:
    """The same for an event of a stream."""
    match event:
        case Response():
            return with_calls(event, change)
        case ToolCall():
            return change(event)
    return event
