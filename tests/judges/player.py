"""A provider that plays a model well enough for a test suite of models: it reads what it is asked.

Offered tools, it calls the one that fits; given a schema, it fills it in; else it talks. What it
says is made from the question alone, so the same question has the same answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator

from understudy.messages.capabilities import ANYTHING, Capabilities
from understudy.messages.parts import Json, ToolCall
from understudy.messages.request import Request, Tool
from understudy.messages.response import Beat, Event, Response, TextDelta, Usage
from understudy.providers.base import Call, Patience

SPENT = Usage(11, 7, cache_read=3, reasoning=2)
ASIDE = "Break a leg."


class Player:
    """One model, any number of conversations."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.credentials = ("default",)
        self.patience = Patience()

    def capabilities(self, model: str) -> Capabilities:
        return ANYTHING

    async def generate(self, call: Call) -> Response:
        return _answer(call.request)

    async def stream(self, call: Call) -> AsyncGenerator[Event | Beat, None]:
        answer = _answer(call.request)
        for word in re.findall(r"\S+\s*", answer.text):
            yield TextDelta(word)
        for tool_call in answer.tool_calls:
            yield tool_call
        yield answer


def _answer(request: Request) -> Response:
    question = request.messages[-1].text
    if (tool := _wanted(request)) is not None:
        arguments = json.dumps(filled(tool.parameters, question), ensure_ascii=False)
        asked = ToolCall(f"call_{len(request.messages)}", tool.name, arguments)
        return Response(tool_calls=(asked,), finish_reason="tool_calls", usage=SPENT)
    if request.output is not None or "nothing other than JSON" in question:
        schema = request.output.schema if request.output else None
        schema = schema or _asked_for(question)
        return Response(json.dumps(filled(schema, question)), usage=SPENT)
    return Response(f"{ASIDE} You said: {question or 'nothing'}", usage=SPENT)


def _wanted(request: Request) -> Tool | None:
    """The tool to be called now, if any: not after its result, unless one must be called."""
    tools = [tool for tool in request.tools if isinstance(tool, Tool)]
    mode = request.tool_choice.mode if request.tool_choice else "auto"
    if not tools or mode == "none" or (mode == "auto" and request.messages[-1].role == "tool"):
        return None
    named = request.tool_choice.name if request.tool_choice else ""
    return next((tool for tool in tools if tool.name == named), tools[0])


def _asked_for(question: str) -> dict[str, Json]:
    """JSON without a schema: the keys are in the question, in quotes."""
    keys = re.findall(r"'(\w+)'", question)
    properties: dict[str, Json] = {key: {"type": "string"} for key in keys}
    return {"type": "object", "properties": properties}


def filled(schema: dict[str, Json] | None, question: str) -> dict[str, Json]:
    """A value for every property, taken from the question where it has one to give."""
    properties = (schema or {}).get("properties")
    assert isinstance(properties, dict | None)
    numbers = [int(text) for text in re.findall(r"-?\d+", question)] or [1]
    quoted = re.search(r"'([^']+)'", question)
    words = quoted.group(1) if quoted else question or ASIDE
    told: dict[str, Json] = {}
    for place, (name, kind) in enumerate((properties or {}).items()):
        whole = isinstance(kind, dict) and kind.get("type") in ("integer", "number")
        told[name] = numbers[place % len(numbers)] if whole else words
    return told
