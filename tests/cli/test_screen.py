"""Plain when piped, coloured on a terminal, and never obeyed by one."""

from __future__ import annotations

import io

import pytest

from tests.cli.stage import terminal
from understudy.commands.screen import Screen, Table, clean
from understudy.commands.story import span, table, why
from understudy.core.faults import Fault
from understudy.core.target import Attempt

STORY = Table(("target", "result"), [("p/a", "transient"), ("p/[b]", "ok")], state=1)


def test_a_pipe_gets_plain_columns() -> None:
    out = io.StringIO()
    Screen(out, io.StringIO()).table(STORY)
    assert out.getvalue() == "target  result\np/a     transient\np/[b]   ok\n"


def test_a_terminal_gets_colours_and_brackets_stay() -> None:
    pytest.importorskip("rich")
    screen, out, _ = terminal(TERM="xterm")
    screen.table(STORY)
    assert "\x1b[31mtransient" in out.getvalue()
    assert "\x1b[32mok" in out.getvalue()
    assert "p/[b]" in out.getvalue()


def test_no_color_is_obeyed() -> None:
    screen, out, _ = terminal(NO_COLOR="1")
    screen.table(STORY)
    assert "\x1b[3" not in out.getvalue()
    assert "transient" in out.getvalue()


@pytest.mark.parametrize("text", ["\x1b[2Jgone", "\x9b31m", "a\rb", "bell\x07", "\x7f"])
def test_what_a_terminal_would_obey_is_taken_out(text: str) -> None:
    screen, out, err = terminal()
    screen.write(text)
    screen.note(text)
    assert "�" in out.getvalue()
    assert "�" in err.getvalue()
    assert not any(char in out.getvalue() for char in "\x1b\x9b\r\x07\x7f")


def test_lines_tabs_and_all_languages_stay() -> None:
    assert clean("a\tb\nñ 漢 🎭") == "a\tb\nñ 漢 🎭"


def test_a_pipe_gets_an_answer_as_it_is() -> None:
    out = io.StringIO()
    Screen(out, io.StringIO()).write("a\rb\x1b")
    assert out.getvalue() == "a\rb\x1b"


def test_notes_are_cleaned_even_in_a_pipe() -> None:
    err = io.StringIO()
    Screen(io.StringIO(), err).note("said \x1b]0;title\x07")
    assert err.getvalue() == "said �]0;title�\n"


@pytest.mark.parametrize(
    ("attempt", "told"),
    [
        (Attempt("p/a", "failed", Fault.TRANSIENT, 503, reason="busy"), "(503) busy"),
        (
            Attempt("p/a", "failed", Fault.AUTH, reason="no", benched=300.0),
            "no, benched for 300 s",
        ),
        (
            Attempt("p/a", "failed", Fault.OUT_OF_CREDITS, benched=float("inf")),
            "benched until cleared",
        ),
        (Attempt("p/a", "ok"), ""),
    ],
)
def test_an_attempt_says_why_in_one_cell(attempt: Attempt, told: str) -> None:
    assert why(attempt) == told


def test_a_skip_took_no_time() -> None:
    (row,) = table([Attempt("p/a", "skipped", Fault.TRANSIENT, reason="skipped, benched")]).rows
    assert row == ("p/a", "skipped", "", "skipped, benched", "")


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.0, "0 s"),
        (0.00057, "0.57 ms"),
        (0.25, "0.25 s"),
        (61.23, "61.2 s"),
        (1778.0, "29 min 38 s"),
    ],
)
def test_times_are_short(seconds: float, told: str) -> None:
    assert span(seconds) == told
