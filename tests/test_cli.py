"""The command line: data on stdout, one line for an error, exit codes as documented."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from understudy.cli import main, parser
from understudy.commands.classify import judge_rows, read_paste

CURL = """HTTP/1.1 100 Continue

HTTP/2 429
content-type: application/json
retry-after: 7

{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}"""


class Stdin(io.StringIO):
    pass


def called(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = main(argv)
    out, err = capsys.readouterr()
    return code, out, err


def test_a_pasted_curl_answer_is_classified_and_explained(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    paste = tmp_path / "paste.txt"
    paste.write_text(CURL)
    code, out, _ = called(capsys, "classify", str(paste))
    assert code == 0
    assert "rate_limit" in out
    assert "7 s" in out
    assert "fail_fast" in out
    assert "availability" in out


def test_json_is_for_machines(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    paste = tmp_path / "paste.txt"
    paste.write_text(CURL)
    _, out, _ = called(capsys, "classify", "--json", str(paste))
    told = json.loads(out)
    assert (told["fault"], told["retry_after_s"]) == ("rate_limit", 7)
    assert set(told["then"]) == {"fail_fast", "availability"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"status": 402, "body": "no"}', "out_of_credits"),
        ("HTTP/1.1 503 Service Unavailable\r\nServer: x\r\n\r\nbusy", "transient"),
        ("ConnectionResetError: [Errno 104] Connection reset by peer", "transient"),
        ('{"error":{"code":"context_length_exceeded","message":"too long"}}', "context_length"),
        ("", "unknown"),
    ],
)
def test_whatever_people_paste_is_understood(text: str, fault: str) -> None:
    assert str(read_paste(text).verdict().fault) == fault


def test_rows_in_rows_out_and_a_bad_row_loses_no_other(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows = tmp_path / "rows.jsonl"
    good = {
        "id": "x",
        "provider": "openai",
        "status": 503,
        "headers": {},
        "body": "",
        "stream": False,
    }
    lines = [json.dumps(good), "nonsense", "", json.dumps({**good, "id": "y", "status": "503"})]
    rows.write_text("\n".join([*lines, json.dumps({**good, "id": "z", "status": 401})]))
    code, out, err = called(capsys, "classify", "--jsonl", str(rows))
    assert [json.loads(line) for line in out.splitlines()] == [
        {"id": "x", "fault": "transient", "retry_after_s": None},
        {"id": "z", "fault": "auth", "retry_after_s": None},
    ]
    assert code == 1
    assert "line 2: not a JSON object: 'nonsense'" in err
    assert "line 4: status is '503'; give a number or null" in err


def test_rows_may_have_bodies_as_json() -> None:
    row = json.dumps({"id": "a", "status": 400, "body": {"error": {"code": "insufficient_quota"}}})
    assert [told["fault"] for told, _ in judge_rows([row]) if told] == ["out_of_credits"]


def test_a_plan_from_the_environment(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, "plan", "ollama/x, openai/gpt-5.5")
    assert code == 0
    assert out.splitlines()[0].startswith("1. ollama/x")
    _, out, _ = called(capsys, "plan", "--json", "ollama/x")
    assert json.loads(out)["head"] == "ollama/x"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["plan", "thinking"], "unknown alias 'thinking'"),
        (["plan", "p/"], "no model in element 'p/'"),
        (["plan", "nobody/x"], "LLM_NOBODY is not set"),
        (["plan"], "the following arguments are required: spec"),
        (["wrong"], "invalid choice: 'wrong'"),
        (["classify", "/no/such/file"], "No such file"),
        (["serve", "--config", "/no/such/file"], "No such file"),
    ],
)
def test_a_mistake_is_one_line_and_no_stack_trace(
    capsys: pytest.CaptureFixture[str], argv: list[str], said: str
) -> None:
    code, out, err = called(capsys, *argv)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert said in err
    assert "Traceback" not in err


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys)
    assert code == 2
    assert "usage: understudy" in out


def test_the_demo_tells_a_failover(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, "demo")
    assert code == 0
    assert "the understudy goes on" in out
    assert "the lead is back" in out


def test_every_verb_has_a_sentence_of_help() -> None:
    assert "say what kind of failure" in parser().format_help()


def test_stdin_is_read_where_no_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    before, sys.stdin = sys.stdin, Stdin(CURL)
    try:
        _, out, _ = called(capsys, "classify")
    finally:
        sys.stdin = before
    assert "rate_limit" in out
