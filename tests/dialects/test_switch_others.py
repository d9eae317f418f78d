"""Histories survive a switch of vendor (contract M6): what is said arrives, what is bound stays.

A request that one dialect read is written by another and read again; the words, the calls and
their results are the same, and nothing that belonged to the first vendor has come along.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies_more import anthropic_requests
from strategies_others import gemini_requests, ollama_requests
from wire_rig import encoded

from understudy.core.errors import ProviderError
from understudy.core.faults import Fault
from understudy.dialects.anthropic import Anthropic
from understudy.dialects.base import Dialect
from understudy.dialects.gemini import Gemini
from understudy.dialects.ollama import Ollama
from understudy.dialects.turns import asked
from understudy.messages.parts import File, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from understudy.messages.request import Message, Request, Role, Tool

DIALECTS: dict[str, Dialect] = {"anthropic": Anthropic(), "gemini": Gemini(), "ollama": Ollama()}
MODELS = {"anthropic": "claude-sonnet-4-5", "gemini": "gemini-2.5-flash", "ollama": "llama"}
REQUESTS: dict[str, st.SearchStrategy[Request]] = {
    "anthropic": anthropic_requests(),
    "gemini": gemini_requests(),
    "ollama": ollama_requests(),
}


def wordy(message: Message) -> Message:
    """Without files, and with results as words only: these travel differently on every wire."""
    parts = (part for part in message.parts if not isinstance(part, File))
    return replace(message, parts=tuple(map(_wordy, parts)))


def _wordy(part: Part) -> Part:
    if not isinstance(part, ToolResult):
        return part
    return replace(part, content=tuple(p for p in part.content if isinstance(p, Text)))


def said(request: Request, role: Role) -> str:
    """The words of a role; blanks aside, which some wires refuse to carry alone."""
    told = "".join(message.text for message in request.messages if message.role == role)
    return "".join(told.split())


def parts_of(request: Request) -> list[Part]:
    return [part for message in request.messages for part in message.parts]


def calls(request: Request) -> list[tuple[str, str, str]]:
    found = (part for part in parts_of(request) if isinstance(part, ToolCall))
    return [(call.id, call.name, call.arguments) for call in found]


def results(request: Request) -> list[tuple[str, str, str, bool]]:
    found = (part for part in parts_of(request) if isinstance(part, ToolResult))
    return [(it.id, it.name, "".join(it.text.split()), it.is_error) for it in found]


def leftovers(request: Request) -> list[object]:
    """Whatever only the vendor that read it could understand."""
    strange = [part for part in parts_of(request) if isinstance(part, Reasoning | Opaque)]
    holders: list[Part | Message | Tool] = [*parts_of(request), *request.messages]
    holders += [tool for tool in request.tools if isinstance(tool, Tool)]
    extras = [it.extra for it in holders if not isinstance(it, Opaque) and it.extra]
    return [*strange, *extras, *([request.extra] if request.extra else [])]


@pytest.mark.parametrize(("first", "second"), list(permutations(DIALECTS, 2)))
@given(data=st.data())
def test_a_history_survives_a_switch(first: str, second: str, data: st.DataObject) -> None:
    drawn = data.draw(REQUESTS[first])
    request = replace(
        drawn,
        messages=tuple(map(wordy, drawn.messages)),
        output=None,
        reasoning=None,
        reasoning_tokens=None,
    )
    other, model = DIALECTS[second], MODELS[second]
    try:
        body = other.write_request(request, model, stream=False)
    except ProviderError as error:
        assert error.fault is Fault.UNSUPPORTED  # noqa: PT017 - or else it must have arrived
        return
    if second != "ollama":
        request = replace(request, messages=asked(request.messages))
    found = other.read_request(encoded(body), model).request
    roles: tuple[Role, ...] = ("system", "user", "assistant")
    assert [said(found, role) for role in roles] == [said(request, role) for role in roles]
    assert calls(found) == calls(request)
    assert results(found) == results(request)
    named = [tool.name for tool in request.tools if isinstance(tool, Tool)]
    none = request.tool_choice is not None and request.tool_choice.mode == "none"
    offered = [] if none and second == "ollama" else named
    assert [tool.name for tool in found.tools if isinstance(tool, Tool)] == offered
    assert leftovers(found) == []
