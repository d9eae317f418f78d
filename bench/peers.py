# mypy: disable-error-code="import-not-found,misc,no-untyped-def,no-untyped-call"
# (the peers live in virtualenvs of their own, where no type checker looks)
"""What other failover libraries cost a call, on fake models that answer at once.

    python bench/peers.py          set up every peer under .bench/ and say what is there

Each peer runs in its own virtualenv and process, which answers lines `case calls` with CPU
seconds; so `core.py` can measure all of them, and us, in turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

HERE = Path(__file__).parent
HOME = HERE.parent / ".bench"
TEXT = "hello there"

Ask = Callable[[], Awaitable[object]]
Cases = dict[
    str, Ask
]  # "direct": the fake by itself, "answers": the chain, "fails": its head fails


async def batch(ask: Ask, calls: int) -> float:
    """CPU seconds of so many calls, one after the other, clearing up included."""
    started = time.process_time()
    for _ in range(calls):
        await ask()
    await asyncio.sleep(0)  # the loop forgets cancelled timers here; that is part of the price
    return time.process_time() - started


def pydantic_ai() -> Cases:
    from pydantic_ai.exceptions import ModelHTTPError
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.models.fallback import FallbackModel

    class Fake(Model):
        def __init__(self, fails: bool) -> None:
            super().__init__()
            self.fails = fails

        async def request(self, messages, model_settings, model_request_parameters):
            if self.fails:
                raise ModelHTTPError(503, "fake", "boom")
            return ModelResponse(parts=[TextPart(TEXT)])

        model_name = property(lambda self: "fake")
        system = property(lambda self: "fake")

    good, bad = Fake(False), Fake(True)
    asked = ([ModelRequest(parts=[UserPromptPart("hello")])], None, ModelRequestParameters())
    whole, broken = FallbackModel(good, good), FallbackModel(bad, good)
    return {
        "direct": lambda: good.request(*asked),
        "answers": lambda: whole.request(*asked),
        "fails": lambda: broken.request(*asked),
    }


def langchain() -> Cases:
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    class Fake(BaseChatModel):
        fails: bool = False
        _llm_type = property(lambda self: "fake")

        def _generate(self, messages, stop=None, run_manager=None, **options):
            raise NotImplementedError

        async def _agenerate(self, messages, stop=None, run_manager=None, **options):
            if self.fails:
                raise RuntimeError("boom")
            return ChatResult(generations=[ChatGeneration(message=AIMessage(TEXT))])

    good, bad = Fake(), Fake(fails=True)
    asked = [HumanMessage("hello")]
    whole, broken = good.with_fallbacks([good]), bad.with_fallbacks([good])
    return {
        "direct": lambda: good.ainvoke(asked),
        "answers": lambda: whole.ainvoke(asked),
        "fails": lambda: broken.ainvoke(asked),
    }


def litellm() -> Cases:
    import litellm as lib
    from litellm.llms.custom_llm import CustomLLM, CustomLLMError

    class Fake(CustomLLM):
        async def acompletion(self, model, messages, *rest, model_response, **options):
            if model == "bad":
                raise CustomLLMError(503, "boom")
            model_response.choices[0].message.content = TEXT
            return model_response

    lib.suppress_debug_info = True
    lib.telemetry = False
    lib.custom_provider_map = [{"provider": "fake", "custom_handler": Fake()}]
    lib.utils.custom_llm_setup()
    router = lib.Router(
        model_list=[
            {"model_name": name, "litellm_params": {"model": f"fake/{name}"}}
            for name in ("good", "spare", "bad")
        ],
        fallbacks=[{"good": ["spare"]}, {"bad": ["spare"]}],
        num_retries=0,
        disable_cooldowns=True,
    )
    asked = [{"role": "user", "content": "hello"}]
    return {
        "direct": lambda: lib.acompletion(model="fake/good", messages=asked),
        "answers": lambda: router.acompletion(model="good", messages=asked),
        "fails": lambda: router.acompletion(model="bad", messages=asked),
    }


@dataclass(frozen=True, slots=True)
class Peer:
    """One library we compare ourselves with."""

    package: str
    what: str
    build: Callable[[], Cases]


PEERS = {
    peer.package: peer
    for peer in (
        Peer("pydantic-ai-slim", "pydantic-ai FallbackModel", pydantic_ai),
        Peer("langchain-core", "LangChain with_fallbacks", langchain),
        Peer("litellm", "LiteLLM Router", litellm),
    )
}


class Missing(Exception):
    """A peer that cannot be set up or does not start; says why in one line."""


class Worker:
    """A peer's process, asked batch by batch."""

    def __init__(self, package: str) -> None:
        environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}  # noqa: TID251
        self._process = subprocess.Popen(
            [_python(package), __file__, "--serve", package],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            text=True,
        )

    def __enter__(self) -> Worker:
        if self._reply() != "ready":
            self._end()
            raise Missing("it did not start")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _: TracebackType | None,
    ) -> None:
        self._end()

    def _end(self) -> None:
        self._process.terminate()
        self._process.communicate()

    def batch(self, case: str, calls: int) -> float:
        pipe = self._process.stdin
        assert pipe is not None
        pipe.write(f"{case} {calls}\n")
        pipe.flush()
        return float(json.loads(self._reply() or "NaN"))

    def _reply(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def set_up(package: str) -> None:
    """Make the peer's virtualenv, unless it is there in the pinned version."""
    wanted = _pins()[package]
    stamp = HOME / package / "installed"
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    python = _python(package)
    _tried([sys.executable, "-m", "venv", str(HOME / package)])
    quiet = ("--quiet", "--disable-pip-version-check")
    _tried([python, "-m", "pip", "install", *quiet, wanted])
    stamp.write_text(wanted)


def _tried(command: list[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    except (OSError, subprocess.SubprocessError) as error:
        said = str(error.stderr or "") if isinstance(error, subprocess.CalledProcessError) else ""
        lines = [line for line in said.splitlines() if line.startswith("ERROR")]
        raise Missing(lines[-1] if lines else f"{error}".partition("\n")[0]) from error


def _pins() -> dict[str, str]:
    lines = (HERE / "requirements-peers.txt").read_text().splitlines()
    return {x.partition("==")[0]: x.strip() for x in lines if x and not x.startswith("#")}


def _python(package: str) -> str:
    return str(HOME / package / ("Scripts" if os.name == "nt" else "bin") / "python")


async def serve(package: str) -> None:
    """The peer's side: check that the cases do what they say, then answer lines."""
    wire, sys.stdout = sys.stdout, sys.stderr  # a library that prints must not break the line
    cases = PEERS[package].build()
    for ask in cases.values():
        assert TEXT in repr(await ask())
    wire.write("ready\n")
    wire.flush()
    for line in sys.stdin:
        case, calls = line.split()
        wire.write(f"{await batch(cases[case], int(calls))}\n")
        wire.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--serve", metavar="PEER", help="answer lines on stdin (for core.py)")
    package = parser.parse_args().serve
    if package:
        asyncio.run(serve(package))
        return
    for name in PEERS:
        try:
            set_up(name)
            with Worker(name) as worker:
                micros = worker.batch("answers", 10) / 10 * 1e6
        except Missing as error:
            sys.stdout.write(f"{name}: skipped: {error}\n")
        else:
            sys.stdout.write(f"{name}: ready, {micros:,.0f} µs for its first calls\n")


if __name__ == "__main__":
    main()
