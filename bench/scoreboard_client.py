"""A client that asks once and notes everything: status, text, end, errors, seconds.

It reads as the official SDKs do, but forgives nothing: what they would raise, it remembers.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import aiohttp
from scoreboard_judge import Case, Seen

PATIENCE = 30.0  # seconds until the client gives up
PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}
MARKS = {"openai": "[DONE]", "anthropic": "message_stop"}
FIELDS = (":", "data:", "event:", "id:", "retry:")  # that a line of a stream may begin with
Json = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Door:
    """Where a case is asked of a product."""

    port: int
    model: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Heard:
    """What came over the wire."""

    status: int = 0
    body: bytearray = field(default_factory=bytearray)
    ended: bool = True
    cut: bool = False


async def asked(session: aiohttp.ClientSession, door: Door, case: Case) -> Seen:
    """Ask once; the calls of the upstreams are for others to add."""
    body = {
        "model": door.model,
        "max_tokens": 64,
        "messages": [{"role": "user", "content": "Are you there?"}],
        "stream": case.stream,
    }
    url = f"http://127.0.0.1:{door.port}{PATHS[case.dialect]}"
    heard = Heard()
    began = time.perf_counter()
    try:
        async with (
            asyncio.timeout(PATIENCE),
            session.post(url, json=body, headers=dict(door.headers)) as answer,
        ):
            heard.status = answer.status
            async for piece in answer.content.iter_any():
                heard.body += piece
    except TimeoutError:
        heard.ended = False
    except aiohttp.ClientError:
        heard.cut = True
    return read(case, heard, time.perf_counter() - began)


def read(case: Case, heard: Heard, seconds: float) -> Seen:
    text = heard.body.decode(errors="replace")
    streamed = case.stream and heard.status == 200
    notes = _streamed(case.dialect, text) if streamed else _plain(case.dialect, text)
    if heard.status >= 400:
        notes.error = notes.error or text.strip()[:200]
    return Seen(
        heard.status,
        notes.text,
        notes.finish,
        notes.whole,
        notes.error,
        notes.garbled,
        heard.ended,
        heard.cut,
        seconds,
    )


@dataclass(slots=True)
class _Notes:
    text: str = ""
    finish: str = ""
    whole: bool = False
    error: str = ""
    garbled: bool = False


def _plain(dialect: str, text: str) -> _Notes:
    notes = _Notes()
    payload = _parsed(text)
    if payload is None:
        notes.garbled = bool(text.strip())
        return notes
    notes.error = _error(payload)
    if dialect == "openai":
        choice = _first(payload.get("choices"))
        message = _table(choice.get("message"))
        notes.text, notes.finish = (
            _text(message.get("content")),
            _text(choice.get("finish_reason")),
        )
        notes.whole = bool(choice)
    else:
        blocks = payload.get("content")
        listed = blocks if isinstance(blocks, list) else []
        notes.text = "".join(_text(_table(block).get("text")) for block in listed)
        notes.finish = _text(payload.get("stop_reason"))
        notes.whole = payload.get("type") == "message"
    return notes


def _streamed(dialect: str, text: str) -> _Notes:
    text = text.replace("\r\n", "\n")
    notes = _Notes(garbled=any(not line.startswith(FIELDS) for line in text.split("\n") if line))
    for data in _events(text):
        if data == MARKS["openai"]:
            notes.whole = dialect == "openai"
            continue
        payload = _parsed(data)
        if payload is None:
            notes.garbled = True
            continue
        notes.error = notes.error or _error(payload)
        _take(notes, dialect, payload)
    return notes


def _take(notes: _Notes, dialect: str, payload: Json) -> None:
    if dialect == "openai":
        choice = _first(payload.get("choices"))
        delta = _table(choice.get("delta"))
        notes.text += _text(delta.get("content"))
        notes.finish = _text(choice.get("finish_reason")) or notes.finish
        return
    delta = _table(payload.get("delta"))
    notes.text += _text(delta.get("text"))
    notes.finish = _text(delta.get("stop_reason")) or notes.finish
    notes.whole = notes.whole or payload.get("type") == MARKS["anthropic"]


def _events(text: str) -> Iterator[str]:
    """The data of each server-sent event."""
    for event in text.split("\n\n"):
        lines = [line[5:].lstrip(" ") for line in event.split("\n") if line.startswith("data:")]
        if lines:
            yield "\n".join(lines).strip()


def _error(payload: Json) -> str:
    """What an error says; "" if the payload is none."""
    error = payload.get("error")
    if isinstance(error, str):
        return error
    if isinstance(error, dict):
        return _text(error.get("message")) or json.dumps(error)
    return _text(payload.get("message")) if payload.get("type") == "error" else ""


def _parsed(text: str) -> Json | None:
    try:
        payload = json.loads(text)
    except ValueError:
        return None
    return payload if isinstance(payload, dict) else None


def _first(value: object) -> Json:
    return _table(value[0]) if isinstance(value, list) and value else {}


def _table(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
