"""Scenario files: read with defaults, or refused with every reason; and what is made of them."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from understudy import AVAILABILITY, FAIL_FAST, Fault
from understudy.commands.simulate import Wanted, simulate
from understudy.rehearse.chance import Chance, constant
from understudy.rehearse.page import page
from understudy.rehearse.scenario import Limit, Outage
from understudy.rehearse.scenario_file import InvalidScenario, read_scenario
from understudy.rehearse.sweep import Play, combinations, run_all
from understudy.rehearse.table import ROWS, table

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "scenarios").glob("*.toml"))
SMALL = """
[scenario]
seconds = 30
[traffic]
rate = 2
[targets."p/a"]
latency = 0.5
outages = [{ start = 5, seconds = 10 }]
[targets."q/b"]
latency = 0.7
"""


def test_what_is_not_said_is_the_gateways_default() -> None:
    scenario = read_scenario('[targets."p/a"]')
    assert scenario.policy == AVAILABILITY
    assert scenario.cooldown.probe
    assert (scenario.chain[0].key, scenario.name) == ("p/a", "scenario")


def test_everything_that_can_be_said_is_understood() -> None:
    scenario = read_scenario(
        """
        [scenario]
        name = "all of it"
        policy = "fail_fast"
        timeout = 9
        [traffic]
        output_tokens = { median = 100, sigma = 0.5 }
        [targets."p/a"]
        first_content = { low = 0.1, high = 0.2 }
        latency = { mean = 2 }
        first_byte_timeout = 3
        outages = [
            { start = 1, seconds = 2, fault = "rate_limit" },
            { start = 5, seconds = 1, slow = 3 },
        ]
        errors = { auth = 0.1 }
        limit = { rate = 2, hint = false }
        [policy]
        transient_retries = 0
        [health]
        threshold = 4
        """
    )
    (role,) = scenario.chain
    assert (scenario.policy.name, scenario.policy.transient_retries) == (FAIL_FAST.name, 0)
    assert (scenario.cooldown.threshold, scenario.cooldown.probe) == (4, False)
    assert scenario.traffic.output_tokens == Chance("lognormal", 100.0, 0.5)
    assert role.nature.first_content == Chance("uniform", 0.1, 0.2)
    assert role.nature.latency == Chance("exponential", 2.0)
    assert role.nature.fails_in == constant(0.05)
    assert role.outages == (
        Outage(1.0, 3.0, Fault.RATE_LIMIT),
        Outage(5.0, 6.0, None, slow=3.0),
    )
    assert role.errors == ((Fault.AUTH, 0.1),)
    assert role.limit == Limit(2, hint=False)
    assert role.patience.first_byte == 3.0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", 'targets: is empty; write for example [targets."p/a"]'),
        ("x = ", "the file is not TOML: "),
        ("[target]", "target: unknown section; did you mean 'targets'?"),
        ("[traffic]\nrat = 3", "traffic.rat: unknown key; did you mean 'rate'?"),
        ("[traffic]\nrate = 0", "traffic.rate: is 0; expected requests a second, above 0"),
        ("[traffic]\nstreams = 2", "traffic.streams: is 2; expected a share from 0 to 1"),
        ("[targets]\nhead = {}", 'targets."head": is no target; write provider/model'),
        (
            '[targets."p/a"]\nlatency = { median = 1 }',
            "targets.\"p/a\".latency: is {'median': 1}; expected seconds, or { low, high }, "
            "{ mean } or { median, sigma }",
        ),
        (
            '[targets."p/a"]\noutages = [{ start = 1 }]',
            "targets.\"p/a\".outages[0]: 'seconds' is missing",
        ),
        (
            '[targets."p/a"]\noutages = [{ start = 1, seconds = 1, fault = "auth", slow = 2 }]',
            'targets."p/a".outages[0]: is slow or fails; give one of the two',
        ),
        (
            '[targets."p/a"]\nerrors = { transiant = 0.1 }',
            "targets.\"p/a\".errors.transiant: unknown key; did you mean 'transient'?",
        ),
        (
            '[targets."p/a"]\nerrors = { auth = 0.6, unknown = 0.6 }',
            'targets."p/a".errors: add up to more than 1',
        ),
        ('[targets."p/a"]\nlimit = { burst = 2 }', "targets.\"p/a\".limit: 'rate' is missing"),
        ("[health]\nthreshold = 0", "health.threshold: is 0; expected a whole number, 1 or more"),
        ("targets = 3", "targets: is 3; a table is expected"),
        (
            '[scenario]\npolicy = "brave"',
            "scenario.policy: is 'brave'; expected one of availability, deterministic, fail_fast",
        ),
    ],
)
def test_a_wrong_file_is_told_where_and_what_would_be_right(text: str, problem: str) -> None:
    with pytest.raises(InvalidScenario) as caught:
        read_scenario(text)
    assert any(told.startswith(problem) for told in caught.value.problems), caught.value.problems


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(InvalidScenario) as caught:
        read_scenario("[traffic]\nrat = 1\n[health]\nbas = 1")
    assert len(caught.value.problems) == 3


def test_settings_are_laid_over_the_file_and_checked_like_it() -> None:
    settings = ["health.threshold=5", 'targets."p/a".latency=2', "scenario.policy=fail_fast"]
    scenario = read_scenario(SMALL, settings)
    assert scenario.cooldown.threshold == 5
    assert scenario.chain[0].nature.latency == constant(2.0)
    assert scenario.policy.name == "fail_fast"
    with pytest.raises(InvalidScenario, match=r"health\.treshold: unknown key; did you mean"):
        read_scenario(SMALL, ["health.treshold=5"])
    with pytest.raises(InvalidScenario, match="'threshold' is no setting; write for example"):
        read_scenario(SMALL, ["threshold"])


def test_a_sweep_is_every_combination_in_order() -> None:
    sweeps = ["health.threshold=1,2", "policy.transient_retries=0,1"]
    plays = list(combinations(Play("x", SMALL), sweeps))
    assert [play.settings for play in plays] == [
        ("health.threshold=1", "policy.transient_retries=0"),
        ("health.threshold=1", "policy.transient_retries=1"),
        ("health.threshold=2", "policy.transient_retries=0"),
        ("health.threshold=2", "policy.transient_retries=1"),
    ]
    done: list[tuple[int, int]] = []
    results = run_all(plays, progress=lambda *told: done.append(told))
    assert [result.label for result in results] == [play.label for play in plays]
    assert done == [(n, 4) for n in range(5)]


@pytest.mark.parametrize("sweep", ["health.threshold", "=1,2", "health.threshold=,"])
def test_a_sweep_that_is_none_is_refused(sweep: str) -> None:
    with pytest.raises(InvalidScenario, match="is no sweep"):
        list(combinations(Play("x", SMALL), [sweep]))


def test_a_sweep_without_end_is_refused() -> None:
    many = "health.threshold=" + ",".join(map(str, range(1, 200)))
    with pytest.raises(InvalidScenario, match="39601 runs are too many; at most 10000"):
        list(combinations(Play("x", SMALL), [many, many]))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_the_examples_are_right(file: Path) -> None:
    assert read_scenario(file.read_text(encoding="utf-8")).chain


class Page(HTMLParser):
    """Tags balanced, and nothing fetched from anywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        assert tag not in {"script", "link", "img", "iframe"}
        assert not {name for name, _ in attrs} & {"src", "href", "onload"}
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)


def test_the_page_is_whole_needs_nothing_else_and_escapes_names() -> None:
    plays = [Play("<one>", SMALL), Play("two", SMALL, ("health.threshold=3",))]
    written = page(run_all(plays), title="<b>&")
    reader = Page()
    reader.feed(written)
    assert reader.open == []
    assert reader.seen.count("svg") == 4 + 2
    assert "<b>&" not in written
    assert "<one>" not in written
    assert "prefers-color-scheme: dark" in written
    assert "http" not in written
    assert 'class="outage"' in written
    assert 'class="bench"' in written


def test_the_table_marks_the_best_and_turns_when_it_gets_wide() -> None:
    few = table(run_all(combinations(Play("x", SMALL), ["health.threshold=1,9"])))
    assert len(few.splitlines()) == len(ROWS) + 1
    assert " *" in few
    many = table(run_all(combinations(Play("x", SMALL), ["health.threshold=1,2,3,4,5"])))
    assert len(many.splitlines()) == 5 + 1


def test_the_command_prints_a_table_or_json_and_writes_a_page(tmp_path: Path) -> None:
    file, html = tmp_path / "small.toml", tmp_path / "out.html"
    file.write_text(SMALL, encoding="utf-8")
    printed: list[str] = []
    said: list[str] = []
    wanted = Wanted((str(file), str(file)), ("health.threshold=1,2",), 9, str(html), as_json=True)
    assert simulate(wanted, echo=printed.append, say=said.append) == 0
    rows = json.loads(printed[0])
    assert [row["run"] for row in rows] == [
        "small, health.threshold=1",
        "small, health.threshold=2",
    ] * 2
    assert rows[0]["scores"] == rows[2]["scores"]
    assert {row["seed"] for row in rows} == {9}
    assert said[-1].endswith("4/4 runs")
    assert html.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert simulate(Wanted((str(file),)), echo=printed.append) == 0
    assert "answered" in printed[1]
