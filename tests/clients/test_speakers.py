"""Every client, every way: past a head that is down to the tail, relayed or translated.

The tail's dialect is the client's own, or another one; the head is a closed port, or answers 503.
Conformance is judged by the SDKs: what their accumulators give is what was streamed.
"""

from __future__ import annotations

import pytest

from tests.clients.rig import FAILED_OVER, KEY, Backstage, Setting, staged
from tests.clients.speakers import SPEAKERS, Speaker
from understudy import Response, Usage
from understudy.testing import Chunks

OTHER = {
    "openai": "anthropic",
    "responses": "gemini",
    "anthropic": "openai",
    "gemini": "anthropic",
    "ollama": "responses",
}
PIECES = ("Grüezi, ", "世界", " 🎭!")
# Google's SDK subclasses aiohttp's session, which aiohttp discourages.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")
speakers = pytest.mark.parametrize("speaker", SPEAKERS, ids=str)
heads = pytest.mark.parametrize("head", ["refused", "503"])
ways = pytest.mark.parametrize("way", ["relayed", "translated"])


def setting(speaker: Speaker, way: str, head: str) -> Setting:
    speaker.need()
    return Setting(speaker.dialect if way == "relayed" else OTHER[speaker.dialect], head)


@speakers
@ways
@heads
def test_a_plain_answer_comes_from_the_tail(
    backstage: Backstage, speaker: Speaker, way: str, head: str
) -> None:
    with staged(backstage, setting(speaker, way, head)) as scene:
        scene.fake.script("x", Response("".join(PIECES), usage=Usage(7, 5)))
        assert speaker.plain(scene.address, KEY) == "".join(PIECES)
        assert scene.story == FAILED_OVER


@speakers
@ways
@heads
def test_a_stream_comes_piece_by_piece_and_accumulates(
    backstage: Backstage, speaker: Speaker, way: str, head: str
) -> None:
    with staged(backstage, setting(speaker, way, head)) as scene:
        scene.fake.script("x", Chunks(*PIECES))
        heard: list[str] = []
        assert speaker.stream(scene.address, KEY, heard.append) == "".join(PIECES)
        assert heard == list(PIECES)
        assert (scene.story, scene.outcome) == (FAILED_OVER, "ok")
