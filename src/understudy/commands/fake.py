"""`understudy fake`: a provider that misbehaves by script on a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict

from understudy.rehearse.catalogue import ROWS
from understudy.rehearse.script import parse
from understudy.rehearse.server import FakeServer, Played

Say = Callable[[str], None]


def fake(script: str | None, host: str, port: int, *, say: Say, echo: Say) -> int:
    """Blocks until interrupted. `script` is the script's text; `echo` gets a JSON line a call."""
    clauses = parse(script) if script is not None else ()

    def note(played: Played) -> None:
        echo(json.dumps(asdict(played)))

    async def serve() -> None:
        server = FakeServer(clauses, note=note)
        address = await server.start(host, port)
        say(greeting(address, [clause.target for clause in clauses]))
        try:
            await asyncio.Event().wait()
        finally:
            await server.close()

    asyncio.run(serve())
    return 0


def greeting(address: str, models: list[str]) -> str:
    """Where it is, and what to ask for."""
    named = ", ".join(models) if models else "any fault of the catalogue, e.g. reset-mid-stream"
    return f"a scripted provider listens on {address}\nmodels: {named}"


def listing() -> str:
    """The catalogue as a table."""
    rows = ((r.name, r.fault or "an answer", _forms(r.plain, r.stream), r.means) for r in ROWS)
    return "\n".join(
        f"{name:<22} {fault:<22} {forms:<14} {what}" for name, fault, forms, what in rows
    )


def _forms(plain: object, stream: object) -> str:
    forms = [name for name, steps in (("plain", plain), ("stream", stream)) if steps is not None]
    return ", ".join(forms) or "Fake only"
