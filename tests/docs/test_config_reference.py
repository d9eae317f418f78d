"""The page of the configuration is the table of keys, and what pages show can be served."""

from __future__ import annotations

import json
import re
import tomllib
from collections import defaultdict

import pytest

from tests.docs.test_blocks import PAGES, ROOT, blocks
from understudy.gateway.config import TOP, examine
from understudy.gateway.keys import SECTIONS, Key
from understudy.gateway.setup import Setup, open_house

PAGE = (ROOT / "docs/reference/config.md").read_text(encoding="utf-8")
TABLES = {name: keys for name, keys in SECTIONS.items() if name != "policy.ALIAS"}
SNIPPETS = [
    pytest.param(block.text, id=f"{page}:{block.line}")
    for page in PAGES
    for block in blocks(page)
    if block.language == "toml" and not {"scenario", "traffic"} & set(tomllib.loads(block.text))
]


class Anything(defaultdict[str, str]):
    """An environment in which every variable is set."""

    def __missing__(self, name: str) -> str:
        return "k-0123456789"

    def get(self, name: str, default: object = None) -> str:
        return self[name]


def row(key: Key) -> tuple[str, str, str, str]:
    default = "" if key.default is None else f"`{json.dumps(key.default)}`"
    return (key.name, key.kind.words, default, key.means)


@pytest.mark.parametrize("section", TABLES)
def test_every_key_is_on_the_page_with_what_it_takes_and_means(section: str) -> None:
    _, found, rest = PAGE.partition(f"\n## [{section}]\n")
    assert found, f"the page has no heading [{section}]"
    text = rest.partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.*) \|$", text, re.M)
    assert [tuple(cell.strip() for cell in cells) for cells in rows] == [
        row(key) for key in TABLES[section]
    ]


def test_what_needs_new_processes_is_told_wherever_it_is_told() -> None:
    names = [name.removeprefix("gateway.") for name in open_house(Setup(port=0)).fixed]
    wanted = {f"`[{name}]`" if name in TABLES else f"`{name}`" for name in names}
    workers = (ROOT / "docs/how-to/run-several-workers.md").read_text(encoding="utf-8")
    for text, end in ((PAGE, "need new processes"), (workers, "replaces the workers one by one")):
        told = text.partition(end)[0].rpartition(". " if text is PAGE else "- **A change")[2]
        assert set(re.findall(r"`[\w\[\]]+`", told)) == wanted


def test_every_section_has_its_heading() -> None:
    headings = re.findall(r"^## \[([\w.]+)\]$", PAGE, re.M)
    assert set(headings) == {*SECTIONS, "aliases"}
    assert {heading.partition(".")[0] for heading in headings} == set(TOP)


@pytest.mark.parametrize("text", SNIPPETS)
def test_a_configuration_on_a_page_has_no_mistake(text: str) -> None:
    _, problems = examine(text, Anything())
    assert [str(problem) for problem in problems] == []


def test_the_file_to_start_from_can_be_served() -> None:
    from understudy.gateway.build import furnish

    text = (ROOT / "deploy/understudy.toml").read_text(encoding="utf-8")
    config, problems = examine(text, Anything())
    house, more = furnish(config, Anything(), lambda: 0.0)
    assert [*problems, *more] == []
    assert list(house.registry.aliases) == ["chat"]


def test_a_mistake_on_a_page_would_be_found() -> None:
    _, problems = examine("[gateway]\nprot = 1\n", Anything())
    assert [problem.path for problem in problems] == ["gateway.prot"]
