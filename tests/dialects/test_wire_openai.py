"""Recorded exchanges of OpenAI and those who speak like it, read as the official SDK reads them.

The recordings lie beside the checkout; without them these tests skip. A body is fed in several
slicings. A request must come out of `write_request` as it went into `read_request`, but for the
differences that `settled` takes out: they mean the same to every vendor.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from understudy.dialects import embeddings
from understudy.dialects.base import Dialect, WireError
from understudy.dialects.openai_chat import OpenAIChat
from understudy.dialects.openai_responses import OpenAIResponses
from understudy.messages.parts import ToolCall
from understudy.messages.response import ReasoningDelta, Response, TextDelta

RECORDINGS = Path(__file__).parents[2] / "../shared/wire/exchanges.jsonl"
DIALECTS: dict[str, Dialect] = {
    "openai_chat": OpenAIChat(),
    "openai_responses": OpenAIResponses(),
}
SLICINGS = (1 << 30, 4096, 61, 7)

Row = dict[str, Any]


@cache
def recordings() -> tuple[Row, ...]:
    if not RECORDINGS.exists():
        pytest.skip("no recordings beside the checkout")
    return tuple(map(json.loads, RECORDINGS.read_text().splitlines()))


def rows(dialect: str, *, good: bool = True) -> list[Row]:
    return [r for r in recordings() if r["dialect"] == dialect and (r["status"] == 200) == good]


def streamed(dialect: Dialect, body: bytes, size: int) -> Response:
    reader = dialect.reader()
    events = [e for at in range(0, len(body), size) for e in reader.feed(body[at : at + size])]
    events += reader.end()
    assert reader.failure is None
    *events, response = events
    assert isinstance(response, Response)
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == response.text
    assert "".join(e.text for e in events if isinstance(e, ReasoningDelta)) == response.reasoning
    assert tuple(e for e in events if isinstance(e, ToolCall)) == response.tool_calls
    return response


def seen(response: Response) -> Row:
    usage = response.usage
    counts: dict[str, int] | None = None
    if usage:
        # Tokens written to a cache are newer than the judge, which passes them over.
        portions = {"cache_read": usage.cache_read, "reasoning": usage.reasoning}
        counts = {"input": usage.input, "output": usage.output}
        counts |= {name: count for name, count in portions.items() if count}
    return {
        "text": _parsed(response.text, "{"),
        "reasoning": response.reasoning or None,
        "tool_calls": [
            {"name": call.name, "arguments": _parsed(call.arguments)}
            for call in response.tool_calls
        ],
        "finish": response.finish_reason,
        "finish_raw": response.finish_raw or None,
        "usage": counts,
        "model": response.model or None,
        "refusal": response.refusal or None,
    }


def _parsed(words: str, opening: str = "") -> Any:
    """JSON where there is JSON: spacing is no difference."""
    try:
        return json.loads(words) if words.startswith(opening) else words
    except ValueError:
        return words


def expected(row: Row) -> Row:
    wanted = row["expected"]
    return {
        **{
            key: wanted.get(key) for key in ("reasoning", "tool_calls", "finish", "usage", "model")
        },
        "text": _parsed(wanted["text"], "{"),
        "finish_raw": wanted["finish_raw"] or None,
        "refusal": wanted.get("refusal"),
    }


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_answers_read_as_the_sdk_reads_them(name: str) -> None:
    dialect = DIALECTS[name]
    wrong = []
    for row in rows(name):
        body = row["response_body"].encode()
        if row["framing"] == "sse":
            answers = [streamed(dialect, body, size) for size in SLICINGS]
            assert all(answer == answers[0] for answer in answers), row["id"]
        else:
            answers = [dialect.read_response(body)]
        if seen(answers[0]) != expected(row):
            wrong.append(row["id"])
    assert wrong == []


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_a_plain_answer_is_also_read_by_the_stream_reader(name: str) -> None:
    dialect = DIALECTS[name]
    for row in rows(name):
        if row["framing"] == "json":
            body = row["response_body"].encode()
            assert streamed(dialect, body, 999) == dialect.read_response(body), row["id"]


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_errors_are_errors_and_say_something(name: str) -> None:
    dialect = DIALECTS[name]
    for row in rows(name, good=False):
        body = row["response_body"].encode()
        assert dialect.read_error(body), row["id"]
        with pytest.raises(WireError):
            dialect.read_response(body)


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_a_stream_cut_anywhere_before_its_end_is_never_finished(name: str) -> None:
    dialect = DIALECTS[name]
    for row in rows(name)[:60]:
        if row["framing"] != "sse":
            continue
        reader = dialect.reader()
        body = row["response_body"].encode()
        # Up to the last event that still carries content there is no finish reason.
        end = re.search(rb'"finish_reason": ?"\w|response.(completed|incomplete)"|\[DONE\]', body)
        assert end, row["id"]
        reader.feed(body[: body.rfind(b"data:", 0, end.start())])
        assert not reader.done, row["id"]


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_requests_survive_the_neutral_types(name: str) -> None:
    dialect = DIALECTS[name]
    changed = []
    for row in rows(name) + rows(name, good=False):
        inbound = dialect.read_request(json.dumps(row["request"]).encode(), "named-by-the-path")
        body = dialect.write_request(inbound.request, inbound.model, inbound.stream)
        if settled(json.loads(json.dumps(body))) != settled(row["request"]):
            changed.append(row["id"])
    assert changed == []


def settled(request: Row) -> Row:
    """A request without what we add on purpose: a model that stood in the URL, usage in streams,
    the default `stream: false`, and the null content of a turn that only calls."""
    left = {key: value for key, value in request.items() if key not in ("model", "stream_options")}
    if not left.get("stream"):
        left.pop("stream", None)
    if "messages" in left:
        left["messages"] = [
            {key: value for key, value in turn.items() if (key, value) != ("content", None)}
            for turn in left["messages"]
        ]
    return left


def test_embeddings_read_as_the_sdk_reads_them() -> None:
    for row in rows("embeddings"):
        found, wanted = embeddings.read_response(row["response_body"].encode()), row["expected"]
        assert found.count == wanted["embeddings"]
        assert len(found.vectors[0]) == wanted["dimensions"]
        assert [round(value, 6) for value in found.vectors[0][:3]] == wanted["first"]
        assert found.model == (wanted["model"] or "")
        assert found.input_tokens == (wanted["usage"] or {}).get("input")
    for row in rows("embeddings", good=False):
        with pytest.raises(WireError):
            embeddings.read_response(row["response_body"].encode())
