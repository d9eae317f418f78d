"""`understudy ask`: the answer as it comes, then the story of how it came about."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass

from understudy.commands import story
from understudy.commands.chains import Source
from understudy.commands.screen import Screen
from understudy.core.errors import ChainExhausted, ProviderError
from understudy.core.target import Attempt
from understudy.gateway.shapes import attempt_told
from understudy.messages.request import Request, system, user
from understudy.messages.response import Response, TextDelta
from understudy.model import Model
from understudy.providers.http import HttpProvider


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and how the answer is wanted."""

    spec: str
    prompt: str
    system: str | None = None
    timeout: float | None = None  # seconds
    stream: bool = True
    json: bool = False

    @property
    def request(self) -> Request:
        said = (system(self.system),) if self.system else ()
        return Request(messages=(*said, user(self.prompt)))


def ask(question: Question, source: Source, screen: Screen) -> bool:
    """Prints answer and story; False if there was no whole answer."""
    attempts: list[Attempt] = []
    model = source.model(question.spec, attempts.append)
    response, error = asyncio.run(_answered(model, question, screen))
    if question.json:
        screen.json(_told(response, error, attempts))
    else:
        screen.table(story.table(attempts), beside=True)
        if error is not None:
            screen.note(f"error: {error}")
    return error is None


Outcome = tuple[Response | None, ProviderError | ChainExhausted | None]


async def _answered(model: Model, question: Question, screen: Screen) -> Outcome:
    try:
        if question.stream:
            return await _streamed(model, question, screen), None
        response = await model.generate(question.request, timeout=question.timeout)
        if not question.json:
            screen.data(response.text)
        return response, None
    except (ChainExhausted, ProviderError) as error:
        return None, error
    finally:
        for provider in model.cast.providers.values():
            if isinstance(provider, HttpProvider):
                await provider.aclose()


async def _streamed(model: Model, question: Question, screen: Screen) -> Response | None:
    """Shows text as it comes; a broken stream leaves its line, so that the error has its own."""
    last = "\n"
    try:
        async with model.stream(question.request, timeout=question.timeout) as events:
            async for event in events:
                if isinstance(event, Response):
                    return event
                if isinstance(event, TextDelta) and not question.json:
                    screen.write(event.text)
                    last = event.text[-1:] or last
    finally:
        if last != "\n":
            screen.write("\n")
    return None


def _told(
    response: Response | None,
    error: ProviderError | ChainExhausted | None,
    attempts: list[Attempt],
) -> dict[str, object]:
    told: dict[str, object] = {
        "text": None,
        "model": None,
        "finish_reason": None,
        "usage": None,
        "error": None,
    }
    if response is not None:
        told |= {
            "text": response.text,
            "model": response.model,
            "finish_reason": response.finish_reason,
            "usage": None if response.usage is None else asdict(response.usage),
        }
    if error is not None:
        fault = None if isinstance(error, ChainExhausted) else str(error.fault)
        told["error"] = {
            "kind": "exhausted" if fault is None else fault,
            "message": str(error),
            "retry_after": error.retry_after,
        }
    return told | {"attempts": [attempt_told(attempt) for attempt in attempts]}
