"""aimock, a mock server of many vendors written by others, behind the gateway; SDKs in front.

It speaks every dialect we speak and fails in ways its authors thought of: what counts as their
answer, their error or their broken stream is theirs to say.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.rig import KEY, Backstage
from tests.clients.speakers import SPEAKERS, Speaker
from tests.judges.rig import HERE, Door, in_front_of, post, running

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession")
DIALECTS = ("openai", "responses", "anthropic", "gemini", "ollama")
TEXT = "Grüezi, 世界! The understudy goes on."
CALLS = [{"name": "weather", "arguments": json.dumps({"city": c})} for c in ("Bern", "Basel")]
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


def _error(status: int, kind: str, message: str, **more: object) -> dict[str, object]:
    return {"response": {"error": {"message": message, "type": kind}, "status": status, **more}}


def _chaos(**rates: float) -> dict[str, object]:
    return {"response": {"content": "never heard"}, "chaos": rates}


# What a model of this name does, and what that is called here.
BEFORE = {
    "overloaded": (_error(503, "server_error", "try later"), "transient"),
    "limited": (_error(429, "rate_limit_error", "slow down", retryAfter=7), "rate_limit"),
    "locked": (_error(401, "authentication_error", "no such key"), "auth"),
    "unpaid": (_error(402, "billing_error", "insufficient credits"), "out_of_credits"),
    "dropped": (_chaos(dropRate=1), "transient"),
    "malformed": (_chaos(malformedRate=1), "transient"),
    "hung-up": (_chaos(disconnectRate=1), "transient"),
    "chaotic-limit": (_chaos(rateLimitRate=1), "rate_limit"),
    "blank": ({"response": {"content": ""}}, "empty_content"),
}
CUT = {"response": {"content": TEXT}, "chunkSize": 4, "latency": 20, "truncateAfterChunks": 8}
OTHERS: dict[str, dict[str, object]] = {
    "wrong": _error(400, "invalid_request_error", "temperature: too hot"),
    "tools": {"response": {"toolCalls": CALLS}},
    "cut": CUT,
    "m": {"response": {"content": TEXT}, "chunkSize": 4},
}
MODELS = {**{name: told for name, (told, _) in BEFORE.items()}, **OTHERS}


@pytest.fixture(scope="module")
def aimock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where it listens."""
    program = HERE / "node" / "node_modules" / ".bin" / "llmock"
    node = shutil.which("node")
    if node is None or not program.exists():
        pytest.skip("aimock is not installed here; `make judges` installs it")
    folder: Path = tmp_path_factory.mktemp("aimock")
    rows = [{"match": {"model": name}, **told} for name, told in MODELS.items()]
    vectors = {"match": {"endpoint": "embedding"}, "response": {"embedding": [0.25, 0.5]}}
    (folder / "rows.json").write_text(json.dumps({"fixtures": [vectors, *rows]}))
    command = [node, str(program), "--port", "0", "--fixtures", "rows.json"]
    with running(command, "listening on ", folder) as address:
        yield address


@pytest.fixture
def door(request: pytest.FixtureRequest, backstage: Backstage, aimock: str) -> Iterator[Door]:
    """A gateway that speaks to it in the dialect the test names."""
    chains = {name: f"head/{name}, tail/m" for name in MODELS}
    with backstage.held(
        in_front_of(aimock, request.param, chat="dead/m, tail/m", **chains)
    ) as ready:
        yield ready


spoken = pytest.mark.parametrize("door", DIALECTS, indirect=True)
ways = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])


def ask(door: Door, model: str, *, stream: bool, **more: object) -> tuple[int, str, str]:
    """Status, text, and the error's sentence if there is one; as OpenAI's wire has them."""
    body = {"model": model, "stream": stream, "messages": [{"role": "user", "content": "hi"}]}
    told = post(door.address, "/v1/chat/completions", {**body, **more})
    if told.headers["content-type"] == "application/json":
        rows, piece = [told.json], "message"
    else:
        lines = [line for line in told.body.decode().split("\n") if line.startswith("data: {")]
        rows, piece = [json.loads(line[6:]) for line in lines], "delta"
    choices = [choice for row in rows for choice in row.get("choices", [])]
    text = "".join(choice[piece].get("content") or "" for choice in choices)
    error = "".join(row["error"]["message"] for row in rows if "error" in row)
    assert ("[DONE]" in told.body.decode()) is (stream and not error)
    return told.status, text, error


@spoken
@pytest.mark.parametrize("speaker", SPEAKERS, ids=str)
def test_every_sdk_gets_the_answer_whole_and_piece_by_piece(door: Door, speaker: Speaker) -> None:
    speaker.need()
    assert speaker.plain(door.address, KEY) == TEXT
    assert door.story() == ["dead/m=transient", "dead/m=transient", "tail/m=ok"]
    pieces: list[str] = []
    assert speaker.stream(door.address, KEY, pieces.append) == TEXT
    assert pieces == [TEXT[at : at + 4] for at in range(0, len(TEXT), 4)]
    assert door.story() == ["dead/m=skipped", "tail/m=ok"]


@spoken
@ways
@pytest.mark.parametrize("model", BEFORE)
def test_whatever_its_authors_call_a_failure_is_answered_by_the_next(
    door: Door, model: str, stream: bool
) -> None:
    assert ask(door, model, stream=stream) == (200, TEXT, "")
    *failed, served = door.story()
    assert set(failed) == {f"head/{model}={BEFORE[model][1]}"}
    assert served == "tail/m=ok"


@spoken
@ways
def test_its_own_refusal_is_one_attempt_in_its_own_words(door: Door, stream: bool) -> None:
    status, text, error = ask(door, "wrong", stream=stream)
    assert (status, text) == (400, "")
    assert "temperature: too hot" in error
    assert door.story() == ["head/wrong=permanent"]


@spoken
def test_a_stream_it_breaks_off_is_an_error_and_never_an_end(door: Door) -> None:
    status, text, error = ask(door, "cut", stream=True)
    assert status == 200
    assert text
    assert TEXT.startswith(text)
    assert text != TEXT
    assert error
    record = door.record()
    assert record.outcome == "broken"
    assert [attempt.target for attempt in record.attempts] == ["head/cut"]


@spoken
@ways
def test_its_tool_calls_come_whole(door: Door, stream: bool) -> None:
    body = {"model": "tools", "stream": stream, "tools": [WEATHER]}
    turn = {"role": "user", "content": "weather?"}
    told = post(door.address, "/v1/chat/completions", {**body, "messages": [turn]})
    heard = _calls(told.body.decode(), stream)
    wanted = [("weather", {"city": "Bern"}), ("weather", {"city": "Basel"})]
    assert [(name, json.loads(text)) for name, text in heard.values()] == wanted


def _calls(body: str, stream: bool) -> dict[int, tuple[str, str]]:
    """Tool calls by index: name and arguments, summed up."""
    lines = [line[6:] for line in body.split("\n") if line.startswith("data: {")]
    heard: dict[int, tuple[str, str]] = {}
    for row in map(json.loads, lines if stream else [body]):
        for choice in row["choices"]:
            for at, call in enumerate(
                choice["delta" if stream else "message"].get("tool_calls") or []
            ):
                index, function = call.get("index", at), call["function"]
                name, text = heard.get(index, ("", ""))
                heard[index] = (name + (function.get("name") or ""), text + function["arguments"])
    return heard


@pytest.mark.parametrize("door", ["openai"], indirect=True)
def test_its_vectors_are_passed_on(door: Door) -> None:
    told = post(door.address, "/v1/embeddings", {"model": "chat", "input": "hello"})
    assert told.status == 200
    assert told.json["data"][0]["embedding"] == [0.25, 0.5]
    assert door.story() == ["dead/m=transient", "dead/m=transient", "tail/m=ok"]
