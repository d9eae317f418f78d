"""`data:` URLs: bytes and their media type, out of text and back, and the part that a URL is.

Fetches nothing: any other URL stays one.
"""

from __future__ import annotations

import re

from understudy.dialects.blobs import read_base64, to_base64
from understudy.messages.parts import NO_EXTRA, Extra, File, Image
from understudy.messages.sniff import kind_of

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,", re.ASCII)


def read_data_url(url: str) -> tuple[bytes, str] | None:
    """(bytes, media type), or None if this is another kind of URL."""
    head = _DATA_URL.match(url)
    data = read_base64(url[head.end() :]) if head else None
    return (data, head[1]) if head and data else None


def image_at(url: str, extra: Extra = NO_EXTRA) -> Image | None:
    """The picture of a URL: its bytes if they are in it, else the URL itself."""
    if found := read_data_url(url):
        return Image(*found, extra=extra)
    return Image(url=url, extra=extra) if url else None


def file_at(url: str, name: str = "", mime: str = "") -> File | None:
    """The file of a URL. `mime` is for one that does not say what it is."""
    if found := read_data_url(url):
        return File(*found, name=name)
    return File(url=url, mime=mime, name=name) if url else None


def write_data_url(data: bytes, mime: str) -> str:
    """Without a media type the bytes say what they are, if they can."""
    mime = mime or kind_of(data) or "application/octet-stream"
    return f"data:{mime};base64,{to_base64(data)}"
