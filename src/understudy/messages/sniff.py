"""What a picture is, by its first bytes: kind and size. Decodes nothing, needs no library."""

from __future__ import annotations

import struct
from collections.abc import Callable

Size = tuple[int, int]  # width, height in pixels

# (offset, bytes, kind); the first match counts.
_MAGIC = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBPVP8", "image/webp"),
    (0, b"II*\x00", "image/tiff"),
    (0, b"MM\x00*", "image/tiff"),
    (0, b"II+\x00", "image/tiff"),
    (0, b"MM\x00+", "image/tiff"),
)
_BRANDS = {
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"heim": "image/heic",
    b"heis": "image/heic",
    b"hevc": "image/heic",
    b"hevx": "image/heic",
    b"mif1": "image/heif",
    b"msf1": "image/heif",
}
_ALIASES = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "image/x-ms-bmp": "image/bmp",
    "image/x-bmp": "image/bmp",
    "image/tif": "image/tiff",
}
_HEAD = 65_536  # bytes of a box-structured file in which its properties stand


def plain(mime: str) -> str:
    """A declared MIME type as registered: small letters, no parameters, no nicknames."""
    mime = mime.partition(";")[0].strip().lower()
    return _ALIASES.get(mime, mime)


def kind_of(data: bytes) -> str:
    """The MIME type of a picture by its own bytes, "" if it is none we know."""
    for at, magic, kind in _MAGIC:
        if data.startswith(magic, at):
            return kind
    if data[4:8] == b"ftyp":
        return _boxed(data)
    # Two letters prove little; the reserved field behind them is always zero.
    return "image/bmp" if data.startswith(b"BM") and data[6:10] == bytes(4) else ""


def size_of(data: bytes) -> Size | None:
    """Width and height as the header states them; None if it cannot be read."""
    read = _SIZES.get(kind_of(data))
    try:
        size = read(data) if read else None
    except (struct.error, IndexError):
        return None
    return size if size and min(size) > 0 else None


def _boxed(data: bytes) -> str:
    """An ISO base media file: its major brand, or what a generic one says it can be read as."""
    major = _BRANDS.get(data[8:12], "")
    if major != "image/heif":
        return major
    end = min(int.from_bytes(data[:4], "big"), 256)
    others = (_BRANDS.get(data[at : at + 4], "") for at in range(16, end, 4))
    return next((kind for kind in others if kind not in ("", "image/heif")), major)


def _png(data: bytes) -> Size:
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif(data: bytes) -> Size:
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _bmp(data: bytes) -> Size:
    if data[14] == 12:
        width, height = struct.unpack_from("<HH", data, 18)
    else:
        width, height = struct.unpack_from("<ii", data, 18)
    return width, abs(height)  # a negative height means rows from the top


_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # the rest define tables
_BARE = frozenset((0x01, *range(0xD0, 0xD9)))  # markers without a length


def _jpeg(data: bytes) -> Size | None:
    at = 2
    for _ in range(4096):  # more segments than that before the frame is an attack on our time
        marker = data[at + 1]
        if data[at] != 0xFF:
            return None
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        if marker == 0xFF:
            at += 1
        elif marker in _BARE:
            at += 2
        else:
            at += 2 + struct.unpack_from(">H", data, at + 2)[0]
    return None


def _webp(data: bytes) -> Size | None:
    form = data[12:16]
    if form == b"VP8X":
        width, height = (int.from_bytes(data[at : at + 3], "little") for at in (24, 27))
        return width + 1, height + 1
    if form == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack_from("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF


def _tiff(data: bytes) -> Size | None:
    order = "<" if data.startswith(b"II") else ">"
    if struct.unpack_from(order + "H", data, 2)[0] != 42:
        return None  # BigTIFF: too rare to read
    (at,) = struct.unpack_from(order + "I", data, 4)
    (count,) = struct.unpack_from(order + "H", data, at)
    found = {}
    for entry in range(at + 2, at + 2 + 12 * min(count, 512), 12):
        tag, form = struct.unpack_from(order + "HH", data, entry)
        found[tag] = struct.unpack_from(order + ("H" if form == 3 else "I"), data, entry + 8)[0]
    return (found[256], found[257]) if 256 in found and 257 in found else None


def _boxes(data: bytes) -> Size | None:
    """The largest of the stated extents: the others are tiles and thumbnails of it."""
    head, sizes, at = data[:_HEAD], [], 0
    while (at := head.find(b"ispe", at)) >= 0 and at + 16 <= len(head):
        width, height = struct.unpack_from(">II", head, at + 8)
        sizes.append((width, height))
        at += 16
    return max(sizes, key=lambda size: size[0] * size[1], default=None)


_SIZES: dict[str, Callable[[bytes], Size | None]] = {
    "image/png": _png,
    "image/gif": _gif,
    "image/bmp": _bmp,
    "image/jpeg": _jpeg,
    "image/webp": _webp,
    "image/tiff": _tiff,
    "image/avif": _boxes,
    "image/heic": _boxes,
    "image/heif": _boxes,
}
