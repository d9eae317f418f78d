"""llama.cpp's own server behind the gateway, with a dead head before it; official SDKs in front.

It speaks three dialects, so every SDK meets it relayed and translated. The model is a tiny one
(tiny_gguf.py) that says the alphabet.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from string import ascii_lowercase

import pytest

from tests.clients.rig import KEY, Backstage
from tests.clients.speak_google import client as google
from tests.clients.speak_openai import client as openai
from tests.clients.speakers import SPEAKERS, Speaker
from tests.judges.rig import HERE, Door, in_front_of, post, running, tool

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")
WINDOW = 256  # tokens
SPOKEN = ("openai", "anthropic", "responses")
PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}
PLACE = {
    "type": "object",
    "properties": {"capital": {"type": "boolean"}},
    "required": ["capital"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where it listens."""
    folder: Path = tmp_path_factory.mktemp("llama")
    program = [tool(), str(HERE / "tiny_gguf.py"), str(folder), str(WINDOW)]
    with running(program, "listening at ", folder) as address:
        yield address


@pytest.fixture
def door(request: pytest.FixtureRequest, backstage: Backstage, llama: str) -> Iterator[Door]:
    """A gateway that speaks to it in the dialect the test names."""
    with backstage.held(
        in_front_of(llama, request.param, chat="dead/m, tail/m", alone="tail/m")
    ) as ready:
        yield ready


spoken = pytest.mark.parametrize("door", SPOKEN, indirect=True)
# Its Responses events lack the index OpenAI's own accumulator needs, with or without a gateway.
UNABLE = {("responses async", "responses"), ("responses accumulator", "responses")}
PAIRS = [(s, d) for s in SPEAKERS for d in SPOKEN if (s.name, d) not in UNABLE]
relayed = pytest.mark.parametrize(
    ("door", "dialect"), [("openai", "openai"), ("anthropic", "anthropic")], indirect=["door"]
)


def ask(prompt: str, **more: object) -> dict[str, object]:
    return {"model": "chat", "max_tokens": 8, "messages": [_user(prompt)], **more}


def _user(prompt: str) -> dict[str, str]:
    return {"role": "user", "content": prompt}


@pytest.mark.parametrize(("speaker", "door"), PAIRS, indirect=["door"], ids=str)
def test_every_sdk_gets_the_models_answer_whole_and_piece_by_piece(
    door: Door, speaker: Speaker
) -> None:
    speaker.need()
    assert speaker.plain(door.address, KEY) == ascii_lowercase
    assert door.story() == ["dead/m=transient", "dead/m=transient", "tail/m=ok"]
    pieces: list[str] = []
    assert speaker.stream(door.address, KEY, pieces.append) == ascii_lowercase
    assert pieces == list(ascii_lowercase)
    assert door.story() == ["dead/m=skipped", "tail/m=ok"]


@pytest.mark.parametrize(
    ("door", "stream"),
    [(dialect, False) for dialect in SPOKEN] + [("anthropic", True), ("responses", True)],
    indirect=["door"],
)
def test_tokens_are_counted_as_the_server_counts_them(door: Door, stream: bool) -> None:
    """A relayed stream is not read, so nothing is known of its tokens."""
    told = post(door.address, PATHS["openai"], ask("hello", stream=stream))
    record = door.record()
    assert (told.status, record.outcome) == (200, "ok")
    usage = record.usage
    assert usage is not None
    assert usage.total_output == 8
    assert usage.total_input > len("hello")  # a byte is a token, and roles are told too


@pytest.mark.parametrize("door", ["openai"], indirect=True)
def test_a_schema_is_kept_to_whoever_asks(door: Door) -> None:
    """The server holds the model to it token by token; in its other dialects it ignores one."""
    asked = ask("where?", response_format={"type": "json_schema", "json_schema": {
        "name": "place", "schema": PLACE, "strict": True,
    }}, max_tokens=60)  # fmt: skip
    chat = post(door.address, PATHS["openai"], asked).json["choices"][0]["message"]["content"]
    config = {"response_mime_type": "application/json", "response_json_schema": PLACE}
    with google(door.address, KEY) as gemini:
        other = gemini.models.generate_content(model="chat", contents="where?", config=config)
    for text in (chat, other.text):
        assert isinstance(json.loads(text)["capital"], bool)


@relayed
def test_what_only_this_server_knows_survives_both_ways(door: Door, dialect: str) -> None:
    """`min_p` and `timings_per_token` are its own, and so are the figures it answers with."""
    told = post(door.address, PATHS[dialect], ask("hello", min_p=0.1, timings_per_token=True))
    assert told.status == 200
    if dialect == "openai":
        assert told.json["timings"]["predicted_n"] == 8
    assert told.headers["x-understudy-target"] == "tail/m"


@relayed
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_a_prompt_beyond_its_window_is_context_length_in_its_own_words(
    door: Door, dialect: str, stream: bool
) -> None:
    told = post(door.address, PATHS[dialect], ask("x" * WINDOW, stream=stream))
    assert told.status == 400
    assert "exceeds the available context size" in told.body.decode()
    last = door.record().attempts[-1]
    assert (last.target, last.fault, last.then) == ("tail/m", "context_length", "stop")


@pytest.mark.parametrize("door", ["openai"], indirect=True)
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_a_prompt_beyond_its_window_is_told_in_the_callers_dialect(
    door: Door, stream: bool
) -> None:
    told = post(door.address, PATHS["anthropic"], ask("x" * WINDOW, stream=stream))
    assert told.status == 400
    assert told.json["type"] == "error"
    assert told.json["error"]["code"] == "context_length"


@pytest.mark.parametrize("door", ["openai"], indirect=True)
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"messages": [{"role": "user"}]}, "must contain 'content'"),
        ({"min_p": "low"}, "must be number"),
        ({"grammar": "root ::= ("}, "failed to parse grammar"),
    ],
    ids=["messages", "min_p", "grammar"],
)
def test_a_request_it_refuses_is_one_attempt_and_held_against_nobody(
    door: Door, wrong: dict[str, object], words: str, stream: bool
) -> None:
    asked = {**ask("hello", stream=stream), **wrong, "model": "alone"}
    told = post(door.address, PATHS["openai"], asked)
    assert told.status == 400
    assert words in told.json["error"]["message"]
    assert door.story() == ["tail/m=permanent"]
    with openai(door.address, KEY) as client:  # and it goes on as if nothing had been
        answer = client.chat.completions.create(model="alone", messages=[_user("hello")])  # type: ignore[list-item]
    assert answer.choices[0].message.content == ascii_lowercase
    assert door.story() == ["tail/m=ok"]


@pytest.mark.parametrize("door", ["openai"], indirect=True)
def test_what_it_was_not_started_for_is_left_to_the_next(door: Door) -> None:
    """It answers with a 501, and a 5xx is never the caller's fault."""
    told = post(door.address, "/v1/embeddings", {"model": "alone", "input": "hello"})
    assert told.status == 503
    assert "does not support embeddings" in told.body.decode()
    assert {attempt.then for attempt in door.record().attempts} <= {"retry", "advance"}
