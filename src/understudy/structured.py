"""An answer as a value of the caller's own type. Asks once; what cannot be read is an error."""

from __future__ import annotations

from typing import Protocol, TypeVar

from understudy.core.errors import StructuredError
from understudy.messages.request import Prompt
from understudy.messages.response import Response
from understudy.messages.schema import decode, schema_of
from understudy.messages.shapes import name_of

T = TypeVar("T")

SNIPPET = 200  # characters of the answer that an error shows


class Generates(Protocol):
    """The one thing needed of a model."""

    async def generate(
        self,
        prompt: Prompt,
        *,
        timeout: float | None = None,
        **options: object,
    ) -> Response: ...


def wrong(kind: str, reply: Response, why: str) -> StructuredError:
    """The error that names who served and shows what came."""
    said = reply.text or reply.refusal
    shown = f"; it said {said[:SNIPPET]!r}" if said else ""
    message = f"{reply.model or 'the model'} gave no {kind}: {why}{shown}"
    return StructuredError(message, reply.model, said)


async def generate_as(
    model: Generates,
    kind: type[T],
    prompt: Prompt,
    *,
    timeout: float | None = None,
    **options: object,
) -> T:
    """A `kind` (dataclass, msgspec Struct, pydantic model) from the first target that can."""
    schema = schema_of(kind)
    reply = await model.generate(prompt, timeout=timeout, output=schema, **options)
    if reason := _missing(reply):
        raise wrong(name_of(kind), reply, reason)
    try:
        return decode(kind, reply.text)
    except ValueError as error:
        why = " ".join(str(error).split())[:SNIPPET]
        if reply.finish_reason == "length":
            why = f"the answer was cut off ({why})"
        raise wrong(name_of(kind), reply, why) from error


def _missing(reply: Response) -> str:
    if reply.refusal:
        return "it refused"
    if reply.text.strip():
        return ""
    if reply.tool_calls:
        return f"it called the tool {reply.tool_calls[0].name!r} instead"
    return f"the answer is empty (finish reason {reply.finish_reason!r})"
