"""Requests that are passed on as they are: embeddings, token counts. Never translated.

They walk the same chains under the same rules as conversations do. A target that speaks another
dialect cannot take them and is passed over as `unsupported`, which is held against nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

import msgspec

from understudy.core.errors import InvalidRequest, ProviderError
from understudy.core.faults import Fault
from understudy.core.target import Attempt
from understudy.core.walk import Step, Try, Wait, walk
from understudy.dialects import embeddings
from understudy.dialects.anthropic import COUNT_TOKENS_PATH, Anthropic
from understudy.dialects.base import Dialect, Garbled, WireError
from understudy.dialects.openai_chat import OpenAIChat
from understudy.driver import Cast, drive, guard
from understudy.gateway.exchange import Ask
from understudy.messages.response import Usage
from understudy.providers.base import Provider
from understudy.providers.http import HttpProvider
from understudy.timers import sleep


class _Embedding(OpenAIChat):
    """OpenAI's dialect at another path."""

    def path(self, model: str, stream: bool) -> str:
        return embeddings.path(model)


class _Counting(Anthropic):
    """Anthropic's dialect at another path."""

    def path(self, model: str, stream: bool) -> str:
        return COUNT_TOKENS_PATH


class _EmbeddingUsage(msgspec.Struct):
    prompt_tokens: int = 0


class _Embedded(msgspec.Struct):
    data: list[msgspec.Raw]
    usage: _EmbeddingUsage


_EMBEDDED = msgspec.json.Decoder(_Embedded)
_SHALLOW = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _embedded(body: bytes) -> Usage | None:
    """What an answer used. The vectors are only counted, unless the shape is an odd one."""
    try:
        seen = _EMBEDDED.decode(body)
        count, tokens = len(seen.data), seen.usage.prompt_tokens
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        read = embeddings.read_response(body)
        count, tokens = read.count, read.input_tokens or 0
    if not count:
        message = "no vector came back"
        raise ProviderError(Fault.EMPTY_CONTENT, message=message, billing="maybe_billed")
    return Usage(tokens)


def _counted(body: bytes) -> Usage | None:
    """A count is no consumption: it is looked at, not added up."""
    Anthropic().read_token_count(body)
    return None


def _shallow(body: bytes) -> dict[str, msgspec.Raw]:
    try:
        return _SHALLOW.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(f"the body is not JSON: {error}") from None


@dataclass(frozen=True, slots=True)
class Errand:
    """One such surface: its name in logs, the wire it needs, and how its answer is read."""

    name: str
    dialect: Dialect
    usage: Callable[[bytes], Usage | None]


EMBEDDINGS = Errand("embeddings", _Embedding(), _embedded)
ERRANDS = {
    "/v1/embeddings": EMBEDDINGS,
    "/embeddings": EMBEDDINGS,
    "/v1/messages/count_tokens": Errand("count_tokens", _Counting(), _counted),
}


class Passage:
    """One request being passed on."""

    def __init__(
        self,
        errand: Errand,
        ask: Ask,
        cast: Cast,
        deadline: float,
        observe: Callable[[Attempt], None],
    ) -> None:
        self.ask = ask
        self.cast = cast
        self.story: list[Attempt] = []
        self.usage: Usage | None = None
        self._errand = errand
        self._fields: dict[str, msgspec.Raw] = {}
        self._observe = observe
        self._steps = walk(cast.chain, cast.stage, deadline=deadline, observe=self._note)

    async def plain(self) -> bytes:
        """The whole answer, as it came."""
        # Before the walk: a body that cannot be read must not be held against a target.
        self._fields = _shallow(self.ask.body)
        body = await drive(self._steps, self._act)
        assert isinstance(body, bytes)
        return body

    async def _act(self, step: Step) -> object:
        clock = self.cast.stage.clock
        if isinstance(step, Wait):
            await sleep(clock, step.seconds)
            return None
        assert isinstance(step, Try)
        provider = self._able(self.cast.providers[step.target.provider])
        model = msgspec.Raw(msgspec.json.encode(step.target.model))
        body = msgspec.json.encode({**self._fields, "model": model})
        with guard(clock, step, provider.patience.response, "pre_first_byte"):
            answer = await provider.relay(step.target.model, body, step.credential)
        try:
            self.usage = self._errand.usage(answer)
        except (WireError, Garbled) as error:
            raise provider.not_an_answer(error, stream=False) from error
        return answer

    def _able(self, provider: Provider) -> HttpProvider:
        """The same provider with its credentials and connections, asked at the errand's path."""
        wanted = self._errand.dialect
        if not isinstance(provider, HttpProvider) or provider.dialect.name != wanted.name:
            message = f"{self._errand.name} needs a target that speaks {wanted.name}"
            raise ProviderError(Fault.UNSUPPORTED, message=message, billing="not_sent")
        elsewhere = copy(provider)
        elsewhere.dialect = wanted
        return elsewhere

    def _note(self, attempt: Attempt) -> None:
        self.story.append(attempt)
        self._observe(attempt)
