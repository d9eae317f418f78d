"""Bytes inside JSON: base64 both ways, and files told by their suffix or type. Fetches nothing."""

from __future__ import annotations

import base64
import binascii
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from understudy.dialects.json_access import Node

_SUFFIXES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".pdf": "application/pdf",
}
_TEXTUAL = ("text/", "application/json", "application/xml")
_URL_SAFE = str.maketrans("-_", "+/")


def to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def read_base64(text: str) -> bytes | None:
    """The bytes of base64, in either alphabet, padded or not; None if this is none."""
    text = text.translate(_URL_SAFE).rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def from_base64(node: Node) -> bytes:
    """The same where it must be base64. It may be broken into lines."""
    data = read_base64("".join(node.text().split()))
    return node.refuse("base64") if data is None else data


def kind_of_url(url: str) -> str:
    """The MIME type a URL's suffix suggests, "" if none."""
    try:
        path = urlsplit(url).path
    except ValueError:
        return ""
    return _SUFFIXES.get(PurePosixPath(path).suffix.lower(), "")


def name_for(mime: str) -> str:
    """What to call a file without a name, where one is insisted on."""
    kind = mime.partition(";")[0].rpartition("/")[2]
    return f"file.{'txt' if kind in ('', 'plain') else kind}"


def as_text(data: bytes, mime: str) -> str | None:
    """The text of a textual file, None if it is no text."""
    if not mime.startswith(_TEXTUAL):
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
