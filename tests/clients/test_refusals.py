"""What the SDKs raise: for a wrong key, for a chain that is at its end, for a stream that was cut.

Each SDK has its own classes; the words are ours, and they name every target.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.clients.cuts import ENDINGS, breaking_off
from tests.clients.rig import KEY, Backstage, Setting, staged
from tests.clients.speakers import SPEAKERS, Speaker

# Google's SDK subclasses aiohttp's session, which aiohttp discourages.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")
speakers = pytest.mark.parametrize("speaker", SPEAKERS, ids=str)


def raised(ask: Callable[[], object]) -> tuple[str, str]:
    """What an SDK made of it: package and class, and its words."""
    try:
        answer = ask()
    except Exception as error:  # noqa: BLE001 - which it is, is the question
        kind = type(error)
        return f"{kind.__module__.partition('.')[0]}.{kind.__name__}", str(error)
    raise AssertionError(f"it ended well, with {answer!r}")


@speakers
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_a_wrong_key_is_the_sdks_own_authentication_error(
    backstage: Backstage, speaker: Speaker, stream: bool
) -> None:
    speaker.need()
    with staged(backstage, Setting(speaker.dialect)) as scene:
        wrong = "sk-wrong-0123456789"
        kind, words = raised(
            lambda: (
                speaker.stream(scene.address, wrong, print)
                if stream
                else speaker.plain(scene.address, wrong)
            )
        )
        assert kind == speaker.errors.unauthorised
        assert "no such key" in words
        assert wrong not in words
        assert scene.fake.calls == []


@speakers
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("status", [503, 429])
def test_a_chain_at_its_end_is_an_error_naming_every_target(
    backstage: Backstage, speaker: Speaker, stream: bool, status: int
) -> None:
    speaker.need()
    with staged(backstage, Setting(speaker.dialect, str(status))) as scene:
        scene.fake.script("x", *[status] * 4)
        kind, words = raised(
            lambda: (
                speaker.stream(scene.address, KEY, print)
                if stream
                else speaker.plain(scene.address, KEY)
            )
        )
        errors = speaker.errors
        assert kind == (errors.exhausted if status == 503 else errors.limited)
        assert "head/m" in words
        assert "tail/m" in words
        assert [record.status for record in scene.finished()] == [status]


# -- streams that are cut -------------------------------------------------------------------------

OTHER = {"openai": "gemini", "responses": "openai", "anthropic": "responses", "gemini": "openai"}


@speakers
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("way", ["relayed", "translated"])
def test_a_stream_cut_after_content_is_an_error_and_never_a_finish(
    backstage: Backstage, speaker: Speaker, ending: str, way: str
) -> None:
    speaker.need()
    tail = speaker.dialect if way == "relayed" else OTHER.get(speaker.dialect, "anthropic")
    setting = Setting(tail, "refused", breaking_off(tail, ENDINGS[ending]))
    with staged(backstage, setting) as scene:
        heard: list[str] = []
        kind, _ = raised(lambda: speaker.stream(scene.address, KEY, heard.append))
        assert kind == speaker.errors.broken
        assert "".join(heard) == "one two "
        assert scene.outcome == "broken"
