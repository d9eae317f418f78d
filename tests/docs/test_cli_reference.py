"""The page of the command line is the parser: every verb, flag and exit code, in order."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import msgspec
import pytest

from understudy import cli
from understudy.agents.codec import read_envelope
from understudy.agents.envelope import IntentEnvelope
from understudy.commands import parser as verbs
from understudy.commands.classify import Failure, explain, rendered

DOCS = Path(__file__).parents[2] / "docs"
SOURCE = Path(cli.__file__).parent
PAGE = (DOCS / "reference/cli.md").read_text(encoding="utf-8")
HEADING = re.compile(r"^#{2,3} (.+)$", re.M)


def commands(parser: argparse.ArgumentParser, path: str = "") -> dict[str, list[tuple[str, str]]]:
    """The arguments of every verb, by its path; `--help` is everybody's."""
    found: dict[str, list[tuple[str, str]]] = {path: []} if path else {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                found |= commands(inner, f"{path} {name}".strip())
        elif path and action.dest != "help":
            found[path].append((shown(action), action.help or ""))
    return found


def shown(action: argparse.Action) -> str:
    word = str(action.metavar or action.dest.upper())
    if not action.option_strings:
        return word
    return ", ".join(action.option_strings) + ("" if action.nargs == 0 else f" {word}")


COMMANDS = commands(cli.parser())


def section(name: str) -> str:
    """What stands under a heading, up to the next."""
    found = re.search(rf"^#{{2,3}} {re.escape(name)}$(.*?)(?=^#{{2,3}} |\Z)", PAGE, re.M | re.S)
    assert found, f"the page has no heading {name!r}"
    return found[1]


def test_the_page_has_a_heading_for_every_verb_in_order() -> None:
    headings = [heading for heading in HEADING.findall(PAGE) if heading.lower() == heading]
    assert headings == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_arguments_of_a_verb_are_those_of_the_page(name: str) -> None:
    rows = re.findall(r"^\| `([^`]+)` \| (.*) \|$", section(name), re.M)
    assert rows == COMMANDS[name]


@pytest.mark.parametrize("name", [name for name in COMMANDS if " " not in name])
def test_every_verb_is_shown_in_use(name: str) -> None:
    assert f"understudy {name}" in section(name)


def test_the_exit_codes_are_those_of_the_code() -> None:
    told = [int(code) for code in re.findall(r"^\| (\d+) \|", section("Exit codes"), re.M)]
    ours = {cli.OK, cli.FAILED, verbs.CommandError.code, verbs.Unreachable.code, cli.INTERRUPTED}
    assert told == sorted(ours)
    assert all(f"{code} " in str(cli.parser().epilog) for code in told)
    errors = (
        (DOCS / "reference/errors.md").read_text(encoding="utf-8").partition("Exit codes: ")[2]
    )
    assert [int(code) for code in re.findall(r"(?:^|, |,\n)(\d+) ", errors)] == told


def test_a_failure_is_told_as_the_page_on_policies_shows() -> None:
    page = (DOCS / "how-to/choose-a-policy.md").read_text(encoding="utf-8")
    body = '{"error": {"code": "rate_limit_exceeded"}}'
    verdict = Failure(status=429, headers={"retry-after": "7"}, body=body).verdict()
    assert f"```text\n{rendered(explain(verdict))}\n```" in page


def test_the_variables_of_the_page_are_read_by_the_code() -> None:
    told = re.findall(r"^\| `([A-Z_]+)` \|", section("Environment"), re.M)
    sources = "".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    assert cli.DEBUG in told
    assert [name for name in told if f'"{name}"' not in sources] == []


def test_the_envelope_on_the_page_is_one_and_shows_every_part() -> None:
    _, _, rest = PAGE.partition("```json\n")
    shown = rest.partition("```")[0].encode()
    envelope = read_envelope(shown)
    assert (envelope.intent.name, envelope.routing.strategy) == ("summarize", "fallback")
    parts = {field.name for field in msgspec.structs.fields(IntentEnvelope)} - {"version"}
    assert set(msgspec.json.decode(shown)) == parts
