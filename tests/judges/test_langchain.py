"""LangChain's standard suite for chat models, over three gateways with a dead head each.

The model behind them is played by `player.py`. What the suite passes over is listed here with the
reason; anything else that it passes over, or fails, is a failure of this test.
"""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.clients.rig import KEY, Backstage, closed_port
from tests.judges.player import Player
from tests.judges.rig import HERE, tool
from tests.served import house, listening, provider
from understudy.gateway.house import ClientKey

TAILS = {"relayed": "openai", "translated": "anthropic", "responses": "gemini"}
PASSED_OVER = {
    # A benchmark of recorded exchanges; nothing is recorded here.
    "TestRelayed.test_stream_time": "VCR not set up.",
    "TestTranslated.test_stream_time": "VCR not set up.",
    "TestResponses.test_stream_time": "VCR not set up.",
    # The Messages API takes no sound, and a chain says so.
    "TestTranslated.test_audio_inputs": "Model does not support audio inputs.",
}


@asynccontextmanager
async def staged(dialect: str) -> AsyncIterator[str]:
    """The address of a gateway: a dead head, and a tail that speaks this to the player."""
    async with AsyncExitStack() as stack:
        nobody = stack.enter_context(closed_port())
        stage = await stack.enter_async_context(
            listening(house(Player("p"), m="p/x", other="p/o"))
        )
        head, tail = provider(dialect, nobody, "head"), provider(dialect, stage, "tail")
        for each in (head, tail):
            stack.push_async_callback(each.aclose)
        near = house(head, tail, chat="head/m, tail/m", other="head/other, tail/other")
        near = replace(near, keys=(ClientKey("suite", KEY),))
        yield await stack.enter_async_context(listening(near))


@pytest.fixture(scope="module")
def report(backstage: Backstage, tmp_path_factory: pytest.TempPathFactory) -> ET.Element:
    """What the judges' pytest wrote of its run."""
    folder: Path = tmp_path_factory.mktemp("langchain")
    command = [tool(), "-m", "pytest", str(HERE / "langchain_suite.py"), "-q"]
    quiet = ["-c", "/dev/null", "--rootdir", str(folder), "--noconftest", "-p", "no:cacheprovider"]
    loops = ["-o", "asyncio_mode=auto", "-o", "asyncio_default_test_loop_scope=session"]
    written = folder / "report.xml"
    with ExitStack() as stack:
        found = {n: stack.enter_context(backstage.held(staged(d))) for n, d in TAILS.items()}
        environment = {"GATEWAYS": json.dumps({**found, "key": KEY}), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(
            [*command, *quiet, *loops, f"--junitxml={written}"],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    assert written.exists(), done.stdout + done.stderr
    return ET.parse(written).getroot()


def test_the_suite_passes(report: ET.Element) -> None:
    wrong = [
        f"{case.get('classname')}.{case.get('name')}: {bad.get('message')}"
        for case in report.iter("testcase")
        for bad in (*case.iter("failure"), *case.iter("error"))
    ]
    assert wrong == []
    assert len(list(report.iter("testcase"))) > 100


def test_nothing_is_passed_over_but_what_is_listed(report: ET.Element) -> None:
    skipped = {
        f"{case.get('classname')}.{case.get('name')}".lstrip("."): skip.get("message")
        for case in report.iter("testcase")
        for skip in case.iter("skipped")
    }
    assert skipped == PASSED_OVER
