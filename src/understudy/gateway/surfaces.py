"""The doors clients come in by: which path speaks which dialect. A table, and how it is read."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from understudy.core.errors import InvalidRequest
from understudy.dialects.base import Dialect
from understudy.dialects.table import DIALECTS, dialect_named
from understudy.gateway.ask import CONTENTS, NAME_MOST, PEEK, PEEKS, Ask, peek
from understudy.gateway.errands import ERRANDS
from understudy.gateway.http import Request

PATHS = {
    "/v1/chat/completions": "openai",
    "/chat/completions": "openai",
    "/v1/responses": "responses",
    "/responses": "responses",
    "/v1/messages": "anthropic",
    "/api/chat": "ollama",
}
STREAMS_UNASKED = {"ollama"}  # where a missing `stream` means yes
GEMINI = ("/v1beta/models/", "/v1/models/", "/v1alpha/models/")
ARRAY = frozenset({"array"})
VERBS = {"generateContent": False, "streamGenerateContent": True}  # is it a stream


@dataclass(frozen=True, slots=True)
class Surfaces:
    """One dialect object for each, shared by all requests."""

    dialects: dict[str, Dialect]

    @classmethod
    def all(cls) -> Surfaces:
        return cls({name: dialect_named(name) for name in DIALECTS})

    def read(self, request: Request) -> Ask | None:
        """What is asked for, if this path is a surface; raises InvalidRequest for a bad body."""
        name = PATHS.get(request.path)
        if name is not None:
            seen = peek(request.body, PEEKS[name])
            seen.check()
            stream = name in STREAMS_UNASKED if seen.stream is None else seen.stream
            return Ask(self.dialects[name], seen.model, stream, request.body, kept=seen.kept)
        errand = ERRANDS.get(request.path)
        if errand is not None:
            dialect, body = self.dialects[errand.dialect], request.body
            return Ask(dialect, peek(body, PEEK).model, False, body, errand=errand)
        if request.path.startswith(GEMINI):
            return self._gemini(request)
        return None

    def spoken(self, path: str) -> Dialect:
        """The dialect errors on this path are written in; OpenAI's where nobody can tell."""
        name = PATHS.get(path)
        if name is not None:
            return self.dialects[name]
        if path.startswith("/v1/messages"):
            return self.dialects["anthropic"]
        if path.startswith(GEMINI):
            return self.dialects["gemini"]
        return self.dialects["openai"]

    def _gemini(self, request: Request) -> Ask | None:
        model, colon, verb = request.path.split("/models/", 1)[1].rpartition(":")
        if not colon or verb not in VERBS:
            return None
        if not model:
            raise InvalidRequest(
                "the path names no model; write /v1beta/models/MODEL:generateContent"
            )
        if len(model) > NAME_MOST:
            raise InvalidRequest(f"the path's model has more than {NAME_MOST} characters")
        seen = peek(request.body, CONTENTS)
        stream = VERBS[verb]
        array = stream and request.parameter("alt") != "sse"
        # Without `alt=sse` the client expects one JSON array; targets are always asked for SSE.
        dialect = dialect_named("gemini", ARRAY) if array else self.dialects["gemini"]
        name, body = unquote(model), request.body
        return Ask(dialect, name, stream, body, False, not array, kept=seen.kept)


def is_surface(path: str) -> bool:
    """Can a model be asked here?"""
    return path in PATHS or (path.startswith(GEMINI) and path.rpartition(":")[2] in VERBS)
