"""Small words for the Chat tests: requests, answers, chunks and streams as vendors write them."""

from __future__ import annotations

import json
from typing import Any

from understudy.dialects.base import Dialect
from understudy.dialects.json_access import encode
from understudy.dialects.openai_chat import OpenAIChat
from understudy.messages.request import (
    Request,
)
from understudy.messages.response import Event, Response

CHAT = OpenAIChat()
DIALECT: Dialect = CHAT  # the type checker's test that it is one


def read(wire: dict[str, Any]) -> Request:
    return CHAT.read_request(json.dumps(wire).encode(), "m").request


def sent(request: Request, dialect: OpenAIChat = CHAT, *, stream: bool = False) -> Any:
    """What goes out for a request, as its receiver decodes it."""
    return json.loads(encode(dialect.write_request(request, "m", stream)))


def rewritten(wire: dict[str, Any]) -> dict[str, Any]:
    """A request after a trip through the neutral types."""
    inbound = CHAT.read_request(json.dumps(wire).encode())
    return CHAT.write_request(inbound.request, inbound.model, inbound.stream)


def asking(*messages: dict[str, Any], **options: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages), **options}


def answering(message: dict[str, Any], finish: str | None = "stop", **more: Any) -> bytes:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return json.dumps({"id": "r", "model": "m", "choices": [choice], **more}).encode()


def chunk(delta: dict[str, Any] | None, finish: str | None = None, **more: Any) -> str:
    choice: dict[str, Any] = {"index": 0, "finish_reason": finish}
    if delta is not None:
        choice["delta"] = delta
    return json.dumps({"id": "r", "model": "m", "choices": [choice], **more})


def sse(*payloads: str, ending: str = "data: [DONE]\n\n") -> bytes:
    return ("".join(f"data: {payload}\n\n" for payload in payloads) + ending).encode()


def streamed(body: bytes, size: int = 1 << 30) -> list[Event]:
    reader = CHAT.reader()
    events = [e for at in range(0, len(body), size) for e in reader.feed(body[at : at + size])]
    events += reader.end()
    if reader.failure:
        raise reader.failure
    assert reader.done
    return events


def final(*payloads: str, ending: str = "data: [DONE]\n\n") -> Response:
    *_, last = streamed(sse(*payloads, ending=ending))
    assert isinstance(last, Response)
    return last


def call_piece(index: int | None = 0, **fields: Any) -> dict[str, Any]:
    words = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    piece: dict[str, Any] = {**fields, "function": words}
    return piece if index is None else {"index": index, **piece}
