# ruff: noqa: E501 - tables: rows are read across
"""The mini-language: what it says, and how it complains."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.gateway.desk import ask
from tests.rig import run
from understudy.providers.fake import HANG, Chunks, Http, Pause
from understudy.rehearse.catalogue import CATALOGUE, ROWS
from understudy.rehearse.cues import Queue, outcome, steps
from understudy.rehearse.script import Clause, ScriptError, Status, Text, Timed, parse
from understudy.rehearse.server import FakeServer
from understudy.rehearse.wire import CLOSE, Drip, First, Open, Reply, Rest
from understudy.rehearse.wire import HANG as SILENT


def test_a_script_says_who_does_what_in_which_order() -> None:
    assert parse("p/a: 503 429(7) reset-mid-stream; p/b: 'hello'") == (
        Clause("p/a", (Status(503), Status(429, 7.0), CATALOGUE["reset-mid-stream"])),
        Clause("p/b", (Text("hello"),)),
    )


def test_lines_comments_and_colons_within_models_are_understood() -> None:
    script = """
    # two machines
    m1/qwen3:30b: hang pause(2.5) "it's; fine: # really"   # then well

    m5/a#b: cut(2) drip(0.1) ...
    """
    assert parse(script) == (
        Clause("m1/qwen3:30b", (Timed("hang"), Timed("pause", 2.5), Text("it's; fine: # really"))),
        Clause("m5/a#b", (Timed("cut", 2.0), Timed("drip", 0.1)), repeats=True),
    )


def test_stars_multiply_and_escapes_are_undone() -> None:
    (clause,) = parse(r"p/a: 503*3 'don\'t\n'")
    assert clause.cues == (Status(503),) * 3 + (Text("don't\n"),)


def test_a_number_the_catalogue_has_is_that_row_with_its_words() -> None:
    (clause,) = parse("p/a: 429 429(3)")
    assert clause.cues == (CATALOGUE["429"], Status(429, 3.0))


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("", "the script is empty; write for example \"p/a: 503 'hello'\""),
        ("503", "column 1: a clause begins with a target and a colon, like 'p/a: 503'"),
        ("p/a:", "column 4: 'p/a' has no outcomes"),
        (
            "p/a: resett-mid-stream",
            "column 6: unknown outcome 'resett-mid-stream'; did you mean 'reset-mid-stream'?",
        ),
        ("p/a: 999", "column 6: 999 is no HTTP status"),
        ("p/a: 503; p/b: wobble", "column 16: unknown outcome 'wobble'; see `understudy fake --list`"),
        ("p/a: pause", "column 6: write 'pause(3)'"),
        ("p/a: hang(3)", "column 6: write 'hang'"),
        ("p/a: pause(soon)", "column 6: 'pause(soon)' needs a number, 0 or more"),
        ("p/a: blank(3)", "column 6: 'blank' takes no number in brackets"),
        ("p/a: 'open", "column 6: cannot read \"'open\""),
        ("p/a: *3", "column 6: '*N' follows an outcome, N from 1 to 10000"),
        ("p/a: 503 ... 503", "column 14: '...' stands at the end of a clause"),
        ("p/a: 503\np/b: nope", "line 2, column 6: unknown outcome 'nope'; see `understudy fake --list`"),
        ("p/a: 503; p/a: 500", "'p/a' has two clauses; put them into one"),
    ],
)  # fmt: skip
def test_a_script_that_cannot_be_read_is_told_where_and_why(script: str, complaint: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parse(script)
    assert str(caught.value) == complaint


@given(st.text(max_size=60))
@example("0:\r")
def test_any_text_is_read_or_refused_and_nothing_else(script: str) -> None:
    try:
        clauses = parse(script)
    except ScriptError:
        return
    assert all(clause.cues for clause in clauses)


@given(st.lists(st.sampled_from(sorted(CATALOGUE)), min_size=1, max_size=8))
def test_every_row_of_the_catalogue_can_be_named(names: list[str]) -> None:
    (clause,) = parse(f"p/a: {' '.join(names)}")
    assert clause.cues == tuple(CATALOGUE[name] for name in names)


def test_cues_become_outcomes_of_a_fake() -> None:
    (clause,) = parse("p/a: 503 429(7) hang pause(3) 'hi' cut(2)")
    status, paced, hang, pause, text, cut = map(outcome, clause.cues)
    assert (status, paced) == (Http(503), Http(429, headers={"retry-after": "7"}))
    assert (hang, pause, text) == (HANG, Pause(3.0), "hi")
    assert isinstance(cut, Chunks)
    assert cut.pieces[:2] == ("half", "half")


def test_what_only_bytes_can_show_is_refused_by_name() -> None:
    (clause,) = parse("p/a: drip(1)")
    with pytest.raises(ScriptError, match="'drip\\(1\\)' is a matter of bytes; use `understudy"):
        outcome(clause.cues[0])


@pytest.mark.parametrize("fault", [row.name for row in ROWS if not (row.plain or row.stream)])
def test_what_no_server_can_show_is_refused_by_name_and_offered_to_nobody(fault: str) -> None:
    with pytest.raises(ScriptError, match=f"'{fault}' happens before a server is reached"):
        FakeServer(parse(f"p/a: 503 {fault}"))

    async def offered() -> bytes:
        async with FakeServer() as server:
            return (await ask(server.address, "GET", "/v1/models")).body

    said = run(offered())
    assert b'"cut-body"' in said
    assert f'"{fault}"'.encode() not in said


def test_cues_become_steps_on_the_wire() -> None:
    (clause,) = parse("p/a: 503(2) hang pause(1) cut(2) drip(0.1)")
    paced, hang, pause, cut, drip = (steps(cue, stream=True) for cue in clause.cues)
    assert paced == (Reply(503, b"", headers=(("retry-after", "2"),)),)
    assert (hang, pause, drip) == ((SILENT,), (Rest(1.0),), (Drip(0.1, stream=True),))
    assert cut == (Open(), First(2), CLOSE)


def test_a_queue_gives_pauses_with_what_follows_them_and_starts_again_if_told_to() -> None:
    (clause,) = parse("p/a: pause(1) 503 500 ...")
    queue = Queue(clause)
    taken = [queue.next() for _ in range(3)]
    assert taken == [[Timed("pause", 1.0), Status(503)], [CATALOGUE["500"]], taken[0]]
    done = Queue(Clause("p/a", (Status(503),)))
    assert (done.next(), done.next()) == ([Status(503)], [])
