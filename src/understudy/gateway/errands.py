"""Requests that are passed on as they are: embeddings, token counts. A table.

They walk the same chains under the same rules as conversations do. A target that speaks another
dialect cannot take them and is passed over as `unsupported`, which is held against nobody.
"""

from __future__ import annotations

import msgspec

from understudy.core.errors import ProviderError
from understudy.core.faults import Fault
from understudy.dialects import embeddings
from understudy.dialects.anthropic import COUNT_TOKENS_PATH, Anthropic
from understudy.dialects.json_access import Whole
from understudy.gateway.ask import Errand
from understudy.messages.response import Usage


class _EmbeddingUsage(msgspec.Struct):
    prompt_tokens: Whole = 0


class _Embedded(msgspec.Struct):
    data: list[msgspec.Raw]
    usage: _EmbeddingUsage


_EMBEDDED = msgspec.json.Decoder(_Embedded)


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


EMBEDDINGS = Errand("embeddings", "openai", embeddings.path, _embedded)
ERRANDS = {
    "/v1/embeddings": EMBEDDINGS,
    "/embeddings": EMBEDDINGS,
    "/v1/messages/count_tokens": Errand(
        "count_tokens", "anthropic", lambda _: COUNT_TOKENS_PATH, _counted
    ),
}
