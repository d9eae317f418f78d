"""What the pages show works: Python runs, TOML parses, commands and links exist.

Blocks of one page share a namespace, in order. A block titled "output" is what the Python above it
printed. Those titled "with a gateway" need one: see test_tools.py.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from understudy.cli import parser

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))
)
FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}|~{3,})(?P<info>[^`\n]*)$")
COMMAND = re.compile(r"^\$ (?:\w+=\S* )*understudy(?P<arguments>(?: .*)?)$", re.M)
SHELL = frozenset(("|", ">", ">>", "<", "&&", "||", ";", "&"))
LINK = re.compile(r"\]\((?!\w+:|#)(?P<path>[^)#\s]+)(?:#[^)]*)?\)")
OUTPUT = 'text title="output"'
GATEWAY = ' title="with a gateway"'
# Names under which a Python block would be shown and never run.
ALIASES = frozenset(("py", "python3", "py3", "pycon", "ipython", "Python"))


@dataclass(frozen=True)
class Block:
    """A fenced block: its info string, its text, and the line of the page its text begins on."""

    info: str
    text: str
    line: int

    @property
    def language(self) -> str:
        return self.info.partition(" ")[0]


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order; an open fence is an error."""
    lines = iter(enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1))
    for number, line in lines:
        opening = FENCE.match(line)
        if opening is None:
            continue
        indent, ticks = len(opening["indent"]), opening["ticks"]
        inside: list[str] = []
        for _, text in lines:
            if text.strip() == ticks:
                break
            inside.append(text[min(indent, len(text) - len(text.lstrip())) :])
        else:
            raise AssertionError(f"{page}:{number}: this fence is never closed")
        yield Block(opening["info"].strip(), "\n".join(inside) + "\n", number + 1)


def prose(page: str) -> str:
    """A page without its fenced blocks."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.sub(r"^ *(`{3,}|~{3,})[^\n]*\n.*?^ *\1 *$", "", text, flags=re.M | re.S)


def those_with(language: str) -> list[str]:
    return [page for page in PAGES if any(block.language == language for block in blocks(page))]


def test_the_reader_of_pages_sees_blocks_with_their_lines() -> None:
    page = "docs/explanation/how-it-works.md"
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    found = list(blocks(page))
    assert found
    for block in found:
        assert lines[block.line - 2].strip() == f"```{block.info}"
        assert lines[block.line - 1] == block.text.splitlines()[0]


@pytest.mark.parametrize("page", those_with("python"))
def test_the_python_of_a_page_runs_and_prints_what_the_page_says(page: str) -> None:
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed = io.StringIO()
    for block in blocks(page):
        if block.info == OUTPUT:
            assert printed.getvalue() == block.text, f"{page}:{block.line}: prints something else"
            printed = io.StringIO()
        elif block.info == "python":
            # Blank lines before it make a traceback point into the page.
            source = "\n" * (block.line - 1) + block.text
            with contextlib.redirect_stdout(printed):
                exec(compile(source, page, "exec"), namespace)


@pytest.mark.parametrize("page", those_with("toml"))
def test_the_toml_of_a_page_parses(page: str) -> None:
    for block in blocks(page):
        if block.language == "toml":
            tomllib.loads(block.text)


@pytest.mark.parametrize("page", those_with("console"))
def test_the_commands_of_a_page_are_commands_of_ours(page: str) -> None:
    for block in blocks(page):
        if block.language != "console":
            continue
        for match in COMMAND.finditer(block.text.replace("\\\n", " ")):
            accepted(match["arguments"])


def accepted(arguments: str) -> None:
    """Raises what the parser raises when it does not know the verb or a flag."""
    words = shlex.split(arguments)
    cut = next((place for place, word in enumerate(words) if word in SHELL), len(words))
    # The parser leaves by SystemExit only for --help and --version.
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        parser().parse_args(words[:cut])


@pytest.mark.parametrize("arguments", ["nosuch", "plan p/a --nosuch"])
def test_a_verb_or_flag_that_does_not_exist_is_refused(arguments: str) -> None:
    with pytest.raises(Exception, match="nosuch"):
        accepted(arguments)


@pytest.mark.parametrize("page", PAGES)
def test_no_block_hides_from_being_run(page: str) -> None:
    assert [b.line for b in blocks(page) if b.language in ALIASES] == []
    infos = {b.info for b in blocks(page) if b.language in ("python", "js")}
    assert infos <= {"python", "python" + GATEWAY, "js" + GATEWAY}


@pytest.mark.parametrize("page", PAGES)
def test_every_fence_is_one_for_the_generator_of_the_site_too(page: str) -> None:
    # It takes a language and options; with anything else the page is torn from there on.
    assert [
        b.line for b in blocks(page) if not re.fullmatch(r'(\w+( title="[\w ]+")?)?', b.info)
    ] == []


@pytest.mark.parametrize("start", ["README.md", "docs/index.md"])
def test_every_page_is_in_the_lists_of_pages(start: str) -> None:
    folder = (ROOT / start).parent
    listed = {(folder / m["path"]).resolve() for m in LINK.finditer(prose(start))}
    pages = {ROOT / page for page in PAGES if page.startswith("docs/")} - {ROOT / "docs/index.md"}
    assert sorted(page for page in pages - listed if not page.name.startswith("0")) == []


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_installed_by_a_name_that_is_not_published(page: str) -> None:
    assert re.findall(r"pip install [^\n]*understudy\[", (ROOT / page).read_text("utf-8")) == []


@pytest.mark.parametrize("page", PAGES)
def test_every_link_to_a_file_leads_somewhere(page: str) -> None:
    folder = (ROOT / page).parent
    dead = [m["path"] for m in LINK.finditer(prose(page)) if not (folder / m["path"]).exists()]
    assert dead == []
