"""Whole answers told as events, and what a stream's events have left untold. Knows no wire."""

from __future__ import annotations

from dataclasses import dataclass, field

from understudy.messages.parts import Part, Reasoning, Text, ToolCall
from understudy.messages.response import Event, ReasoningDelta, Response, TextDelta


def tell(part: Part, events: list[Event]) -> None:
    """Add the event of a part that came whole, if it has one."""
    match part:
        case Text(text=said) if said:
            events.append(TextDelta(said))
        case Reasoning(text=said) if said:
            events.append(ReasoningDelta(said))
        case ToolCall():
            events.append(part)


def told(response: Response) -> list[Event]:
    """The events of an answer that came whole: its deltas and calls, and itself last."""
    events: list[Event] = []
    for part in response.parts:
        tell(part, events)
    return [*events, response]


def shown(response: Response) -> tuple[Part, ...]:
    """What a client is to see. A refusal is text where a wire has no word for it."""
    if response.refusal and not response.text:
        return (*response.parts, Text(response.refusal))
    return response.parts


@dataclass(slots=True)
class Untold:
    """What a writer has passed on, so that the final answer adds only what is missing."""

    kinds: set[type[Part]] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)  # ids

    def note(self, event: Event) -> None:
        match event:
            case TextDelta():
                self.kinds.add(Text)
            case ReasoningDelta():
                self.kinds.add(Reasoning)
            case ToolCall():
                self.calls.append(event.id)

    def parts(self, response: Response) -> tuple[Part, ...]:
        """The parts of the answer that no event has told, in order."""
        calls = list(self.calls)
        left: list[Part] = []
        for part in shown(response):
            if isinstance(part, ToolCall) and part.id in calls:
                calls.remove(part.id)
            elif type(part) not in self.kinds:
                left.append(part)
        return tuple(left)
