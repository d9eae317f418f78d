"""What `understudy agents` does: serve a registry, route one envelope. Prints through `echo`."""

from __future__ import annotations

import asyncio
import importlib
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from understudy.agents.codec import Unreadable, read_envelope, write
from understudy.agents.failure import crash
from understudy.agents.record import Recorder, one_line
from understudy.agents.registry import AgentRegistry
from understudy.agents.router import Router
from understudy.agents.serve import AgentServer
from understudy.core.errors import UnderstudyError

Echo = Callable[[str], None]


class CommandError(UnderstudyError, ValueError):
    """Something on the command line that cannot be used, in one sentence."""


def load(spec: str, *, where: str = ".") -> AgentRegistry:
    """The registry that `module:name` stands for; modules beside us are found too."""
    module_name, colon, attribute = spec.partition(":")
    if not (module_name and colon and attribute) or module_name.startswith("."):
        raise CommandError(f"a registry is written module:name, not {spec!r}")
    place = str(Path(where).resolve())
    if place not in sys.path:
        sys.path.insert(0, place)  # and it stays: the module may import its neighbours later
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise CommandError(_no_module(error, module_name, spec)) from error
    found = getattr(module, attribute, None)
    if not isinstance(found, AgentRegistry):
        what = "nothing" if found is None else type(found).__name__
        raise CommandError(f"{spec!r} must be an AgentRegistry; there is {what}")
    return found


def _no_module(error: Exception, name: str, spec: str) -> str:
    """Why a module cannot be imported; if it is there, also where in it."""
    absent = isinstance(error, ModuleNotFoundError) and error.name
    if absent and f"{name}.".startswith(f"{absent}."):
        return f"no module named {absent!r}, looked for by {spec!r}"
    said = one_line(f"{type(error).__name__}: {crash(error).message}")
    return f"module {name!r} cannot be imported: {_place(error)}: {said}"


def _place(error: Exception) -> str:
    """The file and line of the innermost frame that is not the import itself."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    last = [frame for frame in frames if not frame.filename.startswith("<frozen ")][-1]
    return f"{last.filename}:{last.lineno}"


def serve(spec: str, host: str, port: int, *, key: str = "", echo: Echo) -> None:
    """`understudy agents serve module:registry`: until interrupted."""
    asyncio.run(_serve(AgentServer(Router(load(spec)), key=key), host, port, echo))


async def _serve(server: AgentServer, host: str, port: int, echo: Echo) -> None:
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, done.set)
    try:
        await server.start(host, port)
    except (OSError, ValueError, OverflowError) as error:  # the last: no such port
        raise CommandError(f"cannot listen on {host}:{port}: {error}") from error
    echo(f"agents at {server.url}/route")
    await done.wait()
    await server.aclose()


def route(envelope_path: str, spec: str, *, echo: Echo) -> bool:
    """`understudy agents route FILE.json --registry module:registry`: did it succeed?

    Echoes the events of the route, a line each, then the response as JSON.
    """
    try:
        envelope = read_envelope(Path(envelope_path).read_bytes())
    except OSError as error:
        raise CommandError(f"cannot read {envelope_path!r}: {error.strerror}") from error
    except Unreadable as error:
        raise CommandError(f"{envelope_path!r} is no envelope: {error}") from error
    recorder = Recorder(limit=1)
    router = Router(load(spec), recorder=recorder)
    try:
        response = router.route_sync(envelope)
    finally:
        router.close()
    for record in recorder.records:
        echo(str(record))
    echo(one_line(f"path: {' -> '.join(response.decision_path) or 'nobody was asked'}"))
    try:
        echo(write(response).decode())
    except (TypeError, ValueError, RecursionError):
        echo(repr(response))  # a payload that is no JSON
    return response.ok
