"""A whole gateway on fakes behind a socket, in the test's own loop, with its dashboard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.gateway.desk import HELLO, Heard, ask
from understudy.core.faults import Fault
from understudy.core.target import Attempt
from understudy.gateway.runtime import Runtime
from understudy.gateway.setup import Setup
from understudy.observe.record import Opening, Record
from understudy.providers.fake import Fake, Http


@dataclass
class Scene:
    """A gateway whose providers do what a test says."""

    runtime: Runtime
    address: str = ""
    fakes: dict[str, Fake] = field(default_factory=dict)

    def provider(self, name: str, **more: tuple[str, ...]) -> Fake:
        fake = Fake(name, **more)  # type: ignore[arg-type]
        self.fakes[name] = fake
        self.runtime.gateway.house.registry.register_provider(fake)
        return fake

    def alias(self, name: str, spec: str) -> None:
        self.runtime.gateway.house.registry.register_alias(name, spec)

    async def chat(self, model: str, **more: object) -> Heard:
        body = {**HELLO, "model": model, **more}
        return await ask(self.address, "POST", "/v1/chat/completions", body)

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> Heard:
        return await ask(self.address, "GET", path, None, headers)

    async def order(self, name: str, **body: object) -> Heard:
        return await ask(self.address, "POST", f"/understudy/api/{name}", body)

    async def listen(self, port: int = 0) -> None:
        bound = await self.runtime.server.listen("127.0.0.1", port)
        self.address = f"http://127.0.0.1:{bound}"

    async def close(self) -> None:
        self.runtime.gateway.draining = True  # so that feeds end
        await self.runtime.server.close()

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])


def scene(admin_key: str = "") -> Scene:
    runtime = Runtime(Setup(None, "127.0.0.1", 0, {}), lambda _: None)
    runtime.gateway.house.admin_key = admin_key
    return Scene(runtime)


@asynccontextmanager
async def playing(admin_key: str = "") -> AsyncIterator[Scene]:
    """The demo's house behind a socket; a test adds to it."""
    opened = scene(admin_key)
    await opened.listen()
    try:
        yield opened
    finally:
        await opened.close()


def record(n: int, at: float, outcome: str = "ok") -> Record:
    """A finished request that failed over, with a number of its own."""
    attempts = (
        Attempt("lead/opera", "failed", Fault.TRANSIENT, 503, 0.02, "no voice", 1, then="retry"),
        Attempt("lead/opera", "failed", Fault.TRANSIENT, 503, 0.02, "no voice", 2, then="advance"),
        Attempt("understudy/aria", outcome if outcome != "ok" else "ok", None, None, 0.05, "", 1),
    )
    opening = Opening(f"r-{n}", "openai", "demo", False, "", at)
    target = "understudy/aria" if outcome == "ok" else ""
    return Record(opening, 200 if outcome == "ok" else 503, outcome, 0.09, attempts, target=target)


BROKE = Http(402, '{"error": {"message": "Insufficient Balance"}}')


def troubled(played: Scene) -> None:
    """A chain of every state that needs a script."""
    played.provider("broke").script("m", BROKE)
    played.provider("locked", credentials=("one", "two")).script("m", Http(401))
    played.provider("dead").script("m", 503, 503)
    played.provider("shaky").script("m", 400)
    played.alias("ill", "broke/m, locked/m, dead/m, shaky/m")
