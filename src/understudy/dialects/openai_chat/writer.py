"""A Chat Completions stream, written. Tool calls go out whole, in one delta each.

`include_usage` is the client's `stream_options.include_usage`: without it OpenAI sends no usage
chunk, and neither do we. `legacy`: it asked with `functions`, and knows no tool calls. What the
final answer holds and no event said before is written then.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from understudy.dialects.error_body import write_error
from understudy.dialects.json_access import Wire, encode
from understudy.dialects.openai_chat.parts import (
    LEGACY,
    REASONING,
    is_legacy,
    write_call,
    write_legacy,
)
from understudy.dialects.openai_chat.response import (
    UNNAMED,
    finish_word,
    in_old_style,
    write_message,
    write_usage,
)
from understudy.messages.parts import ToolCall
from understudy.messages.response import Event, ReasoningDelta, Response, TextDelta

_MORE = b',"finish_reason":null}]}\n\n'


@dataclass(slots=True)
class ChatWriter:
    """See `StreamWriter`."""

    model: str
    include_usage: bool = False
    id: str = UNNAMED
    created: int = 0  # seconds since 1970; a dialect has no clock
    legacy: bool = False
    _begun: bool = False
    _text: bool = False
    _thought: bool = False
    _calls: int = 0
    _head: bytes = field(default=b"", init=False)

    def __post_init__(self) -> None:
        envelope: Wire = {"id": self.id, "object": "chat.completion.chunk"}
        envelope |= {"created": self.created, "model": self.model}
        self._head = b"data: " + encode(envelope)[:-1] + b',"choices":[{"index":0,"delta":'

    def write_event(self, event: Event) -> bytes:
        if isinstance(event, TextDelta):  # nearly all of a stream
            self._text = True
            chunk = b'%b{"content":%b}%b' % (self._head, encode(event.text), _MORE)
            return chunk if self._begun else self._opening() + chunk
        match event:
            case ReasoningDelta(text=said):
                self._thought = True
                return self._opening() + self._delta({"reasoning_content": said})
            case ToolCall():
                return self._opening() + self._call(event)
            case _:
                return self._opening() + self._ending(event)

    def write_error(self, status: int, message: str, kind: str) -> bytes:
        return b"data: " + encode(write_error(status, message, kind)) + b"\n\n"

    def _opening(self) -> bytes:
        if self._begun:
            return b""
        self._begun = True
        return self._delta({"role": "assistant", "content": ""})

    def _delta(self, delta: Wire, finish: str | None = None) -> bytes:
        tail = _MORE if finish is None else b',"finish_reason":' + encode(finish) + b"}]}\n\n"
        return self._head + encode(delta) + tail

    def _call(self, call: ToolCall) -> bytes:
        index = self._calls
        self._calls += 1
        if self.legacy or (call.extra and is_legacy(call)):
            return b"" if index else self._delta(write_legacy(call))
        return self._delta({"tool_calls": [{"index": index, **write_call(call, same=False)}]})

    def _ending(self, response: Response) -> bytes:
        if self.legacy:
            response = in_old_style(response)
        message = write_message(response)
        written = [self._rest(message)]
        written += [self._call(call) for call in response.tool_calls[self._calls :]]
        written.append(self._delta({}, finish_word(response)))
        if self.include_usage and response.usage:
            written.append(self._usage(write_usage(response.usage)))
        return b"".join((*written, b"data: [DONE]\n\n"))

    def _rest(self, message: Wire) -> bytes:
        """What no delta said: refusals, pictures, sound, and text that came only at the end."""
        said = {"role": True, "tool_calls": True, LEGACY: True, "content": self._text}
        said |= dict.fromkeys(REASONING, self._thought)
        rest: Wire = {key: value for key, value in message.items() if value and not said.get(key)}
        return self._delta(rest) if rest else b""

    def _usage(self, usage: Wire) -> bytes:
        envelope: Wire = {"id": self.id, "object": "chat.completion.chunk"}
        envelope |= {"created": self.created, "model": self.model, "choices": []}
        return b"data: " + encode({**envelope, "usage": usage}) + b"\n\n"
