"""Laws of fitting, over real pictures of every kind and any limits."""

from __future__ import annotations

import copy

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.messages.pictures import FORMATS, noise, picture, seen
from understudy import Capabilities, Fault, Image, Message, ProviderError, Request, Text
from understudy.messages.fit import OMITTED, fit, needs_work, pictures
from understudy.messages.parts import ToolResult
from understudy.messages.sniff import kind_of

KINDS = [*FORMATS]
SIDES = st.integers(1, 48)
OFTEN = settings(max_examples=80, deadline=None)


@st.composite
def images(draw: st.DrawFn) -> Image:
    kind, size = draw(st.sampled_from(KINDS)), (draw(SIDES), draw(SIDES))
    mode = draw(st.sampled_from(["RGB", "L"] if kind == "image/jpeg" else ["RGB", "RGBA", "L"]))
    make = draw(st.sampled_from([noise, picture]))
    data = (
        make(size, kind, mode=mode) if make is noise else picture(kind, size, mode=mode, colour=0)
    )
    return Image(data, draw(st.sampled_from(["", kind, *KINDS])))


@st.composite
def conversations(draw: st.DrawFn) -> Request:
    parts = st.one_of(st.just(Text("word")), images())
    results = st.lists(parts, max_size=2).map(lambda c: ToolResult("1", "f", tuple(c)))
    turns = st.one_of(
        st.lists(parts, max_size=3).map(lambda p: Message("user", tuple(p))),
        st.lists(results, max_size=2).map(lambda p: Message("tool", tuple(p))),
    )
    return Request(messages=tuple(draw(st.lists(turns, max_size=4))))


CAPS = st.builds(
    Capabilities,
    max_images=st.none() | st.integers(0, 4),
    max_image_bytes=st.none() | st.integers(1, 6000),
    max_image_pixels=st.none() | st.integers(1, 60),
    image_types=st.lists(st.sampled_from(KINDS), unique=True, max_size=3).map(tuple),
)


def fitted_or_refused(request: Request, caps: Capabilities) -> Request | None:
    try:
        return fit(request, caps)
    except ProviderError as error:
        if error.fault is not Fault.UNSUPPORTED:
            raise
        return None


@OFTEN
@given(conversations(), CAPS)
def test_the_result_is_within_every_limit_or_the_target_is_unsupported(
    request: Request, caps: Capabilities
) -> None:
    result = fitted_or_refused(request, caps)
    assume(result is not None)
    assert result is not None
    kept = pictures(result)
    assert caps.max_images is None or len(kept) <= caps.max_images
    for image in kept:
        assert image.mime == kind_of(image.data) == seen(image).get_format_mimetype()
        assert not caps.image_types or image.mime in caps.image_types
        assert len(image.data) <= (caps.max_image_bytes or len(image.data))
        assert max(seen(image).size) <= (caps.max_image_pixels or 48)


@OFTEN
@given(images(), CAPS)
def test_no_picture_is_ever_enlarged_and_its_shape_stays(image: Image, caps: Capabilities) -> None:
    result = fitted_or_refused(Request(messages=(Message("user", (image,)),)), caps)
    assume(result is not None)
    assert result is not None
    (new,) = pictures(result)
    (width, height), (w, h) = seen(image).size, seen(new).size
    assert w <= width
    assert h <= height
    scale = max(w, h) / max(width, height)
    # Whole pixels only: each side is off by less than one at every halving.
    assert abs(w - width * scale) < 2
    assert abs(h - height * scale) < 2


@OFTEN
@given(conversations(), CAPS)
def test_the_input_is_never_changed_and_nothing_to_do_is_no_copy(
    request: Request, caps: Capabilities
) -> None:
    before = copy.deepcopy(request)
    result = fitted_or_refused(request, caps)
    assert request == before
    assert (result is request) == (result == request)


@OFTEN
@given(conversations(), st.integers(1, 4))
def test_the_newest_pictures_survive_in_order_and_every_turn_keeps_its_length(
    request: Request, most: int
) -> None:
    result = fit(request, Capabilities(max_images=most))
    before, after = pictures(request), pictures(result)
    assert [image.data for image in after] == [image.data for image in before[-most:]]
    omitted = 0
    for old, new in zip(request.messages, result.messages, strict=True):
        assert (old.role, len(old.parts)) == (new.role, len(new.parts))
        omitted += sum(part == Text(OMITTED) for part in _flat(new))
    assert omitted == max(0, len(before) - most)


@OFTEN
@given(conversations(), CAPS)
def test_without_announced_work_no_picture_has_new_bytes(
    request: Request, caps: Capabilities
) -> None:
    result = fitted_or_refused(request, caps)
    assume(result is not None and not needs_work(request, caps))
    assert result is not None
    originals = [image.data for image in pictures(request)]
    assert all(image.data in originals for image in pictures(result))


def _flat(message: Message) -> list[object]:
    flat: list[object] = []
    for part in message.parts:
        flat += part.content if isinstance(part, ToolResult) else [part]
    return flat
