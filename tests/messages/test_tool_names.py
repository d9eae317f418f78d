"""Tools under names that a vendor takes, and their calls under the names that the client knows."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy import Request, Response, Tool, ToolCall, ToolChoice, assistant, tool_result
from understudy.dialects.table import dialect_named
from understudy.messages.bends import Undoing
from understudy.messages.parts import Text
from understudy.messages.request import ServerTool
from understudy.messages.response import TextDelta
from understudy.messages.tool_names import fitted_name

EVERYBODYS = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", re.ASCII)
LONG = "mcp__plugin_cloudflare_cloudflare-workers-observability__query_worker_observability"


@given(st.text(min_size=1, max_size=100))
def test_every_name_has_a_form_that_everybody_takes(name: str) -> None:
    fitted = fitted_name(name)
    assert EVERYBODYS.fullmatch(fitted)
    assert fitted_name(fitted) == fitted
    assert (fitted == name) is bool(EVERYBODYS.fullmatch(name))


@pytest.mark.parametrize(
    ("one", "other"), [("a.b", "a:b"), (LONG, LONG + "_2"), ("7", "_7"), ("é", "è")]
)
def test_names_that_look_alike_when_fitted_stay_apart(one: str, other: str) -> None:
    assert fitted_name(one) != fitted_name(other)


def test_a_plain_name_is_kept_readable() -> None:
    assert fitted_name("files.read").startswith("files_read_")
    assert fitted_name(LONG).startswith("mcp__plugin_cloudflare_cloudflare-workers-")


@pytest.mark.parametrize(
    ("dialect", "model"),
    [
        ("openai", "gpt-5.5"),
        ("responses", "gpt-5.5"),
        ("anthropic", "claude-x"),
        ("gemini", "gemini-x"),
    ],
)
def test_a_tool_goes_by_one_fitted_name_everywhere(dialect: str, model: str) -> None:
    call = ToolCall("call_1", LONG)
    request = Request(
        (assistant(call), tool_result(call, "1")),
        tools=(Tool(LONG), Tool("f"), ServerTool(dialect, {"type": "web_search"})),
        tool_choice=ToolChoice("tool", LONG),
    )
    spoken = dialect_named(dialect)
    told = str(spoken.write_request(request, model, False))
    assert LONG not in told
    assert told.count(fitted_name(LONG)) >= 3  # the tool, the choice, the call
    answer = Response(parts=(Text("a"), ToolCall("1", fitted_name(LONG)), ToolCall("2", "f")))
    bends = spoken.bends(request, model)
    assert [part.name for part in bends.undone(answer).tool_calls] == [LONG, "f"]
    *events, last = Undoing(bends).events([TextDelta("a"), *answer.tool_calls, answer])
    assert events == [TextDelta("a"), ToolCall("1", LONG), ToolCall("2", "f")]
    assert last == bends.undone(answer)


def test_a_call_in_the_history_is_fitted_though_its_tool_is_gone() -> None:
    request = Request((assistant(ToolCall("call_1", "a.b")),))
    told = str(dialect_named("anthropic").write_request(request, "claude-x", False))
    assert f"'name': '{fitted_name('a.b')}'" in told
