"""The reference pages say what the code does: every table is compared with it."""

from __future__ import annotations

import math
import re
from dataclasses import fields
from pathlib import Path

import pytest

import understudy
from understudy import testing
from understudy.core import errors
from understudy.core.classify import classify
from understudy.core.faults import Fault
from understudy.core.health import Cooldown
from understudy.core.policy import POLICIES, Mark, Policy, Retry, Scope, Then
from understudy.dialects.table import DIALECTS
from understudy.providers.base import Patience
from understudy.providers.catalogue import VENDORS, base_url, by_name
from understudy.providers.dsn import read_dsn
from understudy.providers.transport import Limits

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs/reference"
ADRS = sorted((ROOT / "docs/adr").glob("0*.md"))
Row = list[str]


def table(page: str, heading: str) -> list[Row]:
    """The rows of the first table under a heading, without its head; cells without backticks."""
    text = (REFERENCE / page).read_text(encoding="utf-8")
    _, found, rest = text.partition(f"\n## {heading}\n")
    assert found, f"{page} has no heading {heading!r}"
    section = rest.partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    rows = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]
    assert len(rows) > 2, f"{page} has no table under {heading!r}"
    return rows[2:]


def words(cell: str) -> list[str]:
    """The items of a cell that lists several: `a`, `b`."""
    return [word.strip(" `") for word in cell.split(",") if word.strip(" `")]


def column(page: str, heading: str, place: int = 0) -> list[str]:
    return [row[place] for row in table(page, heading)]


# Faults


def test_the_page_of_faults_lists_them_all_in_order() -> None:
    assert column("faults.md", "The thirteen") == [str(fault) for fault in Fault]


@pytest.mark.parametrize("row", table("faults.md", "Status"), ids=lambda row: row[0])
def test_a_status_without_words_means_what_the_page_says(row: Row) -> None:
    statuses, fault, *_ = row
    for status in numbers(statuses):
        assert classify(status=status).fault == fault, status


def numbers(cell: str) -> list[int]:
    """`408, 500-599` as numbers."""
    spans = (re.fullmatch(r"(\d+)(?:-(\d+))?", word) for word in words(cell))
    ends = [(int(span[1]), int(span[2] or span[1])) for span in spans if span]
    assert len(ends) == len(words(cell)), f"not a list of statuses: {cell!r}"
    return [number for first, last in ends for number in range(first, last + 1)]


@pytest.mark.parametrize("row", table("faults.md", "Words beat status"), ids=lambda row: row[1])
def test_words_decide_as_the_page_says(row: Row) -> None:
    status, body, fault = row
    assert classify(status=int(status), body=body).fault == fault


@pytest.mark.parametrize("row", table("faults.md", "Delays"), ids=lambda row: row[1])
def test_a_delay_is_read_as_the_page_says(row: Row) -> None:
    where, written, seconds = row
    headers = dict(line.split(": ") for line in words(written)) if where == "header" else {}
    body = "" if where == "header" else written
    verdict = classify(status=429, headers=headers, body=body)
    given = None if seconds == "none" else float(seconds)
    assert (verdict.retry_after, verdict.source) == (given, where if given else "")


# Policies


@pytest.mark.parametrize("policy", POLICIES.values(), ids=lambda p: p.name)
def test_every_cell_of_a_policy_is_on_its_page(policy: Policy) -> None:
    rows = {row[0]: row[1:] for row in table("policies.md", policy.name)}
    if set(rows) == {"every fault"}:
        rows = {str(fault): rows["every fault"] for fault in Fault}
    assert rows == {str(fault): cells(policy, fault) for fault in Fault}


def cells(policy: Policy, fault: Fault) -> Row:
    rule = policy.rule(fault)
    rotate = "yes" if rule.rotate else "no"
    return [str(rule.retry), rotate, str(rule.then), str(rule.mark), str(rule.scope)]


def test_the_numbers_of_every_policy_are_on_its_page() -> None:
    names = [spec.name for spec in fields(Policy) if spec.name not in ("name", "rules")]
    values = [[shown(vars_of(policy, name)) for policy in POLICIES.values()] for name in names]
    told = [(row[0], row[1:4]) for row in table("policies.md", "Numbers")]
    assert told == list(zip(names, values, strict=True))


def vars_of(thing: object, name: str) -> object:
    return getattr(thing, name)


def shown(value: object) -> str:
    return "inf" if value == math.inf else f"{value:g}" if isinstance(value, float) else str(value)


@pytest.mark.parametrize(
    ("heading", "kind"),
    [("What the cells mean: retry", Retry), ("What the cells mean: then", Then),
     ("What the cells mean: mark", Mark), ("What the cells mean: scope", Scope)],
)  # fmt: skip
def test_every_word_of_a_cell_is_explained(
    heading: str, kind: type[Retry | Then | Mark | Scope]
) -> None:
    assert column("policies.md", heading) == [str(word) for word in kind]


@pytest.mark.parametrize(
    ("heading", "settings"),
    [("Cooldown", Cooldown()), ("Patience", Patience())],
)
def test_the_defaults_are_those_of_the_code(heading: str, settings: Cooldown | Patience) -> None:
    told = [tuple(row[:2]) for row in table("policies.md", heading)]
    assert told == [
        (spec.name, shown(vars_of(settings, spec.name))) for spec in fields(settings)
    ]  # fmt: skip


def test_the_limit_of_connecting_is_that_of_the_code() -> None:
    text = (REFERENCE / "policies.md").read_text(encoding="utf-8")
    assert f"`Limits.connect` ({Limits().connect:g} s)" in text


# DSNs


def test_the_page_of_vendors_is_the_catalogue() -> None:
    told = [row[:5] for row in table("dsn.md", "Vendors")]
    assert told == [
        [v.name, v.dialect, v.base_url, "`, `".join(v.keys), v.host_variable] for v in VENDORS
    ]


def test_the_page_of_dialects_is_the_table_of_dialects() -> None:
    assert column("dsn.md", "Dialects") == list(DIALECTS)


@pytest.mark.parametrize("row", table("dsn.md", "Examples"), ids=lambda row: row[0])
def test_a_dsn_is_read_as_the_page_says(row: Row) -> None:
    text, token, url = row
    dsn = read_dsn(text, "LLM_X")
    assert (dsn.token, base_url(by_name()[dsn.scheme], dsn)) == (token, url)


# Names


def test_the_public_names_are_those_of_the_page() -> None:
    assert sorted(names("understudy")) == sorted(understudy.__all__)


def test_the_names_of_the_testing_kit_are_those_of_the_page() -> None:
    assert sorted(names("understudy.testing")) == sorted(testing.__all__)


def names(module: str) -> list[str]:
    """The first cells of all tables of a part of the page; parts are split by `# ` headings."""
    text = (REFERENCE / "api.md").read_text(encoding="utf-8")
    part = text.partition(f"\n# `{module}`\n")[2].partition("\n# ")[0]
    return [match[1] for match in re.finditer(r"^\| `(\w+)[^`]*` \|", part, re.M)]


def test_every_method_the_page_names_exists() -> None:
    text = (REFERENCE / "api.md").read_text(encoding="utf-8")
    dotted = re.findall(r"`(Registry|Model|HealthTracker|ManualClock|Fake)\.(\w+)", text)
    fake, clock = testing.Fake("p"), testing.ManualClock()
    registry = understudy.Registry(env={}, clock=clock)
    registry.register_provider(fake)
    model = registry.parse("p/a")
    things = {type(x).__name__: x for x in (registry, model, registry.health, clock, fake)}
    assert {kind for kind, _ in dotted} == set(things)
    assert [f"{kind}.{name}" for kind, name in dotted if not hasattr(things[kind], name)] == []


# Errors


def test_the_tree_of_errors_is_that_of_the_code() -> None:
    tree = {
        name: [base.__name__ for base in kind.__bases__]
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.UnderstudyError)
    }
    told = {row[0]: words(row[1]) for row in table("errors.md", "The tree")}
    assert told == tree


# Decisions


@pytest.mark.parametrize("path", ADRS, ids=lambda path: path.stem)
def test_a_decision_has_its_four_parts_and_fits_a_page(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    parts = re.findall(r"^## (\w+)$", text, re.M)
    assert parts == ["Status", "Context", "Decision", "Consequences"]
    assert text.startswith(f"# {int(path.name[:4])}. ")
    assert len(text.split()) <= 900


def test_decisions_are_numbered_without_gaps_and_all_listed() -> None:
    index = (ROOT / "docs/adr/README.md").read_text(encoding="utf-8")
    assert [int(path.name[:4]) for path in ADRS] == list(range(1, len(ADRS) + 1))
    assert re.findall(r"\((0\d{3}-[a-z-]+\.md)\)", index) == [path.name for path in ADRS]


def test_every_decision_the_code_cites_exists() -> None:
    known = {path.name[:4] for path in ADRS}
    sources = [*ROOT.glob("src/**/*.py"), *ROOT.glob("docs/**/*.md"), ROOT / "pyproject.toml"]
    cited = {
        number
        for path in sources
        for number in re.findall(r"\b(?:ADR |adr/)(\d{4})", path.read_text(encoding="utf-8"))
    }
    assert cited <= known
