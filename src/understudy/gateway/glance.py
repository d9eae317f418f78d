"""Is a relayed body an answer, and is content in a stream's first bytes? Seen at a glance.

The common shapes only; a glance never says no. Whatever it does not recognise goes to the
dialect, which knows.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from understudy.core.answers import FAILED_ENDS
from understudy.core.errors import ProviderError
from understudy.dialects.base import Dialect
from understudy.dialects.json_access import Whole
from understudy.messages.response import Usage


class _Details(msgspec.Struct):
    cached_tokens: Whole | None = 0
    reasoning_tokens: Whole | None = 0


class _ChatUsage(msgspec.Struct):
    prompt_tokens: Whole = 0
    completion_tokens: Whole = 0
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None


class _Message(msgspec.Struct):
    content: str | None = None
    tool_calls: list[msgspec.Raw] | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None
    error: msgspec.Raw | None = None


class _Chat(msgspec.Struct):
    choices: list[_Choice]
    usage: _ChatUsage | None = None
    error: msgspec.Raw | None = None


class _Block(msgspec.Struct):
    type: str
    text: str = ""


class _MessageUsage(msgspec.Struct):
    input_tokens: Whole = 0
    output_tokens: Whole = 0
    cache_read_input_tokens: Whole | None = 0
    cache_creation_input_tokens: Whole | None = 0


class _Messages(msgspec.Struct):
    content: list[_Block]
    usage: _MessageUsage
    error: msgspec.Raw | None = None


_CHAT = msgspec.json.Decoder(_Chat)
_MESSAGES = msgspec.json.Decoder(_Messages)


def _chat(body: bytes) -> Usage | None:
    seen = _CHAT.decode(body)
    message, usage = seen.choices[0].message, seen.usage
    said = message.content is not None and not message.content.isspace() and message.content != ""
    failed = seen.error is not None or any(map(_failed, seen.choices))
    if failed or usage is None or not (said or message.tool_calls):
        return None
    before = usage.prompt_tokens_details
    thought = usage.completion_tokens_details
    cached = (before.cached_tokens or 0) if before else 0
    return Usage(
        usage.prompt_tokens,
        usage.completion_tokens,
        cache_read=cached,
        reasoning=(thought.reasoning_tokens or 0) if thought else 0,
        cache_apart=cached > usage.prompt_tokens,
    )


def _failed(choice: _Choice) -> bool:
    return choice.error is not None or choice.finish_reason in FAILED_ENDS


def _messages(body: bytes) -> Usage | None:
    seen = _MESSAGES.decode(body)
    said = any(b.type == "tool_use" or b.text.strip() for b in seen.content)
    if seen.error is not None or not said:
        return None
    usage = seen.usage
    return Usage(
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_input_tokens or 0,
        usage.cache_creation_input_tokens or 0,
        cache_apart=True,
    )


GLANCES: dict[str, Callable[[bytes], Usage | None]] = {"openai": _chat, "anthropic": _messages}


def usage_of(dialect: Dialect, body: bytes) -> Usage | None:
    """The usage of an answer; raises `WireError`, `Garbled` or `empty_content` if it is none."""
    glance = GLANCES.get(dialect.name)
    if glance is not None:
        try:
            usage = glance(body)
        except (msgspec.DecodeError, UnicodeDecodeError, IndexError, RecursionError):
            usage = None
        if usage is not None:
            return usage
    response = dialect.read_response(body)
    if reason := response.blank:
        raise ProviderError(response.void, message=reason, billing="maybe_billed")
    return response.usage


class _Delta(msgspec.Struct, forbid_unknown_fields=True):
    role: str | None = None
    content: str | None = None
    refusal: None = None


class _Piece(msgspec.Struct):
    delta: _Delta
    finish_reason: None = None
    error: None = None


class _Chunk(msgspec.Struct):
    choices: list[_Piece]
    error: None = None


class _Text(msgspec.Struct, forbid_unknown_fields=True):
    type: str
    text: str


class _BlockEvent(msgspec.Struct):
    type: str
    delta: _Text | None = None
    content_block: _Text | None = None


_CHUNK = msgspec.json.Decoder(_Chunk)
_BLOCK_EVENT = msgspec.json.Decoder(_BlockEvent)
QUIET = ("message_start", "ping")  # events of Anthropic's that come before any content


def _chunk(frame: bytes) -> bool | None:
    if not frame.startswith(b"data: {"):
        return None
    choices = _CHUNK.decode(frame[6:]).choices
    if len(choices) != 1:
        return None
    content = choices[0].delta.content
    return bool(content) and not content.isspace()  # type: ignore[union-attr]


def _block_event(frame: bytes) -> bool | None:
    head, _, data = frame.partition(b"\ndata: ")
    if not head.startswith(b"event: "):
        return None
    event = _BLOCK_EVENT.decode(data)
    if event.type == "content_block_delta" and event.delta is not None:
        text = event.delta.text
        return event.delta.type == "text_delta" and text != "" and not text.isspace()
    begins = event.type == "content_block_start" and event.content_block is not None
    return False if event.type in QUIET or begins else None


FRAMES: dict[str, Callable[[bytes], bool | None]] = {"openai": _chunk, "anthropic": _block_event}


def content_in(dialect: str, data: bytes) -> bool | None:
    """Is there content in whole frames of a stream? None: this has to be read properly."""
    look = FRAMES.get(dialect)
    at, size = 0, len(data)
    if look is None:
        return None
    try:
        while at < size:
            end = data.find(b"\n\n", at)
            seen = None if end < 0 else look(data[at:end])
            if seen is not False:
                return seen
            at = end + 2
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return False
