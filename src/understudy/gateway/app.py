"""The gateway's application: finds who answers a request, and tells the readers what happened.

Routes are a table; what is no route is a visit to a surface, or lost.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from secrets import token_hex

from understudy.dialects.json_access import encode
from understudy.gateway.house import House
from understudy.gateway.http import JSON, Reply, Request
from understudy.gateway.refusals import apologise
from understudy.gateway.surfaces import Surfaces
from understudy.gateway.unfit import Unfit
from understudy.gateway.visit import Route, Visit
from understudy.observe.record import Failure, Hearer, Opening, Reader, Record

__all__ = ["Gateway", "Route"]


@dataclass(slots=True)
class Gateway:
    """Serves one house at a time; `house` may be replaced while requests run."""

    house: House
    readers: tuple[Reader, ...] = ()
    wall: Callable[[], float] = time.time  # noqa: TID251 - the one wall clock, for log lines
    surfaces: Surfaces = field(default_factory=Surfaces.all)
    routes: dict[tuple[str, str], Route] = field(default_factory=dict)
    prefix: str = field(default_factory=lambda: token_hex(4))
    in_flight: int = 0
    draining: bool = False
    traced: bool = False  # does anybody want to know of the client's own trace
    mishap: Callable[[Exception], None] | None = None  # told of what nobody expected
    _numbers: count[int] = field(default_factory=lambda: count(1))
    _hearers: tuple[tuple[Reader, Hearer | None], ...] = ()  # readers, and as what they also hear
    _news: list[Record | Failure] = field(default_factory=list)  # of this turn of the event loop

    def __post_init__(self) -> None:
        self.told_to(*self.readers)
        self.routes = {
            ("GET", "/healthz"): self._healthz,
            ("GET", "/readyz"): self._readyz,
            ("HEAD", "/healthz"): self._healthz,
            ("HEAD", "/readyz"): self._readyz,
            **self.routes,
        }

    def told_to(self, *readers: Reader) -> None:
        """From now on these are told what happens."""
        self.tell()
        self.readers = readers
        self._hearers = tuple((r, r if isinstance(r, Hearer) else None) for r in readers)

    def __call__(self, request: Request, reply: Reply) -> Awaitable[None] | None:
        """Answer from callbacks, or return what answers as a task; see `connection`."""
        route = self.routes.get((request.method, request.path))
        if route is not None:
            return self._routed(route, request, reply)
        clock = self.house.registry.health.clock
        visit = Visit(self, request, reply, clock())
        try:
            visit.ask() if request.method == "POST" else visit.look_up()
        except Exception as error:  # noqa: BLE001 - a bug must not leave its client waiting
            visit.broken(error)
        return None

    async def _routed(self, route: Route, request: Request, reply: Reply) -> None:
        try:
            await route(request, reply)
        except Exception as error:  # noqa: BLE001 - a bug must not leave its client waiting
            self.trouble(error)
            apologise(reply, self.surfaces.spoken(request.path))

    def has_route(self, method: str, path: str) -> bool:
        """Is this a question about the gateway, and not to a model?"""
        return (method, path) in self.routes

    def refuse(self, path: str, problem: Unfit) -> bytes:
        """The body for something that never became a request; see `Server`."""
        dialect = self.surfaces.spoken(path)
        opening = Opening(self.new_id(), dialect.name, "", False, "", self.wall())
        status, why = problem.status, problem.why
        body = encode(dialect.write_error(status, why, problem.kind))
        self.hear(Record(opening, status, "refused", 0.0, sent=len(body), reason=why))
        return body

    def hear(self, news: Record | Failure) -> None:
        """Readers are told at the end of this turn of the event loop."""
        self._news.append(news)
        if len(self._news) == 1:
            asyncio.get_running_loop().call_soon(self.tell)

    def tell(self) -> None:
        """Each reader hears all the news in a row.

        Thirty requests may end in a turn. Told of one after another, all readers would take turns
        in the processor's cache, which makes them several times slower.
        """
        news, self._news = self._news, []
        for reader, hearer in self._hearers:
            for told in news:
                try:
                    if isinstance(told, Record):
                        reader.finished(told)
                    elif hearer is not None:
                        hearer.attempt(told.opening, told.attempt, told.number)
                except Exception as error:  # noqa: BLE001 - who only reads may not spoil an answer
                    self.trouble(error)

    def trouble(self, error: Exception) -> None:
        if self.mishap is not None:
            self.mishap(error)

    def new_id(self) -> str:
        return f"{self.prefix}-{next(self._numbers):x}"

    # -- the small routes ---------------------------------------------------------------------

    async def _healthz(self, request: Request, reply: Reply) -> None:
        _brief(request, reply, 200, b'{"status":"ok"}')

    async def _readyz(self, request: Request, reply: Reply) -> None:
        status, word = (503, b"draining") if self.draining else (200, b"ready")
        _brief(request, reply, status, b'{"status":"%b"}' % word)


def _brief(request: Request, reply: Reply, status: int, body: bytes) -> None:
    reply.send(status, JSON, b"" if request.method == "HEAD" else body)
