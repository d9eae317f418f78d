"""A stage for real clients: gateways on loopback in a thread of their own, SDKs in the test's.

Every chain has a head that is down and a healthy tail. The tail is a second gateway in front of a
fake, spoken to in the dialect the test names, so that the first one relays or translates.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass, field, replace
from threading import Thread
from typing import TypeVar

from tests.rig import until
from tests.served import house, listening, provider
from understudy import Image, Request, Tool, ToolCall, ToolResult
from understudy.core.target import Attempt
from understudy.gateway.house import ClientKey, House
from understudy.gateway.server import Application, Server
from understudy.observe.record import Opening, Record
from understudy.testing import Fake, told

T = TypeVar("T")

KEY = "sk-client-0123456789"
FAILED_OVER = ["head/m=transient", "head/m=transient", "tail/m=ok"]
WEATHER = Tool(
    "weather",
    "What the weather is",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
CALLS = (
    ToolCall("call_1", "weather", '{"city":"Bern"}'),
    ToolCall("call_2", "weather", '{"city":"Basel"}'),
)
PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00"
    b"\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99="
    b"\x1d\x00\x00\x00\x00IEND\xaeB`\x82"
)


def no_tls() -> ssl.SSLContext:
    """For clients that would read all the world's certificates to speak plain HTTP."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Backstage:
    """An event loop in a thread of its own, for what serves while the test's thread asks."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    @contextmanager
    def held(self, place: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """A place that lives in that loop."""
        value = self.run(place.__aenter__())
        try:
            yield value
        finally:
            self.run(place.__aexit__(None, None, None))

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@dataclass
class Scene:
    """Where clients knock, the fake behind the tail, and what the gateway told of each request."""

    address: str
    fake: Fake
    backstage: Backstage
    dialect: str  # that of the tail
    head: Fake  # behind the head, if anybody is
    records: list[Record] = field(default_factory=list)

    def finished(self, number: int = 1) -> list[Record]:
        """Once so many are noted: a client may have its answer before the gateway noted it."""
        self.backstage.run(until(lambda: len(self.records) >= number))
        return self.records

    @property
    def story(self) -> list[str]:
        (record,) = self.finished()
        return told(record.attempts)

    @property
    def outcome(self) -> str:
        return self.finished()[-1].outcome

    # -- what the model was asked, last ---------------------------------------------------------

    @property
    def asked(self) -> Request:
        return self.fake.calls[-1][1]

    @property
    def turns(self) -> list[tuple[str, str]]:
        return [(message.role, message.text) for message in self.asked.messages]

    @property
    def offered(self) -> list[tuple[str, object]]:
        """The tools."""
        return [(t.name, t.parameters) for t in self.asked.tools if isinstance(t, Tool)]

    @property
    def results(self) -> list[tuple[str, str]]:
        """The tools' results: of which call, and what."""
        parts = [part for message in self.asked.messages for part in message.parts]
        return [(part.id, part.text) for part in parts if isinstance(part, ToolResult)]

    @property
    def pictures(self) -> list[tuple[str, bytes]]:
        parts = [part for message in self.asked.messages for part in message.parts]
        return [(part.mime, part.data) for part in parts if isinstance(part, Image)]

    @property
    def fields(self) -> set[str]:
        """Of the structured output that was asked for."""
        return fields_of(self.asked.output.schema if self.asked.output else None)


def fields_of(schema: object) -> set[str]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return set(properties) if isinstance(properties, dict) else set()


@dataclass
class Noted:
    """A reader that keeps the records."""

    records: list[Record]

    def attempt(self, opening: Opening, attempt: Attempt, number: int) -> None:
        pass

    def finished(self, record: Record) -> None:
        self.records.append(record)


@contextmanager
def closed_port() -> Iterator[str]:
    """An address where nobody listens, held so that nobody else will."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


@asynccontextmanager
async def served(application: Application) -> AsyncIterator[str]:
    """The address of anything that answers HTTP."""
    server = Server(application, lambda *_: b"", clock=time.monotonic)
    port = await server.listen("127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await server.close()


@dataclass(frozen=True)
class Setting:
    """How a chain is made up: what its head does, what its tail speaks, what stands behind it."""

    tail: str = "openai"
    head: str = "refused"  # or "503", "429"
    far: Application | None = None  # in the place of the gateway in front of the fake

    def __str__(self) -> str:
        return f"{self.head}-{self.tail}"


@asynccontextmanager
async def _pair(setting: Setting, scene: Scene) -> AsyncIterator[House]:
    """The near gateway's house: a head that is down, a tail that is not."""
    async with AsyncExitStack() as stack:
        if setting.head == "refused":
            down = stack.enter_context(closed_port())
        else:
            down = await stack.enter_async_context(listening(house(scene.head, m="h/x")))
        behind = served(setting.far) if setting.far else listening(house(scene.fake, m="f/x"))
        up = await stack.enter_async_context(behind)
        head, tail = provider(setting.tail, down, "head"), provider(setting.tail, up, "tail")
        for each in (head, tail):
            stack.push_async_callback(each.aclose)
        made = house(head, tail, chat="head/m, tail/m")
        yield replace(made, keys=(ClientKey("tests", KEY),))


@asynccontextmanager
async def _staged(setting: Setting, scene: Scene) -> AsyncIterator[Scene]:
    async with _pair(setting, scene) as made, listening(made, Noted(scene.records)) as address:
        scene.address = address
        yield scene


@contextmanager
def staged(backstage: Backstage, setting: Setting) -> Iterator[Scene]:
    scene = Scene("", Fake("f"), backstage, setting.tail, Fake("h"))
    if setting.head.isdigit():
        scene.head.script("x", *[int(setting.head)] * 20)
    with backstage.held(_staged(setting, scene)) as ready:
        yield ready
