"""`understudy fake`: a provider that misbehaves by script on a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict

from understudy.gateway.doors import cannot_listen
from understudy.rehearse.catalogue import ROWS
from understudy.rehearse.named import Named
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
        try:
            address = await server.start(host, port)
        except OSError as error:
            raise cannot_listen(f"{host}:{port}", error) from None
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
    rows = (
        (r.name, r.fault or "an answer", ", ".join(_ways(r)) or "Fake only", r.means) for r in ROWS
    )
    return "\n".join(
        f"{name:<22} {fault:<22} {forms:<14} {what}" for name, fault, forms, what in rows
    )


def told() -> list[dict[str, object]]:
    """The catalogue for machines."""
    return [
        {"name": r.name, "fault": r.fault or None, "forms": _ways(r), "means": r.means}
        for r in ROWS
    ]


def _ways(row: Named) -> list[str]:
    ways = (("plain", row.plain), ("stream", row.stream))
    return [name for name, steps in ways if steps is not None]
