"""Kind and size of a picture from its bytes, judged by Pillow."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as pillow

from tests.messages.pictures import FORMATS, HEIC, picture, written
from understudy.messages.sniff import kind_of, plain, size_of


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("size", [(1, 1), (3, 70), (640, 17), (300, 301)])
def test_kind_and_size_are_what_pillow_wrote(kind: str, size: tuple[int, int]) -> None:
    data = picture(kind, size)
    assert (kind_of(data), size_of(data)) == (kind, size)


@pytest.mark.parametrize(
    ("options", "form"),
    [({"lossless": True}, b"VP8L"), ({"quality": 50}, b"VP8 "), ({"xmp": b"<x/>"}, b"VP8X")],
)
def test_each_form_of_webp_tells_its_size(options: dict[str, object], form: bytes) -> None:
    data = written(pillow.new("RGB", (321, 123)), "image/webp", **options)
    assert (data[12:16], size_of(data)) == (form, (321, 123))


@pytest.mark.parametrize("progressive", [False, True])
def test_a_jpeg_with_notes_before_its_frame_tells_its_size(progressive: bool) -> None:
    exif = pillow.Exif()
    exif[0x010E] = "a long description " * 100
    image = pillow.new("RGB", (70, 50))
    data = written(image, "image/jpeg", exif=exif, progressive=progressive, comment=b"note")
    assert size_of(data) == (70, 50)


def test_a_tiff_of_either_byte_order_tells_its_size() -> None:
    entries = struct.pack(">HHIHH", 256, 3, 1, 90, 0) + struct.pack(">HHII", 257, 4, 1, 60)
    data = b"MM\x00*" + struct.pack(">IH", 8, 2) + entries
    assert (kind_of(data), size_of(data)) == ("image/tiff", (90, 60))


def test_a_bitmap_with_rows_from_the_top_has_a_height() -> None:
    data = bytearray(picture("image/bmp", (5, 4)))
    data[22:26] = struct.pack("<i", -4)
    assert size_of(bytes(data)) == (5, 4)


def test_an_old_bitmap_tells_its_size() -> None:
    data = b"BM" + struct.pack("<IIIIHH", 40, 0, 26, 12, 6, 5)
    assert (kind_of(data), size_of(data)) == ("image/bmp", (6, 5))


@pytest.mark.parametrize(
    ("brand", "others", "kind"),
    [
        (b"heic", b"", "image/heic"),
        (b"hevx", b"mif1", "image/heic"),
        (b"mif1", b"", "image/heif"),
        (b"mif1", b"msf1", "image/heif"),
        (b"mif1", b"heic", "image/heic"),
        (b"mif1", b"miafavif", "image/avif"),
        (b"avis", b"", "image/avif"),
        (b"isom", b"mp42", ""),
    ],
)
def test_files_of_boxes_are_told_by_their_brands(brand: bytes, others: bytes, kind: str) -> None:
    head = struct.pack(">I", 16 + len(others)) + b"ftyp" + brand + bytes(4) + others
    assert kind_of(head + b"avif") == kind


def test_the_largest_extent_of_a_tiled_picture_is_its_size() -> None:
    tile = b"\x00\x00\x00\x14ispe" + bytes(4) + struct.pack(">II", 512, 512)
    assert size_of(HEIC) == (4096, 3072)
    assert size_of(HEIC + tile) == (4096, 3072)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"BM",
        b"BMore text, not a bitmap",
        b"<svg/>",
        b"RIFF\0\0\0\0WAVEfmt ",
        b"GIF8",
        b"%PDF",
    ],
)
def test_what_is_no_picture_is_no_kind(data: bytes) -> None:
    assert (kind_of(data), size_of(data)) == ("", None)


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        ("image/jpg", "image/jpeg"),
        ("IMAGE/PNG", "image/png"),
        ("image/webp; charset=binary", "image/webp"),
        ("image/x-png", "image/png"),
        ("", ""),
    ],
)
def test_a_declared_type_is_written_as_registered(declared: str, kind: str) -> None:
    assert plain(declared) == kind


@settings(deadline=None)  # the first picture of a kind loads its encoder
@given(st.sampled_from([*FORMATS]), st.integers(0, 60), st.binary(max_size=80))
def test_any_bytes_behind_a_true_beginning_are_read_without_an_error(
    kind: str, keep: int, rest: bytes
) -> None:
    data = picture(kind, (9, 7))[:keep] + rest
    size = size_of(data)
    assert size is None or min(size) > 0


@pytest.mark.parametrize(("fill", "size"), [(100, (9, 7)), (1_000_000, None)])
def test_a_frame_is_sought_behind_some_filling_but_not_for_ever(
    fill: int, size: tuple[int, int] | None
) -> None:
    data = picture("image/jpeg", (9, 7))
    assert size_of(data[:2] + b"\xff" * fill + data[2:]) == size
