"""Recorded exchanges of Anthropic, Gemini and Ollama, read as the official SDKs read them.

The recordings lie beside the checkout; without them these tests skip. A body is fed in several
slicings, and a request must come out of `write_request` as it went into `read_request`, but for
the differences that `plain` below takes out: they mean the same to the vendor.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from understudy.dialects.anthropic import Anthropic
from understudy.dialects.base import Dialect, WireError
from understudy.dialects.gemini import Gemini
from understudy.dialects.ollama import Ollama
from understudy.messages.response import Response

RECORDINGS = Path(__file__).parents[2] / "../shared/wire/exchanges.jsonl"
DIALECTS: dict[str, Dialect] = {
    "anthropic": Anthropic(),
    "gemini": Gemini(),
    "ollama": Ollama(state_schema=False),
}
SLICINGS = (1 << 30, 4096, 61, 7)


@cache
def recordings() -> tuple[dict[str, Any], ...]:
    if not RECORDINGS.exists():
        pytest.skip("no recordings beside the checkout")
    rows = map(json.loads, RECORDINGS.read_text().splitlines())
    return tuple(row for row in rows if row["dialect"] in DIALECTS)


def rows(dialect: str, *, good: bool) -> list[dict[str, Any]]:
    return [r for r in recordings() if r["dialect"] == dialect and (r["status"] == 200) == good]


def streamed(dialect: Dialect, body: bytes, size: int) -> Response:
    reader = dialect.reader()
    events = [e for at in range(0, len(body), size) for e in reader.feed(body[at : at + size])]
    events += reader.end()
    assert reader.failure is None
    assert reader.done
    assert isinstance(events[-1], Response)
    return events[-1]


def seen(response: Response) -> dict[str, object]:
    usage = response.usage
    counts: dict[str, int] | None = None
    if usage is not None:
        portions = ("cache_read", "cache_write", "reasoning", "tool_input")
        more = {name: getattr(usage, name) for name in portions if getattr(usage, name)}
        counts = {"input": usage.input, "output": usage.output, **more}
    calls = [{"name": c.name, "arguments": json.loads(c.arguments)} for c in response.tool_calls]
    return {
        "text": response.text,
        "reasoning": response.reasoning or None,
        "tool_calls": calls,
        "finish": response.finish_reason,
        "finish_raw": response.finish_raw or None,
        "usage": counts,
        "model": response.model or None,
    }


def expected(row: dict[str, Any]) -> dict[str, object]:
    told = {key: value for key, value in row["expected"].items() if key in seen(Response())}
    told["reasoning"] = told["reasoning"] or None
    if told["usage"]:
        told["usage"] = {k: v or 0 for k, v in told["usage"].items()}  # an absent count is 0
    return told


@pytest.mark.parametrize("dialect", DIALECTS)
def test_recorded_answers_are_read_as_the_sdks_read_them(dialect: str) -> None:
    wrong = []
    for row in rows(dialect, good=True):
        body = row["response_body"].encode()
        if row["framing"] == "json":
            found = [seen(DIALECTS[dialect].read_response(body))]
        else:
            found = [seen(streamed(DIALECTS[dialect], body, size)) for size in SLICINGS]
        wrong += [(row["id"], it) for it in found if it != expected(row)]
    assert wrong == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_plain_answer_to_a_streaming_request_is_taken_too(dialect: str) -> None:
    wrong = []
    for row in rows(dialect, good=True):
        if row["framing"] == "json":
            found = seen(streamed(DIALECTS[dialect], row["response_body"].encode(), 997))
            wrong += [row["id"]] if found != expected(row) else []
    assert wrong == []


@pytest.mark.parametrize("dialect", ["anthropic", "gemini"])
def test_recorded_errors_have_a_sentence_and_are_no_answers(dialect: str) -> None:
    for row in rows(dialect, good=False):
        body = row["response_body"].encode()
        assert DIALECTS[dialect].read_error(body)
        with pytest.raises(WireError):
            DIALECTS[dialect].read_response(body)
        reader = DIALECTS[dialect].reader()
        assert [*reader.feed(body), *reader.end()] == []
        assert reader.failure is not None


@pytest.mark.parametrize("dialect", DIALECTS)
def test_recorded_answers_survive_being_written_and_read_again(dialect: str) -> None:
    ours = DIALECTS[dialect]
    for row in rows(dialect, good=True):
        if row["framing"] == "json":
            first = ours.read_response(row["response_body"].encode())
            again = ours.read_response(json.dumps(ours.write_response(first, "")).encode())
            assert seen(again) == seen(first), row["id"]


def walked(value: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    if isinstance(value, list):
        return [walked(item, change) for item in value]
    if isinstance(value, dict):
        return change({key: walked(item, change) for key, item in value.items()})
    return value


def without(it: dict[str, Any], **defaults: object) -> dict[str, Any]:
    """Without nulls, and without fields that only repeat a default."""
    unset = {k for k, v in it.items() if v is None or (k in defaults and v == defaults[k])}
    return {k: v for k, v in it.items() if k not in unset}


def plain_anthropic(it: dict[str, Any]) -> dict[str, Any]:
    it = without(it, is_error=False, description="", stream=False, system="")
    for key in ("content", "system"):  # text is short for a block of text
        if isinstance(it.get(key), str) and (
            key == "system" or {"role", "tool_use_id"} & it.keys()
        ):
            it[key] = [{"type": "text", "text": it[key]}]
    if "output_format" in it:  # the name it had before
        it["output_config"] = {"format": it.pop("output_format")}
    return without(it, system=[], tools=[])


def joined(contents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Neighbours of one role are one turn, in one content or in several."""
    turns: list[dict[str, Any]] = []
    for content in contents:
        if turns and turns[-1]["role"] == content["role"]:
            turns[-1] = {**turns[-1], "parts": turns[-1]["parts"] + content["parts"]}
        else:
            turns.append(content)
    return turns


def plain_gemini(it: dict[str, Any]) -> dict[str, Any]:
    spelt = {re.sub(r"_([a-z])", lambda f: f[1].upper(), key): v for key, v in it.items()}
    it = without(spelt, description="", generationConfig={})
    if "thinkingLevel" in it:
        it["thinkingLevel"] = it["thinkingLevel"].upper()
    if "mimeType" in it and "data" in it:  # both base64 alphabets are taken
        it["data"] = it["data"].replace("-", "+").replace("_", "/")
    if "parts" in it:
        it.setdefault("role", "user")
    if "contents" in it:
        it["contents"] = joined(it["contents"])
    if isinstance(it.get("tools"), dict):  # one may stand for a list of one
        it["tools"] = [it["tools"]]
    return it


def plain_ollama(it: dict[str, Any]) -> dict[str, Any]:
    return without(it, format="", tools=[], options={}, stream=True)


PLAIN = {"anthropic": plain_anthropic, "gemini": plain_gemini, "ollama": plain_ollama}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_recorded_requests_are_written_as_they_were_read(dialect: str) -> None:
    ours, wrong = DIALECTS[dialect], []
    for row in recordings():
        if row["dialect"] != dialect or "prompt" in row["request"]:  # /api/generate is not ours
            continue
        found = ours.read_request(json.dumps(row["request"]).encode(), "m", row["stream"])
        written = ours.write_request(found.request, found.model, found.stream)
        if "model" not in row["request"]:
            written.pop("model", None)  # Bedrock has it in the URL
        if walked(written, PLAIN[dialect]) != walked(row["request"], PLAIN[dialect]):
            wrong.append(row["id"])
    assert wrong == []
