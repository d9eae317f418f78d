"""One picture fitted to a target: its type, its pixels, its bytes."""

from __future__ import annotations

import pytest
from PIL import Image as pillow

from tests.messages.pictures import (
    HEIC,
    JPEG_ONLY,
    URL,
    asking,
    noise,
    picture,
    refused,
    seen,
    written,
)
from understudy import (
    Capabilities,
    File,
    Image,
    Message,
    Request,
    Schema,
    Tool,
    ToolResult,
    user,
)
from understudy.messages.capabilities import ANYTHING
from understudy.messages.fit import fit, needs_work, pictures


def fitted(data: bytes, caps: Capabilities, mime: str = "") -> Image:
    """The one picture of a request, as the target gets it."""
    (image,) = pictures(fit(asking("look", Image(data, mime)), caps))
    return image


# ---- nothing to do


@pytest.mark.parametrize(
    "request_",
    [
        Request.of("hello"),
        asking("look", Image(picture("image/png"), "image/png")),
        asking("look", URL),
        asking("read", File(b"%PDF", "application/pdf")),
        Request.of([Message("tool", (ToolResult("1", content=(Image(HEIC, "image/heic"),)),))]),
        Request.of("hello").having(output=Schema({"type": "object"}), tools=(Tool("f"),)),
    ],
)
def test_what_fits_is_the_very_same_object(request_: Request) -> None:
    caps = Capabilities(max_images=1, max_image_bytes=10_000, max_image_pixels=8000)
    assert fit(request_, caps) is request_
    assert fit(request_, ANYTHING) is request_
    assert not needs_work(request_, caps)


def test_untouched_messages_and_parts_are_shared_with_the_original() -> None:
    first, last = user("before", Image(picture(), "image/png")), user("after")
    changed = asking("look", Image(picture(), "image/jpeg")).messages[0]
    request = Request.of([first, changed, last])
    result = fit(request, ANYTHING)
    assert result.messages[0] is first
    assert result.messages[2] is last
    assert result.messages[1].parts[0] is changed.parts[0]


def test_a_tool_result_that_fits_is_shared_beside_one_that_does_not() -> None:
    good, bad = Image(picture(), "image/png"), Image(picture(), "image/gif")
    results = tuple(ToolResult(image.mime, content=(image,)) for image in (good, bad))
    (message,) = fit(Request.of([Message("tool", results)]), ANYTHING).messages
    assert message.parts[0] is results[0]
    assert message.parts[1] == ToolResult("image/gif", content=(good,))


# ---- type


@pytest.mark.parametrize("declared", ["image/jpeg", "image/webp", "", "application/x-nonsense"])
def test_the_bytes_say_what_a_picture_is_whatever_was_declared(declared: str) -> None:
    data = picture("image/png")
    image = fitted(data, ANYTHING, declared)
    assert (image.mime, image.data) == ("image/png", data)


def test_a_nickname_of_a_type_is_corrected_without_a_change_of_bytes() -> None:
    data = picture("image/jpeg")
    assert fitted(data, Capabilities(image_types=("image/jpg",)), "image/jpg").data is data


def test_what_no_one_recognises_keeps_its_declared_type() -> None:
    image = Image(b"<svg/>", "image/svg+xml")
    request = asking(image)
    assert fit(request, ANYTHING) is request
    assert "image/svg+xml" in refused(request, JPEG_ONLY)


@pytest.mark.parametrize(
    ("kind", "allowed", "result"),
    [
        ("image/png", ("image/png", "image/jpeg"), "image/png"),
        ("image/webp", ("image/png", "image/jpeg"), "image/jpeg"),
        ("image/webp", ("image/gif", "image/png"), "image/png"),
        ("image/bmp", ("image/heic", "image/webp", "image/gif"), "image/webp"),
        ("image/tiff", ("image/gif",), "image/gif"),
        ("image/avif", ("image/jpeg",), "image/jpeg"),
    ],
)
def test_a_disallowed_type_becomes_jpeg_or_png_or_the_first_that_can_be_written(
    kind: str, allowed: tuple[str, ...], result: str
) -> None:
    image = fitted(picture(kind, (20, 10)), Capabilities(image_types=allowed))
    assert image.mime == result
    assert seen(image).get_format_mimetype() == result
    assert seen(image).size == (20, 10)


def test_a_target_of_types_that_nobody_can_write_is_unsupported() -> None:
    caps = Capabilities(image_types=("image/heic",))
    assert "image/heic" in refused(asking(Image(picture())), caps)


def test_an_undecodable_picture_passes_where_it_fits_and_is_unsupported_where_it_does_not() -> (
    None
):
    request = asking(Image(HEIC, "image/heic"))
    assert (
        fit(request, Capabilities(image_types=("image/heic",), max_image_pixels=8000)) is request
    )
    assert "image/heic" in refused(request, JPEG_ONLY)
    assert "image/heic" in refused(request, Capabilities(max_image_pixels=1000))


def test_a_broken_picture_that_must_change_is_unsupported() -> None:
    broken = picture("image/png", (50, 50))[:60]
    assert "cannot be decoded" in refused(asking(Image(broken)), JPEG_ONLY)


def test_wire_fields_of_a_changed_picture_stay_with_it() -> None:
    request = asking(Image(picture(), "image/png", extra={"detail": "low"}))
    assert pictures(fit(request, JPEG_ONLY))[0].extra == {"detail": "low"}


# ---- pixels


@pytest.mark.parametrize(
    ("size", "limit", "result"),
    [
        ((200, 100), 100, (100, 50)),
        ((100, 200), 100, (50, 100)),
        ((1000, 1), 10, (10, 1)),
        ((99, 99), 100, (99, 99)),
        ((100, 30), 100, (100, 30)),
    ],
)
def test_the_longer_side_is_brought_to_the_limit_and_nothing_is_enlarged(
    size: tuple[int, int], limit: int, result: tuple[int, int]
) -> None:
    for kind in ("image/png", "image/jpeg", "image/gif", "image/webp"):
        image = fitted(picture(kind, size), Capabilities(max_image_pixels=limit))
        assert (image.mime, seen(image).size) == (kind, result)


def test_a_picture_on_its_side_stands_up_when_it_is_written_anew() -> None:
    exif = pillow.Exif()
    exif[0x0112] = 6  # the camera was held upright
    sideways = pillow.new("RGB", (60, 40), "red")
    sideways.paste("blue", (0, 0, 30, 40))  # left in the file, on top in the world
    data = written(sideways, "image/jpeg", exif=exif)
    upright = seen(fitted(data, Capabilities(max_image_pixels=30))).convert("RGB")
    assert upright.size == (20, 30)
    top, bottom = upright.getpixel((10, 4)), upright.getpixel((10, 26))
    assert isinstance(top, tuple)
    assert isinstance(bottom, tuple)
    assert top[2] - top[0] > 150
    assert bottom[0] - bottom[2] > 150


@pytest.mark.parametrize(
    "data",
    [
        picture(size=(30, 30), mode="RGBA", colour=(0, 0, 0, 0)),
        picture(size=(30, 30), mode="LA", colour=(0, 0)),
        picture("image/webp", (30, 30), mode="RGBA", colour=(0, 0, 0, 0)),
        written(pillow.new("RGB", (30, 30), "black"), "image/png", transparency=(0, 0, 0)),
        written(pillow.new("P", (30, 30), 0), "image/gif", transparency=0),
    ],
)
def test_what_is_transparent_is_white_in_a_jpeg(data: bytes) -> None:
    assert seen(fitted(data, JPEG_ONLY)).convert("L").getextrema() == (255, 255)


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA", "LA"])
def test_a_picture_of_any_mode_can_be_scaled_and_written(mode: str) -> None:
    small = Capabilities(image_types=("image/jpeg",), max_image_pixels=10)
    assert seen(fitted(picture(size=(40, 20), mode=mode, colour=0), small)).size == (10, 5)


def test_a_picture_in_print_colours_is_written_in_screen_colours() -> None:
    data = picture("image/jpeg", (40, 20), mode="CMYK", colour=(0, 0, 0, 0))
    image = seen(fitted(data, Capabilities(image_types=("image/png",))))
    assert (image.mode, image.getpixel((5, 5))) == ("RGB", (255, 255, 255))


def test_sixteen_bits_a_pixel_are_scaled_and_not_cut_off() -> None:
    data = picture(size=(20, 20), mode="I;16", colour=32768)
    middle = seen(fitted(data, JPEG_ONLY)).convert("L").getpixel((3, 3))
    assert isinstance(middle, int)
    assert 120 < middle < 136


def test_a_decompression_bomb_is_unsupported_before_it_is_opened() -> None:
    header = bytearray(picture(size=(1, 1)))
    for side in (10_000, 60_000):  # Pillow only warns of the first
        header[16:24] = side.to_bytes(4, "big") * 2
        message = refused(asking(Image(bytes(header))), Capabilities(max_image_pixels=100))
        assert f"{side} x {side}" in message


# ---- bytes


def test_a_byte_limit_is_met_by_the_quality_ladder_before_any_halving() -> None:
    data = written(seen(Image(noise((120, 120)))), "image/jpeg", quality=100)
    sizes = [len(written(seen(Image(data)), "image/jpeg", quality=q)) for q in (85, 65, 45, 30)]
    for most in sizes:
        image = fitted(data, Capabilities(max_image_bytes=most))
        assert (len(image.data), seen(image).size) == (most, (120, 120))
    smaller = fitted(data, Capabilities(max_image_bytes=sizes[-1] - 1))
    assert seen(smaller).size == (60, 60)
    assert seen(fitted(data, Capabilities(max_image_bytes=len(smaller.data) - 1))).size == (30, 30)


def test_a_large_png_becomes_jpeg_where_that_is_taken_and_smaller_where_it_is_not() -> None:
    data = noise((64, 64))
    assert len(data) > 12_000
    anywhere = fitted(data, Capabilities(max_image_bytes=6000))
    assert (anywhere.mime, seen(anywhere).size) == ("image/jpeg", (64, 64))
    png = fitted(data, Capabilities(image_types=("image/png",), max_image_bytes=6000))
    assert (png.mime, seen(png).size) == ("image/png", (32, 32))


def test_a_picture_of_exactly_as_many_bytes_as_are_taken_is_left_alone() -> None:
    data = picture()
    assert fitted(data, Capabilities(max_image_bytes=len(data))).data is data
    assert fitted(data, Capabilities(max_image_bytes=len(data) + 1)).data is data


def test_bytes_alone_send_a_picture_straight_down_the_ladder() -> None:
    slack = written(pillow.new("RGB", (50, 50), "red"), "image/png", compress_level=0)
    assert fitted(slack, Capabilities(max_image_bytes=5000)).mime == "image/jpeg"


def test_notes_of_the_old_file_are_not_carried_into_the_new() -> None:
    data = written(pillow.new("RGB", (50, 50)), "image/png", icc_profile=b"x" * 900, dpi=(9, 9))
    assert "icc_profile" not in seen(fitted(data, Capabilities(max_image_pixels=10))).info


def test_a_png_that_fits_once_it_is_scaled_stays_a_png() -> None:
    caps = Capabilities(max_image_pixels=16, max_image_bytes=2000)
    assert fitted(noise((64, 64)), caps).mime == "image/png"


def test_a_byte_limit_that_cannot_be_met_is_unsupported() -> None:
    message = refused(asking(Image(noise((64, 64)))), Capabilities(max_image_bytes=100))
    assert "100 bytes" in message
