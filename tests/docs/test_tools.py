"""What the pages show of other people's SDKs works, against the demo's gateway on a socket.

A block titled "with a gateway" is a whole program that asks the address of the page; each runs in
a process of its own. A client that is not installed is skipped.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.stage import aside, whole_gateway
from tests.docs.test_blocks import GATEWAY, PAGES, ROOT, blocks

SHOWN = "http://127.0.0.1:8080"
NODE = ROOT / "tests/clients/node"
PROGRAMS = [
    pytest.param(block.language, block.text, id=f"{Path(page).stem}:{block.line}")
    for page in PAGES
    for block in blocks(page)
    if block.info.endswith(GATEWAY)
]


def command(language: str, program: str) -> list[str]:
    """How to run it; skips where its client is missing."""
    if language == "python":
        package = program.split()[1].partition(".")[0]
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
        return [sys.executable, "-c", program]
    node = shutil.which("node")
    if node is None or not (NODE / "node_modules/ai").exists():
        pytest.skip("node or the AI SDK is not installed")
    return [node, "--input-type=module", "--eval", program]


def test_the_page_shows_the_clients_that_people_use() -> None:
    assert len(PROGRAMS) >= 6


@pytest.mark.parametrize(("language", "program"), PROGRAMS)
def test_a_program_of_a_page_gets_an_answer(language: str, program: str) -> None:
    assert SHOWN in program
    with aside(whole_gateway()) as address:
        argv = command(language, program.replace(SHOWN, address))
        done = subprocess.run(
            argv, cwd=NODE, capture_output=True, text=True, timeout=120, check=False
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("hello from understudy/aria\n"), done.stdout
