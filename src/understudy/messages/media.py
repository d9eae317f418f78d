"""One picture made to fit a target: its type, its pixels, its bytes.

Knows no messages and fetches nothing. Pillow is loaded only when a picture really must be changed;
what cannot be made to fit is `unsupported`, never dropped and never sent as it is.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from understudy.core.errors import ProviderError
from understudy.core.faults import Fault
from understudy.messages.capabilities import Capabilities
from understudy.messages.parts import Image
from understudy.messages.sniff import kind_of, plain, size_of

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

QUALITIES = (85, 65, 45, 30)
HALVINGS = 2  # after the lowest quality
HALVINGS_LOSSLESS = 5  # where size is all that can give

# What Pillow calls the kinds, for those it reads; HEIF only if a plugin for it was registered.
_READS = {
    "image/jpeg": "JPEG",
    "image/png": "PNG",
    "image/gif": "GIF",
    "image/webp": "WEBP",
    "image/bmp": "BMP",
    "image/tiff": "TIFF",
    "image/avif": "AVIF",
    "image/heic": "HEIF",
    "image/heif": "HEIF",
}
_WRITES = {kind: name for kind, name in _READS.items() if name != "HEIF"}
_LOSSY = ("image/jpeg", "image/webp", "image/avif")  # in order of preference
_OPAQUE = ("image/jpeg", "image/bmp")  # know no transparency
_DEEP = ("I", "I;16", "I;16B", "I;16L", "I;16N")  # sixteen bits a pixel; Pillow clips them


@dataclass(frozen=True, slots=True)
class Try:
    """One way to write a picture."""

    kind: str
    quality: int
    halvings: int = 0


def unsupported(reason: str) -> ProviderError:
    return ProviderError(Fault.UNSUPPORTED, message=reason, billing="not_sent")


def known(image: Image) -> str:
    """The kind of a picture: what its bytes say, or else what was declared."""
    return kind_of(image.data) or plain(image.mime)


def fits(image: Image, caps: Capabilities) -> bool:
    """Whether a target takes this picture's bytes as they are. One given by URL is not ours."""
    if not image.data:
        return True
    if caps.max_image_bytes is not None and len(image.data) > caps.max_image_bytes:
        return False
    return allowed(known(image), caps) and not _too_wide(image.data, caps)


def allowed(kind: str, caps: Capabilities) -> bool:
    types = caps.image_types
    return not types or kind in types or kind in map(plain, types)


def fitted(image: Image, caps: Capabilities) -> Image:
    """The picture as the target can take it: itself, itself with its true type, or a new one."""
    if not image.data:
        return _by_url(image, caps)
    kind = known(image)
    if fits(image, caps):
        return image if image.mime == kind else replace(image, mime=kind)
    data, kind = _changed(image.data, kind, caps)
    return replace(image, data=data, mime=kind)


def _by_url(image: Image, caps: Capabilities) -> Image:
    if image.mime and not allowed(plain(image.mime), caps):
        raise unsupported(f"takes no {plain(image.mime)}, and a URL is never fetched")
    return image


def _too_wide(data: bytes, caps: Capabilities) -> bool:
    if caps.max_image_pixels is None:
        return False
    size = size_of(data)
    return size is not None and max(size) > caps.max_image_pixels


def _changed(data: bytes, kind: str, caps: Capabilities) -> tuple[bytes, str]:
    most = caps.max_image_bytes
    anew = _too_wide(data, caps) or not allowed(kind, caps)
    tries = list(_tries(kind, anew, caps))
    picture = _decoded(data, kind, caps.max_image_pixels)
    for attempt in tries:
        written = _written(picture, attempt)
        if most is None or len(written) <= most:
            return written, attempt.kind
    raise unsupported(f"a picture cannot be brought under {most} bytes in {len(tries)} tries")


def _tries(kind: str, anew: bool, caps: Capabilities) -> Iterator[Try]:
    """Ways to write it, best first. Writing a lossless picture `anew` may be enough by itself."""
    first = _target(kind, caps)
    lossy = next((kind for kind in _LOSSY if allowed(kind, caps)), None)
    if lossy is None:
        yield from (Try(first, 0, halvings) for halvings in range(HALVINGS_LOSSLESS + 1))
        return
    if anew and first != lossy:
        yield Try(first, QUALITIES[0])
    yield from (Try(lossy, quality) for quality in QUALITIES)
    yield from (Try(lossy, QUALITIES[-1], halvings + 1) for halvings in range(HALVINGS))


def _target(kind: str, caps: Capabilities) -> str:
    """The type to write: the original, JPEG, PNG, or the first the target takes and we can."""
    wanted = (kind, "image/jpeg", "image/png", *map(plain, caps.image_types))
    for choice in wanted:
        if choice in _WRITES and allowed(choice, caps):
            return choice
    raise unsupported(f"takes only {', '.join(caps.image_types)}, which cannot be written")


def _decoded(data: bytes, kind: str, widest: int | None) -> Picture:
    """The picture upright, no longer than `widest`, as L, RGB or RGBA; a film's first frame."""
    try:
        from PIL import Image as pillow
    except ImportError as error:
        why = "a picture must be changed for this target; install Pillow: understudy[media]"
        raise unsupported(why) from error
    size, most = size_of(data), pillow.MAX_IMAGE_PIXELS
    # Asked before Pillow opens it: Pillow would only warn of the smaller bombs.
    if size is not None and most is not None and size[0] * size[1] > most:
        raise unsupported(f"a picture of {size[0]} x {size[1]} pixels is too large to decode")
    try:
        with pillow.open(io.BytesIO(data), formats=[_READS[kind]]) as opened:
            return _upright(opened, widest)
    except Exception as error:  # decoders fed with foreign bytes raise anything
        raise unsupported(f"a picture of type {kind or 'unknown'!r} cannot be decoded") from error


def _upright(picture: Picture, widest: int | None) -> Picture:
    from PIL import ImageOps

    if picture.mode in _DEEP:
        picture = picture.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    elif picture.mode not in ("L", "RGB", "RGBA", "CMYK"):  # Pillow cannot blend the others
        picture = picture.convert("RGBA" if picture.has_transparency_data else "RGB")
    if widest is not None and max(picture.size) > widest:
        picture.thumbnail((widest, widest))  # a JPEG is then decoded small in the first place
    picture.load()
    ImageOps.exif_transpose(picture, in_place=True)
    if picture.mode == "CMYK":
        picture = picture.convert("RGB")
    elif picture.mode != "RGBA" and picture.has_transparency_data:  # one colour declared clear
        picture = picture.convert("RGBA")
    picture.info.clear()  # profiles and notes of the old file say nothing about the new one
    return picture


def _written(picture: Picture, attempt: Try) -> bytes:
    if attempt.halvings:
        picture = picture.reduce(2**attempt.halvings)
    if attempt.kind in _OPAQUE and picture.mode == "RGBA":
        picture = _on_white(picture)
    options = {"quality": attempt.quality} if attempt.kind in _LOSSY else {}
    out = io.BytesIO()
    try:
        picture.save(out, _WRITES[attempt.kind], **options)
    except (OSError, KeyError, ValueError) as error:  # built without that encoder, or too large
        raise unsupported(f"a picture cannot be written as {attempt.kind}") from error
    return out.getvalue()


def _on_white(picture: Picture) -> Picture:
    from PIL import Image as pillow

    ground = pillow.new("RGB", picture.size, "white")
    ground.paste(picture, mask=picture.getchannel("A"))
    return ground
