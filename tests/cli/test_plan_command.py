"""Plans on this side of the wire: of a file, of a request in any dialect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.stage import CONFIG, call, file, terminal
from understudy.commands.plan import read
from understudy.commands.plan import show as show_plan
from understudy.core.errors import InvalidRequest
from understudy.dialects.guess import request_in
from understudy.registry import Registry

PICTURE = "data:image/gif;base64,R0lGODlhAQABAAAAACw="
SEEN = {"type": "image_url", "image_url": {"url": PICTURE}}


def test_a_plan_of_a_file_knows_its_aliases_and_its_policy(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said = call(capsys, "plan", "chat", "--config", file(tmp_path, CONFIG), "--timeout", "1m")
    assert said.out.splitlines() == [
        "1. near/small  try   healthy, up to 1 attempt, 30 s",
        "2. near/large  try   healthy, up to 1 attempt, 30 s",
        "policy availability, at worst 2 attempts",
    ]


def test_a_plan_of_a_request_tells_who_cannot_take_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    request = {"model": "chat", "messages": [{"role": "user", "content": [SEEN]}]}
    asked = file(tmp_path, json.dumps(request), "request.json")
    config = file(tmp_path, CONFIG)
    said = call(capsys, "plan", "chat", "--config", config, "--request", asked, "--json")
    rows = json.loads(said.out)["targets"]
    assert [(row["verdict"], row["reason"]) for row in rows] == [
        ("skip", "takes no images"),
        ("try", "healthy, up to 1 attempt"),
    ]


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": "user", "content": "hello"}]},
        {"input": "hello"},
        {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]},
        {
            "max_tokens": 5,
            "system": [{"type": "text", "text": "s"}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
        },
        {
            "max_tokens": 5,
            "messages": [
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "t1", "name": "f", "input": {}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": "x"},
                    {"type": "text", "text": "hello"}]},
            ],
        },
    ],
    ids=["chat", "responses", "gemini", "messages", "messages with tools"],
)  # fmt: skip
def test_a_request_file_may_be_of_any_dialect(body: dict[str, object]) -> None:
    request = request_in(json.dumps({"model": "m", **body}).encode())
    assert request.messages[-1].text == "hello"


@pytest.mark.parametrize("body", [b"[]", b"no", b"{}", b'{"messages": 5}'])
def test_a_request_file_that_is_none_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        request_in(body)


def test_a_plan_read_from_json_prints_as_it_was() -> None:
    plan = Registry(env={}).parse("ollama/x, openai/y").plan(timeout=60)
    assert str(read(plan.to_dict())) == str(plan)


def test_a_terminal_gets_the_plan_as_a_table() -> None:
    screen, out, _ = terminal(NO_COLOR="1")
    show_plan(Registry(env={}).parse("ollama/x").plan(timeout=60), screen, as_json=False)
    assert "verdict" in out.getvalue()
    assert "60 s" in out.getvalue()
    assert "policy fail_fast, at worst 2 attempts" in out.getvalue()
