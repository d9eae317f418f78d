"""Small words for the Responses tests: requests, answers and events as vendors write them."""

from __future__ import annotations

import json
from typing import Any

from understudy.dialects.base import Dialect
from understudy.dialects.json_access import encode
from understudy.dialects.openai_responses import OpenAIResponses
from understudy.messages.request import Request
from understudy.messages.response import Event, Response

RESPONSES = OpenAIResponses()
DIALECT: Dialect = RESPONSES  # the type checker's test that it is one


def read(wire: dict[str, Any]) -> Request:
    return RESPONSES.read_request(json.dumps(wire).encode(), "m").request


def sent(request: Request, *, stream: bool = False) -> Any:
    """What goes out for a request, as its receiver decodes it."""
    return json.loads(encode(RESPONSES.write_request(request, "m", stream)))


def rewritten(wire: dict[str, Any]) -> dict[str, Any]:
    """A request after a trip through the neutral types."""
    inbound = RESPONSES.read_request(json.dumps(wire).encode())
    return RESPONSES.write_request(inbound.request, inbound.model, inbound.stream)


def asking(*items: dict[str, Any], **options: Any) -> dict[str, Any]:
    return {"model": "m", "input": list(items), **options}


def message(*content: dict[str, Any], **fields: Any) -> dict[str, Any]:
    made = {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant"}
    return {**made, "content": list(content), **fields}


def said(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], **fields}


def answer(*output: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": "r", "model": "m", "status": "completed", "output": list(output), **fields}


def answering(*output: dict[str, Any], **fields: Any) -> bytes:
    return json.dumps(answer(*output, **fields)).encode()


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def streamed(body: bytes, size: int = 1 << 30) -> list[Event]:
    reader = RESPONSES.reader()
    events = [e for at in range(0, len(body), size) for e in reader.feed(body[at : at + size])]
    events += reader.end()
    if reader.failure:
        raise reader.failure
    assert reader.done
    return events


def final(*events: bytes) -> Response:
    *_, last = streamed(b"".join(events))
    assert isinstance(last, Response)
    return last
