"""Messages grouped as wires with alternating turns want them. Knows no wire."""

from __future__ import annotations

from collections.abc import Iterable

from understudy.messages.parts import Part, ToolResult
from understudy.messages.request import Message, Role


def split(own: Role, parts: Iterable[Part]) -> list[tuple[Role, tuple[Part, ...]]]:
    """One turn of a wire as messages of ours: tool results are a message of their own."""
    runs: list[tuple[Role, list[Part]]] = []
    for part in parts:
        role: Role = "tool" if isinstance(part, ToolResult) else own
        if not runs or runs[-1][0] != role:
            runs.append((role, []))
        runs[-1][1].append(part)
    return [(role, tuple(run)) for role, run in runs] or [(own, ())]


def asked(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """With a turn to answer: of nothing but system prompts the last one is the user's.

    OpenAI and Ollama answer such a history; the others refuse one without turns.
    """
    if not messages or any(message.role != "system" for message in messages):
        return messages
    last = messages[-1]
    return (*messages[:-1], Message("user", last.parts, last.extra))


def merged(messages: Iterable[Message]) -> list[Message]:
    """Neighbours that are one turn on such a wire as one message: tool results come first.

    The role of a turn is `user`, `assistant` or `system`; results are a user's. System prompts
    stay apart: where they may stand among the turns, each says for itself how long it holds.
    """
    turns: list[Message] = []
    for message in messages:
        role: Role = "user" if message.role == "tool" else message.role
        if turns and turns[-1].role == role != "system":
            last = turns.pop()
            parts, extra = (*last.parts, *message.parts), {**last.extra, **message.extra}
            turns.append(Message(role, parts, extra))
        elif message.role == role:
            turns.append(message)
        else:
            turns.append(Message(role, message.parts, message.extra))
    return [turn if len(turn.parts) < 2 else _results_first(turn) for turn in turns]


def _results_first(turn: Message) -> Message:
    parts = sorted(turn.parts, key=lambda part: not isinstance(part, ToolResult))
    return Message(turn.role, tuple(parts), turn.extra)
