"""`understudy serve`: run the gateway until told to stop."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from understudy.gateway.runtime import Opened, Runtime, Setup

Say = Callable[[str], None]


def serve(
    config: str | None, host: str | None, port: int | None, env: Mapping[str, str], say: Say
) -> int:
    """Blocks; the exit code. Log lines go to stdout, words for people to `say`."""
    setup = Setup(Path(config) if config else None, host, port, env)

    async def work() -> None:
        runtime = Runtime(setup, _write)
        await runtime.run(lambda address, opened: say(greeting(address, opened)))

    # What start-up made stays for good: the collector need not look at it again and again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 50)
    _run(work())
    return 0


def greeting(address: str, opened: Opened) -> str:
    """What a newcomer sees: where it is, and one line to try."""
    aliases = list(opened.house.registry.aliases)
    model = aliases[0] if aliases else "openai/gpt-5.5"
    key = ' -H "Authorization: Bearer $UNDERSTUDY_KEY"' if opened.house.keys else ""
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "hello"}]})
    source = {
        "file": "from the configuration file",
        "environment": "from the environment",
        "demo": "demo: scripted providers with a flaky head, no keys needed",
    }[opened.kind]
    return (
        f"understudy listens on {address} ({source})\n"
        f"try: curl -si {address}/v1/chat/completions{key} "
        f"-H 'Content-Type: application/json' -d '{body}'\n"
        f"watch: {address}/understudy/"
    )


def _write(data: bytes) -> None:
    with suppress(OSError):  # nobody reads our lines any more; clients still want their answers
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def _run(work: Coroutine[object, object, None]) -> None:
    """On uvloop where it is installed."""
    try:
        run: Callable[[Coroutine[object, object, None]], None] = import_module("uvloop").run
    except ImportError:
        run = asyncio.run
    run(work)
