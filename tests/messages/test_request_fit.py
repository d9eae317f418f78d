"""A whole request fitted to a target: how many pictures, tools, schemas, chains, no Pillow."""

from __future__ import annotations

import copy
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.messages.pictures import HEIC, JPEG_ONLY, URL, asking, picture, refused, seen
from tests.rig import Play, run
from understudy import (
    Capabilities,
    Image,
    Message,
    Registry,
    Request,
    Response,
    Schema,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    assistant,
    system,
    user,
)
from understudy.messages.capabilities import ANYTHING
from understudy.messages.fit import OMITTED, fit, needs_work, pictures
from understudy.testing import Fake, ManualClock, Pause

# ---- how many


def test_of_too_many_pictures_the_newest_stay_and_the_turns_keep_their_shape() -> None:
    a, b, c, d = (Image(picture(size=(n, n)), "image/png") for n in (1, 2, 3, 4))
    request = Request.of(
        [
            user("first", a, "and", b),
            assistant("hm", ToolCall("1", "shoot")),
            Message("tool", (ToolResult("1", "shoot", (Text("here"), c)),)),
            user(d),
        ]
    )
    before = copy.deepcopy(request)
    result = fit(request, Capabilities(max_images=2))
    assert [message.role for message in result.messages] == ["user", "assistant", "tool", "user"]
    assert result.messages[0].parts == (Text("first"), Text(OMITTED), Text("and"), Text(OMITTED))
    assert pictures(result) == [c, d]
    assert result.messages[1:] == request.messages[1:]
    assert request == before
    one = fit(request, Capabilities(max_images=1))
    assert one.messages[2].parts == (ToolResult("1", "shoot", (Text("here"), Text(OMITTED))),)
    assert OMITTED == "[earlier image omitted to fit this model's per-request image limit]"


def test_pictures_that_are_left_out_need_not_fit() -> None:
    request = asking(Image(HEIC), Image(picture("image/jpeg"), "image/jpeg"))
    caps = Capabilities(max_images=1, image_types=("image/jpeg",))
    assert not needs_work(request, caps)
    assert len(pictures(fit(request, caps))) == 1


def test_pictures_by_url_count_like_others_and_are_never_fetched() -> None:
    request = asking(URL, URL, Image(url="https://example.com/b.heic", mime="image/heic"))
    assert len(pictures(fit(request, Capabilities(max_images=2)))) == 2
    assert "never fetched" in refused(request, JPEG_ONLY)
    assert refused(request, Capabilities(max_images=0)) == "takes no images"


@pytest.mark.parametrize(
    "request_",
    [
        asking(Image(picture())),
        asking(URL),
        Request.of([Message("tool", (ToolResult("1", content=(Image(picture()),)),))]),
    ],
)
def test_a_target_that_takes_no_pictures_is_unsupported(request_: Request) -> None:
    assert refused(request_, Capabilities(max_images=0)) == "takes no images"


# ---- whether it is heavy


@pytest.mark.parametrize(
    ("data", "caps", "heavy"),
    [
        (picture("image/png"), ANYTHING, False),
        (picture("image/png"), JPEG_ONLY, True),
        (picture(size=(9, 1)), Capabilities(max_image_pixels=8), True),
        (picture(size=(8, 1)), Capabilities(max_image_pixels=8), False),
        (picture(), Capabilities(max_image_bytes=9), True),
    ],
)
def test_work_is_announced_exactly_when_bytes_must_change(
    data: bytes, caps: Capabilities, heavy: bool
) -> None:
    request = asking(Image(data, "image/gif"))  # to be corrected in any case: that is no work
    assert needs_work(request, caps) is heavy
    if heavy and caps.max_image_bytes is None:
        assert pictures(fit(request, caps))[0].data != data


# ---- tools, streams, schemas


def test_tools_and_streams_go_only_where_they_are_taken() -> None:
    caps = Capabilities(tools=False, streaming=False)
    assert refused(Request.of("hi").having(tools=(Tool("f"),)), caps) == "takes no tools"
    assert refused(Request.of("hi"), caps, stream=True) == "does not stream"
    assert fit(Request.of("hi"), caps).messages == (user("hi"),)


def test_a_schema_is_put_into_words_for_a_target_that_takes_none() -> None:
    schema: Schema = Schema({"type": "object", "properties": {"n": {"type": "integer"}}})
    request = Request.of([system("be brief"), user("hi"), system("later")]).having(output=schema)
    result = fit(request, Capabilities(structured=False))
    told = result.messages[1]
    assert [m.role for m in result.messages] == ["system", "system", "user", "system"]
    assert '{"type":"object","properties":{"n":{"type":"integer"}}}' in told.text
    assert result.output is None
    assert request.output is schema


def test_any_json_is_asked_for_in_words_too() -> None:
    request = Request.of([system("be brief")]).having(output=Schema())
    result = fit(request, Capabilities(structured=False))
    assert "JSON object" in result.messages[1].text


# ---- in a chain


def test_every_target_gets_the_original_fitted_to_its_own_limits() -> None:
    play = Play().script(tiny=[503, 503], fine=["seen"])
    play.p.describe("none", Capabilities(max_images=0))
    play.p.describe("tiny", Capabilities(image_types=("image/jpeg",), max_image_pixels=10))
    play.p.describe("fine", Capabilities(image_types=("image/png",)))
    request = asking("look", Image(picture(size=(40, 40)), "image/png"))
    reply = run(play.registry.parse("p/none, p/tiny, p/fine").generate(request))
    story = ["p/none=unsupported", "p/tiny=transient", "p/tiny=transient", "p/fine=ok"]
    assert (reply.text, play.told, play.called) == ("seen", story, ["tiny", "tiny", "fine"])
    given = [pictures(sent)[0] for _, sent in play.p.calls]
    assert [(image.mime, seen(image).size) for image in given] == [
        ("image/jpeg", (10, 10)),
        ("image/jpeg", (10, 10)),
        ("image/png", (40, 40)),
    ]
    assert play.health.available("p/none")


def test_the_plan_knows_of_pictures_that_a_tool_gave_back() -> None:
    play = Play()
    play.p.describe("blind", Capabilities(max_images=0))
    shot = ToolResult("1", content=(Image(picture(), "image/png"),))
    plan = play.registry.parse("p/blind, q/b").plan([user("look"), Message("tool", (shot,))])
    assert (plan.lines[0].verdict, plan.lines[0].reason) == ("skip", "takes no images")


def test_a_stream_is_not_asked_of_who_does_not_stream() -> None:
    play = Play()
    play.p.describe("whole", Capabilities(streaming=False))
    model = play.registry.parse("p/whole, q/b")
    with model.stream_sync("hi") as events:
        served = [event.model for event in events if isinstance(event, Response)]
    assert (served, play.told) == (["q/b"], ["p/whole=unsupported", "q/b=ok"])
    assert run(model.generate("hi")).model == "p/whole"
    play.registry.close()


class Slow(Fake):
    """A picture for it takes long to change: the clock moves on in the thread that does it."""

    def __init__(self, clock: ManualClock, seconds: float) -> None:
        super().__init__("p", clock=clock)
        self._ticks, self._seconds = clock, seconds

    def capabilities(self, model: str) -> Capabilities:
        if threading.current_thread() is not threading.main_thread():
            self._ticks.advance(self._seconds)
        return Capabilities(image_types=("image/jpeg",))


@pytest.mark.parametrize(("changing", "answering"), [(2, 0), (1.5, 1)])
@pytest.mark.parametrize("streamed", [False, True])
def test_pictures_are_changed_in_the_caller_s_own_time_and_no_target_is_to_blame(
    changing: float, answering: float, streamed: bool
) -> None:
    clock = ManualClock()
    slow = Slow(clock, changing).script("a", Pause(answering), "too late")
    registry = Registry(env={}, clock=clock)
    registry.register_provider(slow)
    registry.register_provider(Fake("q", clock=clock))
    model, request = registry.parse("p/a, q/b"), asking(Image(picture(), "image/png"))

    async def scene() -> Response:
        if not streamed:
            return await model.generate(request, timeout=4)
        async with model.stream(request, timeout=4) as events:
            return [event async for event in events if isinstance(event, Response)][-1]

    reply = run(scene())
    assert [attempt.word for attempt in reply.attempts] == ["stall_pre_first_byte", "ok"]
    assert (len(slow.calls), registry.health.snapshot()) == (1 if answering else 0, {})


# ---- without Pillow


SCRIPT = """
import sys
sys.modules["PIL"] = None
from understudy import Capabilities, Image, ProviderError, Request, user
from understudy.messages.fit import fit
png = bytes.fromhex(sys.argv[1])
request = Request.of([user(Image(png, "image/png"))])
assert fit(request, Capabilities(image_types=("image/png",), max_image_pixels=8)) is request
try:
    fit(request, Capabilities(image_types=("image/jpeg",)))
except ProviderError as error:
    print(error.fault, error.message)
"""
LAZY = """
import sys
from understudy import Capabilities, Image, Request, user
from understudy.messages.fit import fit
request = Request.of([user(Image(bytes.fromhex(sys.argv[1]), "image/gif"))])
for types in ("image/png",), ("image/jpeg",):
    fit(request, Capabilities(image_types=types, max_images=1, max_image_pixels=8))
    print("PIL" in sys.modules)
"""


def told(script: str) -> str:
    """What a fresh Python says, given a picture."""
    command = [sys.executable, "-c", script, picture().hex()]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_without_pillow_pictures_that_fit_pass_and_others_are_unsupported() -> None:
    said = told(SCRIPT)
    assert said.startswith("unsupported")
    assert "understudy[media]" in said


def test_pillow_is_not_loaded_until_a_picture_must_change() -> None:
    assert told(LAZY).split() == ["False", "True"]


# -- ids of tool calls ------------------------------------------------------------------------


def turn(*ids: str) -> tuple[Message, Message]:
    """An assistant calls, and is answered in order."""
    calls = tuple(ToolCall(name, "f") for name in ids)
    results = tuple(ToolResult(name, "f", (Text(f"{n}"),)) for n, name in enumerate(ids))
    return Message("assistant", calls), Message("tool", results)


def ids_of(request: Request) -> list[str]:
    return [
        part.id
        for message in request.messages
        for part in message.parts
        if isinstance(part, ToolCall | ToolResult)
    ]


def test_a_call_made_again_under_the_same_id_has_one_of_its_own_and_so_has_its_result() -> None:
    asked = Request((user("go"), *turn("x"), *turn("y", "x"), user("more"), *turn("x")))
    fitted = fit(asked, ANYTHING)
    assert ids_of(fitted) == ["x", "x", "y", "x_2", "y", "x_2", "x_3", "x_3"]
    assert ids_of(asked)[:4] == ["x", "x", "y", "x"]


def test_two_calls_of_one_turn_with_one_id_are_answered_in_their_order() -> None:
    assert ids_of(fit(Request(turn("", "")), ANYTHING)) == ["", "_2", "", "_2"]


def test_a_history_whose_ids_differ_is_left_as_it_is() -> None:
    asked = Request((*turn("a", "b"), *turn("c")))
    assert fit(asked, ANYTHING) is asked


@given(st.lists(st.lists(st.sampled_from(["a", "b", "a_2"]), max_size=3), max_size=5))
def test_whatever_the_ids_were_each_call_has_its_own_and_each_result_that_of_its_call(
    turns: list[list[str]],
) -> None:
    asked = Request(tuple(message for ids in turns for message in turn(*ids)))
    told = fit(asked, ANYTHING).messages
    calls = [[part.id for part in message.parts] for message in told[::2]]  # type: ignore[union-attr]
    results = [[part.id for part in message.parts] for message in told[1::2]]  # type: ignore[union-attr]
    flat = [name for names in calls for name in names]
    assert len(flat) == len(set(flat))
    assert calls == results
