"""`data:` URLs: bytes and their media type, out of text and back. Fetches nothing."""

from __future__ import annotations

import base64
import binascii
import re

from understudy.dialects.blobs import kind_of, to_base64

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,", re.ASCII)
_URL_SAFE = str.maketrans("-_", "+/")


def read_base64(text: str) -> bytes | None:
    """The bytes, also of URL-safe or unpadded text; None if this is no base64."""
    text = text.translate(_URL_SAFE).rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def read_data_url(url: str) -> tuple[bytes, str] | None:
    """(bytes, media type), or None if this is another kind of URL."""
    head = _DATA_URL.match(url)
    data = read_base64(url[head.end() :]) if head else None
    return (data, head[1]) if head and data else None


def write_data_url(data: bytes, mime: str) -> str:
    """Without a media type the bytes say what they are, if they can."""
    mime = mime or kind_of(data) or "application/octet-stream"
    return f"data:{mime};base64,{to_base64(data)}"
