"""Completion scripts come from the parser, and the shells at hand accept them."""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.stage import call
from understudy.cli import parser
from understudy.commands.completion import SCRIPTS, read, script

TREE = read(parser())
WORDS = sorted(
    {command.name for _, command in TREE.walk() if command.name}
    | {name for _, command in TREE.walk() for option in command.options for name in option.names}
)


@pytest.mark.parametrize("shell", SCRIPTS)
def test_every_verb_and_flag_is_offered(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = call(capsys, "completion", shell)
    assert said.code == 0
    shown = said.out.replace(" -l ", " --").replace(" -s ", " -") if shell == "fish" else said.out
    assert [word for word in WORDS if word not in shown] == []


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_shell_accepts_its_script(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    done = subprocess.run(
        [shell, "-n"], input=script(shell, parser()), text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("understudy cl", ["classify"]),
        ("understudy plan --ti", ["--timeout"]),
        ("understudy completion f", ["fish"]),
        ("understudy bench p/a --w", ["--why"]),
        ("understudy ask --js", ["--json"]),
    ],
)
def test_bash_offers_what_fits(line: str, offered: list[str], tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    words = line.split(" ")
    source = f"""{script("bash", parser())}
COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}
_understudy; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(
        ["bash", "--norc"], input=source, text=True, capture_output=True, check=True, cwd=tmp_path
    )
    assert done.stdout.split() == offered


def test_bash_offers_files_where_a_flag_takes_one(tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    (tmp_path / "one.toml").write_text("")
    source = f"""{script("bash", parser())}
COMP_WORDS=(understudy serve --config on); COMP_CWORD=3
_understudy; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(
        ["bash", "--norc"], input=source, text=True, capture_output=True, check=True, cwd=tmp_path
    )
    assert done.stdout.split() == ["one.toml"]


def test_quotes_in_a_sentence_do_no_harm() -> None:
    odd = argparse.ArgumentParser()
    odd.add_argument("--x", help="what's [this]: $HOME `id` \"")
    for shell in SCRIPTS:
        assert "what's" not in script(shell, odd)


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    said = call(capsys, "completion", "tcsh")
    assert said.code == 2
    assert "invalid choice: 'tcsh'" in said.err
