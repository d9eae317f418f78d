"""What a client of the fake server asks: just enough HTTP, and which dialect, model and form."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote

PATHS = {
    "/chat/completions": "openai",
    "/responses": "responses",
    "/messages": "anthropic",
    "/api/chat": "ollama",
}
LARGEST = 64 * 1024 * 1024  # bytes of a request's body


class Unreadable(Exception):
    """A request that is no request to a model; `status` is what it gets."""

    def __init__(self, status: int, what: str) -> None:
        super().__init__(what)
        self.status = status


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, read as far as it matters here."""

    dialect: str = ""
    model: str = ""
    stream: bool = False
    listing: bool = False


async def read_request(reader: asyncio.StreamReader) -> Asked | None:
    """The next request of this connection; None when the client is done."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3:
        raise Unreadable(400, "this is no HTTP request")
    headers = {name.strip().lower(): value.strip() for name, _, value in map(_field, lines)}
    body = await _body(reader, headers)
    path = words[1].partition("?")[0]
    if words[0] == "GET" and path.endswith("/models"):
        return Asked(listing=True)
    return _asked(path, body)


def _field(line: str) -> tuple[str, str, str]:
    return line.partition(":")


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return await _chunks(reader)
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > LARGEST:
        raise Unreadable(413, f"a length of {length!r} is refused")
    return await reader.readexactly(int(length))


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while True:
        size = int((await reader.readline()).partition(b";")[0] or b"0", 16)
        if len(body) + size > LARGEST:
            raise Unreadable(413, "the request is too large")
        body += await reader.readexactly(size)
        await reader.readline()
        if not size:
            return body


def _asked(path: str, body: bytes) -> Asked:
    if ":" in path and "/models/" in path:
        model, _, verb = path.partition("/models/")[2].rpartition(":")
        if verb in ("generateContent", "streamGenerateContent"):
            return Asked("gemini", unquote(model), verb.startswith("stream"))
    dialect = next((name for tail, name in PATHS.items() if path.endswith(tail)), "")
    if not dialect:
        raise Unreadable(404, f"nothing is served at {path!r}")
    try:
        wanted = json.loads(body)
    except ValueError:
        raise Unreadable(400, "the body is not JSON") from None
    if not isinstance(wanted, dict) or not isinstance(wanted.get("model"), str):
        raise Unreadable(400, "the body names no model")
    stream = wanted.get("stream", dialect == "ollama")  # Ollama streams unless told not to
    return Asked(dialect, wanted["model"], stream is True)


def listing(names: Iterable[str]) -> bytes:
    """The models there are to ask for."""
    rows = [{"id": name, "object": "model"} for name in names]
    return json.dumps({"object": "list", "data": rows}).encode()
