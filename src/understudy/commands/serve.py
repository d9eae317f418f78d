"""`understudy serve`: run the gateway until told to stop."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from shutil import rmtree

from understudy.commands.parser import CommandError
from understudy.core.errors import InvalidDSN
from understudy.gateway.config import read_config
from understudy.gateway.files import raised
from understudy.gateway.runtime import Runtime
from understudy.gateway.setup import Opened, Setup
from understudy.gateway.station import Station
from understudy.gateway.supervisor import Supervisor
from understudy.observe.lines import LogLines
from understudy.observe.pen import Pen, Write
from understudy.providers.catalogue import VENDORS, key_in
from understudy.registry import Registry

Say = Callable[[str], None]


def serve(setup: Setup, say: Say) -> int:
    """Blocks; the exit code. Log lines go to stdout, words for people to `say`."""
    if setup.path is not None and setup.path.is_fifo():
        hint = "give a file: it is read again whenever it changes"
        raise CommandError(f"{setup.path}: is a pipe, which can be read only once", hint)
    setup = replace(setup, files=raised())
    station = Station.from_env(setup.env)
    if station is not None:
        return _work(replace(setup, station=station), _together(station.folder), lambda *_: None)
    if workers_of(setup) > 1:
        return _supervise(setup, say)
    return _work(setup, _write, lambda address, opened: say(greeting(address, opened, setup.env)))


def workers_of(setup: Setup) -> int:
    """How many were asked for."""
    if setup.workers is not None or setup.path is None:
        return setup.workers or 1
    config = read_config(setup.path.read_text(encoding="utf-8"), setup.env)
    return int(str(config.gateway["workers"]))


def _work(setup: Setup, write: Write, ready: Callable[[str, Opened], None]) -> int:
    pen = Pen(write, time.time)  # noqa: TID251 - as for any log line

    async def work() -> None:
        runtime = Runtime(setup, pen.put, lambda: pen.lost)

        def is_ready(address: str, opened: Opened) -> None:
            ready(address, opened)
            if runtime.crew is not None:
                runtime.crew.ready()

        await runtime.run(is_ready)

    # What start-up made stays for good: the collector need not look at it again and again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 50)
    try:
        _run(work())
    finally:
        pen.close()
    return 0


def _supervise(setup: Setup, say: Say) -> int:
    """Several workers: this process only watches over them."""
    given = {"--config": setup.path, "--host": setup.host, "--port": setup.port}
    words = [str(w) for pair in given.items() if pair[1] is not None for w in pair]
    command = [sys.executable, "-m", "understudy.cli", "serve", *words]

    async def launch(station: Station) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *command,
            env={**setup.env, **station.to_env()},
            pass_fds=station.inherited,
            stdin=subprocess.DEVNULL,
            process_group=0,  # an interrupt from the keyboard is ours to pass on
        )

    async def watch() -> int:
        lines = LogLines(pen.put, time.time)  # noqa: TID251 - as for any log line
        supervisor = Supervisor(setup, launch, lines, folder, time.monotonic)
        return await supervisor.run(
            lambda duty: say(greeting(duty.address, duty.opened, setup.env))
        )

    folder = _private_folder()
    pen = Pen(_together(folder), time.time)  # noqa: TID251 - as for any log line
    try:
        return asyncio.run(watch())
    finally:
        pen.close()
        rmtree(folder, ignore_errors=True)


def _private_folder() -> Path:
    """Nobody else may look into it. Sockets have short names: 108 bytes, path and all."""
    usual = tempfile.gettempdir()
    return Path(tempfile.mkdtemp(prefix="understudy-", dir=usual if len(usual) < 64 else "/tmp"))


def greeting(address: str, opened: Opened, env: Mapping[str, str]) -> str:
    """What a newcomer sees: where it is, a line to try, what of the environment is no use."""
    key = ' -H "Authorization: Bearer $UNDERSTUDY_KEY"' if opened.house.keys else ""
    body = json.dumps(
        {"model": _example(opened), "messages": [{"role": "user", "content": "hello"}]}
    )
    source = {
        "file": "from the configuration file",
        "environment": "from the environment",
        "demo": "demo: scripted providers with a flaky head, no keys needed",
    }[opened.kind]
    lines = [
        f"understudy listens on {address} ({source})",
        f"try: curl -si {address}/v1/chat/completions{key} "
        f"-H 'Content-Type: application/json' -d '{body}'",
        f"watch: {address}/understudy/",
        *(f"not used: {problem}" for problem in _unread(env)),
    ]
    return "\n".join(lines)


def _unread(env: Mapping[str, str]) -> list[InvalidDSN]:
    """Mistyped DSNs; `LLM_TIMEOUT=30` is somebody else's."""
    return Registry(env=env).load_env({name: text for name, text in env.items() if "://" in text})


def _example(opened: Opened) -> str:
    """An alias, else a model of somebody who is there; whose ids we cannot know."""
    registry = opened.house.registry
    keyed = (vendor.name for vendor in VENDORS if key_in(vendor, registry.env))
    there = [*registry.providers, *keyed]
    for name in registry.aliases:
        return name
    return "openai/gpt-5.5" if "openai" in there or not there else f"{there[0]}/MODEL"


def _write(data: bytes) -> None:
    """To the system itself: Python's own buffer would be locked by a write that never ends."""
    out, rest = sys.stdout.fileno(), memoryview(data)
    while rest:
        try:
            rest = rest[os.write(out, rest) :]
        except BlockingIOError:  # whoever started us made it so
            select.select([], [out], [])


def _together(folder: Path) -> Write:
    """Like `_write`, but not into the middle of another worker's lines: pipes would mix them."""
    lock = (folder / "log.lock").open("wb")

    def write(data: bytes) -> None:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            _write(data)
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)

    return write


def _run(work: Coroutine[object, object, None]) -> None:
    """On uvloop where it is installed."""
    try:
        run: Callable[[Coroutine[object, object, None]], None] = import_module("uvloop").run
    except ImportError:
        run = asyncio.run
    run(work)
