"""Real clients, each reduced to two verbs: ask for a text, and listen to a stream of it.

Whatever an SDK raises comes out as it is. Retries are off: one question is one request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from tests.clients import speak_anthropic, speak_google, speak_ollama, speak_openai
from tests.clients.rig import Setting

Hear = Callable[[str], None]


@dataclass(frozen=True)
class Errors:
    """What an SDK raises, by class name."""

    unauthorised: str  # 401
    exhausted: str  # 503
    limited: str  # 429


@dataclass(frozen=True)
class Speaker:
    """One way of using one SDK."""

    name: str
    package: str
    dialect: str
    errors: Errors
    plain: Callable[[str, str], str]  # address and key -> the text
    stream: Callable[[str, str, Hear], str]  # each piece is heard; -> the text as accumulated
    broken: str  # what a stream that was cut raises

    def __str__(self) -> str:
        return self.name.replace(" ", "-")

    def need(self) -> None:
        pytest.importorskip(self.package)


OPENAI = Errors("openai.AuthenticationError", "openai.InternalServerError", "openai.RateLimitError")
ANTHROPIC = Errors("anthropic.AuthenticationError", "anthropic.ServiceUnavailableError", "anthropic.RateLimitError")
GOOGLE = Errors("google.ClientError", "google.ServerError", "google.ClientError")
OLLAMA = Errors("ollama.ResponseError", "ollama.ResponseError", "ollama.ResponseError")

# fmt: off
SPEAKERS = (
    Speaker("openai", "openai", "openai", OPENAI, speak_openai.chat, speak_openai.chat_stream, "openai.APIError"),
    Speaker("openai async", "openai", "openai", OPENAI, speak_openai.chat_async, speak_openai.chat_stream_async, "openai.APIError"),
    Speaker("openai accumulator", "openai", "openai", OPENAI, speak_openai.chat, speak_openai.chat_accumulated, "openai.APIError"),
    Speaker("responses", "openai", "responses", OPENAI, speak_openai.responses, speak_openai.responses_stream, "openai.APIError"),
    Speaker("responses async", "openai", "responses", OPENAI, speak_openai.responses_async, speak_openai.responses_stream_async, "openai.APIError"),
    Speaker("responses accumulator", "openai", "responses", OPENAI, speak_openai.responses, speak_openai.responses_accumulated, "openai.APIError"),
    Speaker("anthropic", "anthropic", "anthropic", ANTHROPIC, speak_anthropic.message, speak_anthropic.events, "anthropic.APIStatusError"),
    Speaker("anthropic async", "anthropic", "anthropic", ANTHROPIC, speak_anthropic.message_async, speak_anthropic.accumulated_async, "anthropic.APIStatusError"),
    Speaker("anthropic accumulator", "anthropic", "anthropic", ANTHROPIC, speak_anthropic.message, speak_anthropic.accumulated, "anthropic.APIStatusError"),
    Speaker("gemini", "google.genai", "gemini", GOOGLE, speak_google.content, speak_google.content_stream, "google.ServerError"),
    Speaker("gemini async", "google.genai", "gemini", GOOGLE, speak_google.content_async, speak_google.content_stream_async, "google.ServerError"),
    Speaker("gemini chat", "google.genai", "gemini", GOOGLE, speak_google.content, speak_google.chat_accumulated, "google.ServerError"),
    Speaker("ollama", "ollama", "ollama", OLLAMA, speak_ollama.chat, speak_ollama.chat_stream, "ollama.ResponseError"),
    Speaker("ollama async", "ollama", "ollama", OLLAMA, speak_ollama.chat_async, speak_ollama.chat_stream_async, "ollama.ResponseError"),
)
# fmt: on
