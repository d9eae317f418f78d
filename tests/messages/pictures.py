"""Real pictures, made on the spot, and requests that hold them."""

from __future__ import annotations

import io
import random

import pytest
from PIL import Image as pillow
from PIL.ImageFile import ImageFile

from understudy import Capabilities, Fault, File, Image, ProviderError, Request, user
from understudy.messages.fit import fit

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


def asking(*parts: str | Image | File) -> Request:
    return Request.of([user(*parts)])


def refused(request: Request, caps: Capabilities, **options: bool) -> str:
    with pytest.raises(ProviderError) as caught:
        fit(request, caps, **options)
    assert (caught.value.fault, caught.value.billing) == (Fault.UNSUPPORTED, "not_sent")
    return caught.value.message


URL = Image(url="https://example.com/cat.png")
JPEG_ONLY = Capabilities(image_types=("image/jpeg",))
