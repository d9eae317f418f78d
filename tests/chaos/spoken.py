"""What an answer says, read from its bytes: the text, whether it ends as it should, and errors.

Reads what clients got and what targets sent with the same eyes. Written apart from the dialects,
which are what is on trial.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any  # JSON, read once and for tests only

Reads = Callable[[Any], str]
FAILURES = ("error", "response.failed")  # types of events that tell of one
LONG = 2000  # characters; longer texts are written down packed


@dataclass(frozen=True, slots=True)
class Said:
    """A whole answer, or as much of it as there was."""

    text: str = ""
    ended: bool = False  # its own end mark is there
    error: str = ""  # what an error said


@dataclass(frozen=True, slots=True)
class Tongue:
    """Where one dialect keeps its words."""

    whole: Reads  # of an answer in one piece
    piece: Reads  # of one event of a stream
    over: Callable[[Any], bool]  # is this event the end mark


def _chat(row: Any) -> str:
    return "".join(c.get("message", {}).get("content") or "" for c in row.get("choices", ()))


def _chat_piece(row: Any) -> str:
    return "".join(c.get("delta", {}).get("content") or "" for c in row.get("choices", ()))


def _blocks(row: Any) -> str:
    return "".join(block.get("text", "") for block in row.get("content", ()))


def _block_piece(row: Any) -> str:
    return str(row.get("delta", {}).get("text", "")) if _is(row, "content_block_delta") else ""


def _items(row: Any) -> str:
    parts = (part for item in row.get("output", ()) for part in item.get("content", ()))
    return "".join(part.get("text", "") for part in parts)


def _item_piece(row: Any) -> str:
    return str(row["delta"]) if _is(row, "response.output_text.delta") else ""


def _candidates(row: Any) -> str:
    found = (c.get("content", {}).get("parts", ()) for c in row.get("candidates", ()))
    return "".join(part.get("text", "") for parts in found for part in parts)


def _finished(row: Any) -> bool:
    return any(c.get("finishReason") for c in row.get("candidates", ()))


def _responded(row: Any) -> bool:
    return _is(row, "response.completed") or _is(row, "response.incomplete")


def _is(row: Any, kind: str) -> bool:
    return bool(row.get("type") == kind)


TONGUES = {
    "openai": Tongue(_chat, _chat_piece, lambda row: row == "[DONE]"),
    "anthropic": Tongue(_blocks, _block_piece, lambda row: _is(row, "message_stop")),
    "responses": Tongue(_items, _item_piece, _responded),
    "gemini": Tongue(_candidates, _candidates, _finished),
}


def said(dialect: str, body: bytes, *, stream: bool) -> Said:
    """What these bytes of a body say; any bytes will do."""
    tongue = TONGUES[dialect]
    return _streamed(tongue, body) if stream else _whole(tongue, body)


def _whole(tongue: Tongue, body: bytes) -> Said:
    row = _json(body)
    if not isinstance(row, dict):
        return Said()
    if row.get("error"):
        return Said(error=_words(row))
    return Said(tongue.whole(row), ended=True)


def _streamed(tongue: Tongue, body: bytes) -> Said:
    text, ended, error = "", False, ""
    for row in _events(body):
        if isinstance(row, dict) and (row.get("error") or row.get("type") in FAILURES):
            error = error or _words(row)
        elif tongue.over(row):
            text += tongue.piece(row) if tongue.over is _finished else ""
            ended = True
        elif row != "[DONE]":
            text += tongue.piece(row)
    return Said(text, ended, error)


def _events(body: bytes) -> Iterator[Any]:
    """The payloads of all whole events, and an error that stands there without a label."""
    *events, last = body.replace(b"\r\n", b"\n").split(b"\n\n")
    for event in (*events, last if last.startswith(b"{") else b""):
        for line in event.split(b"\n"):
            if line.startswith((b"data:", b"{")):
                payload = line.removeprefix(b"data:").strip()
                row = "[DONE]" if payload == b"[DONE]" else _json(payload)
                if row == "[DONE]" or isinstance(row, dict):
                    yield row


def _words(row: Any) -> str:
    error = row.get("error") or row
    return str(error.get("message", error) if isinstance(error, dict) else error) or "an error"


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def pack(text: str) -> str:
    """A long text that repeats one unit, as that unit and its length; any other as it is."""
    unit = text[: text.find(">") + 1]
    pure = len(text) > LONG and unit and (unit * (len(text) // len(unit) + 1)).startswith(text)
    return f"{unit}*{len(text)}" if pure else text


def unpack(packed: str) -> str:
    unit, star, length = packed.rpartition(">*")
    if not star or not length.isdigit():
        return packed
    unit += ">"
    return (unit * (int(length) // len(unit) + 1))[: int(length)]
