"""Real clients, each reduced to two verbs: ask for a text, and listen to a stream of it.

Whatever an SDK raises comes out as it is. Retries are off: one question is one request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.clients import speak_anthropic as claude
from tests.clients import speak_google as google
from tests.clients import speak_ollama as llama
from tests.clients import speak_openai as oai

Hear = Callable[[str], None]


@dataclass(frozen=True)
class Errors:
    """What an SDK raises, by class name."""

    unauthorised: str  # 401
    exhausted: str  # 503
    limited: str  # 429
    broken: str  # a stream that was cut


@dataclass(frozen=True)
class Sdk:
    """A package, one of the dialects it speaks, and its errors."""

    package: str
    dialect: str
    errors: Errors


@dataclass(frozen=True)
class Speaker:
    """One way of using one SDK."""

    name: str
    sdk: Sdk
    plain: Callable[[str, str], str]  # address and key -> the text
    stream: Callable[[str, str, Hear], str]  # each piece is heard; -> the text as accumulated

    def __str__(self) -> str:
        return self.name.replace(" ", "-")

    @property
    def dialect(self) -> str:
        return self.sdk.dialect

    @property
    def errors(self) -> Errors:
        return self.sdk.errors

    def need(self) -> None:
        pytest.importorskip(self.sdk.package)


OPENAI = Errors(
    "openai.AuthenticationError",
    "openai.InternalServerError",
    "openai.RateLimitError",
    "openai.APIError",
)
CHAT = Sdk("openai", "openai", OPENAI)
RESPONSES = Sdk("openai", "responses", OPENAI)
MESSAGES = Sdk(
    "anthropic",
    "anthropic",
    Errors(
        "anthropic.AuthenticationError",
        "anthropic.ServiceUnavailableError",
        "anthropic.RateLimitError",
        "anthropic.APIStatusError",
    ),
)
GEMINI = Sdk(
    "google.genai",
    "gemini",
    Errors("google.ClientError", "google.ServerError", "google.ClientError", "google.ServerError"),
)
OLLAMA = Sdk("ollama", "ollama", Errors(*["ollama.ResponseError"] * 4))

# fmt: off
SPEAKERS = (
    Speaker("openai", CHAT, oai.chat, oai.chat_stream),
    Speaker("openai async", CHAT, oai.chat_async, oai.chat_stream_async),
    Speaker("openai accumulator", CHAT, oai.chat, oai.chat_accumulated),
    Speaker("responses", RESPONSES, oai.responses, oai.responses_stream),
    Speaker("responses async", RESPONSES, oai.responses_async, oai.responses_stream_async),
    Speaker("responses accumulator", RESPONSES, oai.responses, oai.responses_accumulated),
    Speaker("anthropic", MESSAGES, claude.message, claude.events),
    Speaker("anthropic async", MESSAGES, claude.message_async, claude.accumulated_async),
    Speaker("anthropic accumulator", MESSAGES, claude.message, claude.accumulated),
    Speaker("gemini", GEMINI, google.content, google.content_stream),
    Speaker("gemini async", GEMINI, google.content_async, google.content_stream_async),
    Speaker("gemini chat", GEMINI, google.content, google.chat_accumulated),
    Speaker("ollama", OLLAMA, llama.chat, llama.chat_stream),
    Speaker("ollama async", OLLAMA, llama.chat_async, llama.chat_stream_async),
)
# fmt: on
