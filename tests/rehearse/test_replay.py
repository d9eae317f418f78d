"""Journals played again under other settings, worked out by hand; and files as they are found."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from pathlib import Path

import pytest

from tests.cli.stage import call, terminal
from tests.rehearse.paper import EPOCH, Paper, again, failed, ok, read, settings, skipped, stories
from understudy import AVAILABILITY, FAIL_FAST, Cooldown, Fault
from understudy.commands.replay import Wanted, replay
from understudy.core.budget import RetryBudget
from understudy.core.health import Bench
from understudy.core.target import Attempt
from understudy.observe import journal_lines as lines
from understudy.observe.journal_lines import Benched, Cleared, Head
from understudy.rehearse.replay_read import InvalidJournal, files_of
from understudy.rehearse.replay_report import compare
from understudy.rehearse.replay_settings import TABLES, Changes, read_changes
from understudy.rehearse.scenario_file import InvalidScenario
from understudy.testing import ManualClock

# -- other settings, worked out by hand


def outage() -> Paper:
    """Two failures bench the only target for 5 s; two find it benched; then all is well."""
    paper = Paper().chain("p/a")
    paper.request(
        "r1", "failed", failed("p/a", 0.0, "retry"), failed("p/a", 0.1, "advance", 2, 5.0)
    )
    paper.entries.append(Benched("p/a", 0.2, 0.2, 5.2, "transient"))
    paper.request("r2", "failed", skipped("p/a", 1.0))
    paper.request("r3", "failed", skipped("p/a", 2.0))
    paper.request("r4", "ok", ok("p/a", 6.0))
    paper.entries.append(Cleared("p/a", 6.5))
    return paper


def test_by_hand_the_same_settings_decide_the_same(tmp_path: Path) -> None:
    found = again(outage().at(tmp_path))
    assert stories(found) == []
    assert (found.before.benches, found.after.benches) == (1, 1)
    assert (found.after.success, found.after.wasted_attempts) == (0.25, 2)


def test_a_rest_that_does_not_say_who_was_benched_is_decided_by_nobody(tmp_path: Path) -> None:
    paper = Paper().chain("p/a")
    paper.entries[:2] = [Head(lines.VERSION, "r", 3, 40.0, EPOCH, 0, paper.told)]
    paper.request("r1", "failed", skipped("p/a", 41.0))
    paper.request("r2", "ok", ok("p/a", 46.0))
    found = again(paper.at(tmp_path))
    assert stories(found) == []
    assert (found.before.requests, found.after.requests) == (0, 0)
    assert "2 requests began before the journal does" in found.notes


def test_a_threshold_of_three_would_have_benched_a_second_later_and_lost_the_answer_at_six(
    tmp_path: Path,
) -> None:
    """r2 asks it at 1.0 s: 0.9 s after a failure, 5 s before a success, so it fails as well.
    That is the third failure: benched from 1.1 s to 6.1 s, and r4 comes at 6.0 s."""
    found = again(outage().at(tmp_path), change=("health.threshold=3", "policy.max_wait=0"))
    assert stories(found) == [
        ("r2", "otherwise", "p/a=skipped", "p/a=transient"),
        ("r4", "lost", "p/a=ok", "p/a=skipped"),
    ]
    assert dict(found.sure) == {"known": 2, "inferred": 1}
    assert (found.after.answered, found.after.benches) == (0, 1)


def test_a_threshold_of_three_would_have_saved_a_request_that_another_worker_shows_to_be_well(
    tmp_path: Path,
) -> None:
    """Another process asked the same target at 1.6 s and was answered."""
    first = outage().at(tmp_path, "journal.1.jsonl")
    other = Paper("s").chain("p/a").request("s1", "ok", ok("p/a", 1.6, 0.3))
    both = (first, other.at(tmp_path, "journal.2.jsonl"))
    change = ("health.threshold=3", "policy.transient_retries=0", "policy.max_wait=0")
    found = again(*both, change=change)
    assert stories(found) == [
        ("r1", "otherwise", "p/a=transient, p/a=transient", "p/a=transient"),
        ("r2", "saved", "p/a=skipped", "p/a=ok"),
        ("r3", "saved", "p/a=skipped", "p/a=ok"),
    ]
    assert found.count("saved") == 2
    assert found.after.latency_p50 == pytest.approx(0.3)


def test_who_is_asked_long_after_anybody_else_is_taken_to_be_well(tmp_path: Path) -> None:
    paper = Paper().chain("p/a", "p/b")
    paper.request("r1", "ok", ok("p/a", 100.0, 0.25))
    paper.entries.append(Benched("p/b", 0.5, 0.5, 900.5, source="operator"))
    paper.entries.append(Benched("p/a", 400.0, 400.0, 900.0, source="operator"))
    paper.request("r2", "failed", skipped("p/a", 500.0, ""), skipped("p/b", 500.0, ""))
    paper.entries.append(Cleared("p/b", 501.0, "operator"))
    paper.request("r3", "ok", skipped("p/a", 502.0, ""), ok("p/b", 502.0, 0.75))
    assert stories(again(paper.at(tmp_path))) == []
    # Without its own bench in the way p/b is asked by nobody new: orders stay orders.
    found = again(paper.at(tmp_path), change=("health.base=1",))
    assert stories(found) == []


def test_what_our_own_machine_failed_at_is_blamed_on_nobody_in_a_replay_either(
    tmp_path: Path,
) -> None:
    def out_of_files(at: float) -> lines.Tried:
        said = "p:443 cannot be reached from here (Too many open files)"
        attempt = Attempt("p/a", "failed", Fault.TRANSIENT, None, 0.1, said, 1, "default")
        return lines.tried(replace(attempt, then="advance", began=at), 0.0)

    paper = Paper().chain("p/a")
    for number in range(5):
        paper.request(f"r{number}", "failed", out_of_files(float(number)))
    paper.request("r5", "ok", ok("p/a", 5.0))
    for change in ((), ("health.threshold=1",)):
        found = again(paper.at(tmp_path), change=change)
        assert stories(found) == []
        assert (found.before.benches, found.after.benches) == (0, 0)


def test_between_two_failures_a_target_was_down_however_far_they_are(tmp_path: Path) -> None:
    paper = Paper(told=settings(cooldown=Cooldown(1, 400.0, cap=400.0, probe=True))).chain("p/a")
    paper.request("r1", "failed", failed("p/a", 0.0, "advance", benched=400.0))
    paper.entries.append(Benched("p/a", 0.1, 0.1, 400.1, "transient"))
    paper.request("r2", "failed", skipped("p/a", 200.0))
    paper.request("r3", "failed", failed("p/a", 450.0, "advance", benched=400.0))
    paper.entries.append(Benched("p/a", 450.1, 450.1, 850.1, "transient"))
    assert stories(again(paper.at(tmp_path))) == []
    found = again(paper.at(tmp_path), change=("health.base=100", "health.cap=100"))
    assert stories(found) == [("r2", "otherwise", "p/a=skipped", "p/a=transient")]


def test_another_processes_word_is_obeyed_when_it_came(tmp_path: Path) -> None:
    """It had benched the target at 3 s, we were told at 4 s, and it knew of one bench before."""
    paper = Paper().chain("p/a", "p/b")
    paper.request("r1", "ok", ok("p/a", 3.5, 0.1))
    paper.entries.append(Benched("p/a", 4.0, 3.0, 13.0, "transient", remote=True, rounds=2))
    paper.request("r2", "ok", skipped("p/a", 5.0), ok("p/b", 5.0))
    paper.entries.append(Cleared("p/a", 6.0, "remote"))
    paper.request("r3", "ok", ok("p/a", 7.0))
    found = again(paper.at(tmp_path))
    assert stories(found) == []
    assert (found.before.benches, found.after.benches) == (0, 0)


def test_a_shorter_deadline_cuts_an_answer_short(tmp_path: Path) -> None:
    paper = Paper().chain("p/a", "p/b").chain("p/b", n=2)
    paper.request("r1", "ok", ok("p/a", 0.0, 8.0)).request("r2", "ok", ok("p/b", 7.0), chain=2)
    found = again(paper.at(tmp_path), change=("gateway.timeout=10",))
    # Five of ten seconds for the first of two; two seconds later the other was well.
    assert stories(found) == [("r1", "otherwise", "p/a=ok", "p/a=stall_pre_first_byte, p/b=ok")]
    assert found.after.benches == 0  # the caller's own time blames nobody


def test_another_table_brings_its_own_numbers_but_for_those_that_were_set(tmp_path: Path) -> None:
    bent = replace(AVAILABILITY, transient_retries=3)
    told = settings(bent)
    strict = read_changes(["policy=fail_fast"]).rules(told.policy)
    assert strict.rules == FAIL_FAST.rules
    assert (strict.name, strict.transient_retries) == ("fail_fast", 3)
    assert (strict.max_wait, strict.budget_ratio, strict.session_seconds) == (0.0, None, math.inf)
    assert read_changes(["policy.max_wait=9"]).rules(told.policy).max_wait == 9
    assert lines.policy_of(told.policy) == bent


def test_every_number_of_a_cooldown_can_be_set() -> None:
    assert set(TABLES["health"]) == {spec.name for spec in fields(Cooldown)}


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("health.treshold=3", "health.treshold: unknown key; did you mean 'threshold'?"),
        ("helth.threshold=3", "helth: unknown setting; did you mean 'health'?"),
        ("health.threshold=0", "health.threshold: is 0; expected a whole number, 1 or more"),
        ("policy=generous", "policy: is 'generous'; expected one of availability, fail_fast"),
        ("gateway.port=1", "gateway.port: unknown key; known: timeout"),
        ("threshold", "'threshold' is no setting; write for example health.threshold=3"),
    ],
)
def test_a_wrong_setting_is_refused_with_the_nearest_right_one(setting: str, says: str) -> None:
    with pytest.raises(InvalidScenario) as caught:
        read_changes(["health.base=1", setting])
    assert caught.value.problems == [says]


def test_a_budget_is_filled_to_what_it_held_or_to_what_it_can_hold() -> None:
    clock = ManualClock(5.0)
    for tokens, held in ((3.5, 3.5), (0.0, 0.0), (60.0, 60.0), (1000.0, 100.0)):
        budget = RetryBudget(0.2, 10.0, clock=clock)
        assert budget.fill(tokens) == pytest.approx(held)
        budget.deposit()
        assert budget.left == pytest.approx(min(100.0, held + 0.2))


# -- files


def test_a_torn_last_line_is_left_out_and_said(tmp_path: Path) -> None:
    path = outage().at(tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    library = read(path)
    assert (library.torn, library.damages) == (["journal.jsonl"], 0)
    found = compare(library, Changes())
    assert found.before.requests == 4
    assert found.notes == ["journal.jsonl: the last line is torn and was left out"]


def test_damaged_lines_are_counted_and_named_and_the_rest_is_read(tmp_path: Path) -> None:
    whole = outage().text.splitlines(keepends=True)
    whole[4:4] = [b'{"kind":"reque\n', b"\x00\xff\n", b'{"kind":"unheard of"}\n']
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"".join(whole))
    library = read(path)
    assert (library.damages, library.requests) == (3, 4)
    notes = compare(library, Changes()).notes
    assert notes == [
        "3 lines could not be read: journal.jsonl:5, journal.jsonl:6, journal.jsonl:7"
    ]


def test_a_request_that_had_not_ended_is_felt_by_the_others(tmp_path: Path) -> None:
    """Its failures benched the target; it was still being answered when the journal ends."""
    paper = Paper().chain("p/a", "p/b")
    for tried in (failed("p/a", 0.0, "retry"), failed("p/a", 0.1, "advance", 2, 5.0)):
        paper.entries.append(lines.Going("r1", 0.0, 1, True, tried))
    paper.entries.append(Benched("p/a", 0.2, 0.2, 5.2, "transient"))
    paper.request("r2", "ok", skipped("p/a", 1.0), ok("p/b", 1.0))
    found = again(paper.at(tmp_path))
    assert stories(found) == []
    assert found.notes == ["1 request had not ended when the journal does"]
    assert found.before.requests == 1


def test_files_put_aside_are_found_the_oldest_first(tmp_path: Path) -> None:
    for name in ("j.jsonl", "j.jsonl.1", "j.jsonl.10", "j.jsonl.2", "j.jsonl.old", "j.jsonl.2.gz"):
        (tmp_path / name).touch()
    found = files_of([str(tmp_path / "j.jsonl")])
    assert [path.name for path in found] == ["j.jsonl.10", "j.jsonl.2", "j.jsonl.1", "j.jsonl"]
    assert files_of([str(tmp_path / "j.jsonl.2")]) == [tmp_path / "j.jsonl.2"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no journal in these files"),
        (b'{"event":"request"}\n', "no journal in these files"),
        (outage().text.replace(b'"version":1', b'"version":9'), "written by a newer version"),
    ],
)
def test_what_is_no_journal_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(content)
    with pytest.raises(InvalidJournal, match=says):
        read(path)


def test_an_entry_of_the_tracker_survives_its_line() -> None:
    bench = Bench("p#k1", 3.0, math.inf, Fault.AUTH, "credential", "header", "why")
    told = lines.DECODER.decode(lines.ENCODER.encode(lines.benched(bench, 3.5, 1.0)))
    assert told == Benched("p#k1", 2.5, 2.0, None, "auth", "credential", "header")


# -- the command


def test_the_command_tells_what_would_have_changed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = str(outage().at(tmp_path))
    change = ("--set", "health.threshold=3", "--set", "policy.max_wait=0")
    said = call(capsys, "replay", path, *change)
    assert said.code == 0
    assert said.out.splitlines()[:3] == [
        "                                        then  health.threshold=3, policy.max_wait=0",
        "requests                                   4                                      4",
        "answered                            25.000 %                                0.000 %",
    ]
    assert "2 requests would have gone otherwise: 0 saved, 1 lost" in said.out
    assert "2023-11-14 22:13:26.000  r4  lost\n    then  ok: p/a=ok\n" in said.out
    assert "1 attempt of 3 were never made: 1 judged by" in said.out
    told = json.loads(call(capsys, "replay", path, *change, "--json").out)
    assert (told["changed"], told["saved"], told["lost"]) == (2, 0, 1)
    assert told["attempts"] == {"known": 2, "inferred": 1, "assumed": 0}
    assert told["before"]["latency_p50"] == 0.5
    assert told["requests"][1] == {
        "id": "r4",
        "at": EPOCH + 6.0,
        "means": "lost",
        "before": {"outcome": "ok", "story": "p/a=ok"},
        "after": {"outcome": "failed", "story": "p/a=skipped"},
    }


def test_the_command_says_when_the_same_settings_do_not_decide_the_same(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said = call(capsys, "replay", str(outage().at(tmp_path)))
    assert (said.code, said.out.splitlines()[-1]) == (0, "every request is decided as it was")
    paper = outage()
    paper.request("r5", "failed", skipped("p/a", 8.0))
    said = call(capsys, "replay", str(paper.at(tmp_path)))
    assert said.code == 1
    assert "    now   ok: p/a=ok" in said.out


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("nosuch.jsonl",), "nosuch.jsonl: No such file or directory"),
        (("nosuch.jsonl", "--set", "health.treshold=3"), "did you mean 'threshold'?"),
        ((), "the following arguments are required: FILE"),
    ],
)
def test_wrong_usage_is_code_two_and_one_line(
    capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], says: str
) -> None:
    said = call(capsys, "replay", *argv)
    assert said.code == 2
    assert says in said.err.splitlines()[0]


def test_a_long_journal_shows_its_progress_where_somebody_looks(tmp_path: Path) -> None:
    paper = Paper().chain("p/a")
    for n in range(1000):
        paper.request(f"r{n}", "ok", ok("p/a", float(n), 0.1))
    screen, out, err = terminal()
    wanted = Wanted((str(paper.at(tmp_path)),))
    assert replay(wanted, echo=screen.data, note=screen.note, say=screen.progress)
    assert "] 1,000/1,000 requests" in err.getvalue()
    assert "every request is decided as it was" in out.getvalue()
