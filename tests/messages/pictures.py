"""Real pictures, made on the spot."""

from __future__ import annotations

import io
import random

from PIL import Image as pillow
from PIL.ImageFile import ImageFile

from understudy.messages.parts import Image

FORMATS = {
    "image/jpeg": "JPEG",
    "image/png": "PNG",
    "image/gif": "GIF",
    "image/webp": "WEBP",
    "image/bmp": "BMP",
    "image/tiff": "TIFF",
    "image/avif": "AVIF",
}


def picture(
    kind: str = "image/png",
    size: tuple[int, int] = (8, 8),
    *,
    mode: str = "RGB",
    colour: str | tuple[int, ...] | int = "red",
) -> bytes:
    return written(pillow.new(mode, size, colour), kind)


def noise(size: tuple[int, int], kind: str = "image/png", *, mode: str = "RGB") -> bytes:
    """Bytes that no encoder can make small; the same at every call."""
    depth = len(pillow.new(mode, (1, 1)).getbands())
    dust = random.Random(size[0] * 7919 + size[1]).randbytes(size[0] * size[1] * depth)
    return written(pillow.frombytes(mode, size, dust), kind)


def written(image: pillow.Image, kind: str, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, FORMATS[kind], **options)
    return out.getvalue()


def seen(image: Image) -> ImageFile:
    """The picture a target would see."""
    opened = pillow.open(io.BytesIO(image.data))
    opened.load()
    return opened


# Twenty-odd bytes of a file that this machine cannot decode.
HEIC = (
    b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic"
    b"\x00\x00\x00\x14ispe\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00\x0c\x00"
)
