"""Bytes inside JSON: base64 both ways, and what kind of file they are. Fetches nothing."""

from __future__ import annotations

import base64
import binascii
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from understudy.dialects.json_access import Node

_MAGIC = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"),
)
_SUFFIXES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".pdf": "application/pdf",
}
_TEXTUAL = ("text/", "application/json", "application/xml")


def to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def from_base64(node: Node) -> bytes:
    """The bytes of a base64 string, in either alphabet, padded or not; refuses anything else."""
    text = "".join(node.text().split()).translate({45: "+", 95: "/"}).rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        node.refuse("base64")


def kind_of(data: bytes) -> str:
    """The MIME type of a picture by its first bytes, "" if it is none we know."""
    found = (mime for at, magic, mime in _MAGIC if data[at : at + len(magic)] == magic)
    return next(found, "")


def kind_of_url(url: str) -> str:
    """The MIME type a URL's suffix suggests, "" if none."""
    try:
        path = urlsplit(url).path
    except ValueError:
        return ""
    return _SUFFIXES.get(PurePosixPath(path).suffix.lower(), "")


def as_text(data: bytes, mime: str) -> str | None:
    """The text of a textual file, None if it is no text."""
    if not mime.startswith(_TEXTUAL):
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
