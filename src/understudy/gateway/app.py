"""The gateway's application: who asks, for what, over which chain; and what they are told.

Routes are a table. The hot path is short on purpose: find the key, read two fields, walk.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from secrets import token_hex

from understudy.core.errors import (
    ChainExhausted,
    InvalidRequest,
    ProviderError,
    SpecError,
)
from understudy.core.target import Attempt
from understudy.dialects.base import Dialect
from understudy.dialects.json_access import encode
from understudy.gateway.exchange import Exchange
from understudy.gateway.house import House
from understudy.gateway.http import Reply, Request
from understudy.gateway.record import Opening, Reader, Record
from understudy.gateway.refusals import Refusal, of_error, story
from understudy.gateway.surfaces import Surfaces

Route = Callable[[Request, Reply], Awaitable[None]]
JSON = b"content-type: application/json\r\n"
LEFT = 499  # nginx's number for a client that closed before the answer


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
    _numbers: count[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.routes = {
            ("GET", "/healthz"): self._healthz,
            ("GET", "/readyz"): self._readyz,
            ("GET", "/v1/models"): self._models,
            **self.routes,
        }

    async def __call__(self, request: Request, reply: Reply) -> None:
        route = self.routes.get((request.method, request.path))
        if route is not None:
            await route(request, reply)
        elif request.method == "POST":
            await self._surface(request, reply)
        else:
            self._lost(request, reply)

    def refuse(self, path: str, status: int, why: str) -> bytes:
        """The body for something that never became a request; see `Server`."""
        return encode(self.surfaces.spoken(path).write_error(status, why, "invalid_request"))

    # -- the surfaces -------------------------------------------------------------------------

    async def _surface(self, request: Request, reply: Reply) -> None:
        house = self.house
        began = house.registry.health.clock()
        identity = request_id(request, self.prefix, next(self._numbers))
        label = self._label(request)
        dialect = self.surfaces.spoken(request.path)
        if label is None:
            wrong = Refusal(401, "no such key; give one of the gateway's own", "auth")
            return self._tell(reply, wrong, dialect, identity)
        try:
            ask = self.surfaces.read(request)
            if ask is None:
                return self._lost(request, reply)
            cast = house.cast(ask.model, request.header(b"x-understudy-policy"))
            deadline = began + self._timeout(request)
        except (InvalidRequest, SpecError) as error:
            return self._tell(reply, of_error(error, dialect.name), dialect, identity)
        opening = Opening(identity, dialect.name, ask.model, ask.stream, label, self.wall())
        watch = _Watched(opening, self.readers)
        exchange = Exchange(ask, cast, deadline, watch.attempt)
        self.in_flight += 1
        try:
            await self._answer(exchange, reply, opening, began)
        finally:
            self.in_flight -= 1

    async def _answer(
        self, exchange: Exchange, reply: Reply, opening: Opening, began: float
    ) -> None:
        ask = exchange.ask
        refusal: Refusal | None = None
        outcome = "left"
        try:
            if ask.stream:
                refusal = await exchange.streamed(
                    reply, lambda: _stream_headers(exchange, opening)
                )
                outcome = "ok" if refusal is None else "broken"
            else:
                body = await exchange.plain()
                served = exchange.story[-1].target
                reply.send(200, JSON + _headers(opening.id, exchange.story, served), body)
                outcome = "ok"
        except (ProviderError, ChainExhausted, InvalidRequest) as error:
            refusal = of_error(error, ask.dialect.name)
            outcome = "failed"
            self._tell(reply, refusal, ask.dialect, opening.id, exchange.story)
        finally:
            seconds = exchange.cast.stage.clock() - began
            self._close(Record(
                opening,
                _status(outcome, reply),
                outcome,
                seconds,
                tuple(exchange.story),
                exchange.usage,
                exchange.story[-1].target if outcome in ("ok", "broken") else "",
                reply.written,
                refusal.message if refusal else "",
            ))  # fmt: skip

    def _close(self, record: Record) -> None:
        for reader in self.readers:
            reader.finished(record)

    def _label(self, request: Request) -> str | None:
        """Whose request this is; "" where no keys are asked for, None if the key is wrong."""
        if not self.house.keys:
            return ""
        known = self.house.who(secret_of(request))
        return None if known is None else known.label

    def _timeout(self, request: Request) -> float:
        """The house's limit, or the client's if that is tighter."""
        wish = request.header(b"x-understudy-timeout")
        ours = self.house.rules.timeout
        if not wish:
            return ours
        try:
            seconds = float(wish)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds < float("inf"):
            raise InvalidRequest(f"x-understudy-timeout is {wish[:40]!r}; give seconds above 0")
        return min(ours, seconds)

    def _tell(
        self,
        reply: Reply,
        refusal: Refusal,
        dialect: Dialect,
        identity: str,
        attempts: list[Attempt] | None = None,
    ) -> None:
        extra = "".join(f"{name}: {value}\r\n" for name, value in refusal.headers.items())
        headers = JSON + _headers(identity, attempts or [], "") + extra.encode("latin-1")
        reply.send(refusal.status, headers, refusal.written(dialect))

    # -- the small routes ---------------------------------------------------------------------

    async def _healthz(self, request: Request, reply: Reply) -> None:
        reply.send(200, JSON, b'{"status":"ok"}')

    async def _readyz(self, request: Request, reply: Reply) -> None:
        if self.draining:
            reply.send(503, JSON, b'{"status":"draining"}')
        else:
            reply.send(200, JSON, b'{"status":"ready"}')

    async def _models(self, request: Request, reply: Reply) -> None:
        if self._label(request) is None:
            wrong = Refusal(401, "no such key; give one of the gateway's own", "auth")
            return self._tell(reply, wrong, self.surfaces.spoken(request.path), "")
        registry = self.house.registry
        names = dict.fromkeys(registry.aliases)
        for spec in registry.aliases.values():
            with suppress(SpecError):  # one bad alias is no reason to list none
                names |= dict.fromkeys(registry.parse(spec).targets)
        rows = [
            {"id": n, "object": "model", "created": 0, "owned_by": "understudy"} for n in names
        ]
        reply.send(200, JSON, encode({"object": "list", "data": rows}))  # type: ignore[dict-item]

    def _lost(self, request: Request, reply: Reply) -> None:
        known = ", ".join(sorted({path for _, path in self.routes}))
        why = (
            f"nothing at {request.method} {request.path[:200]}; surfaces: /v1/chat/completions, "
            f"/v1/responses, /v1/messages, /v1/embeddings, /v1beta/models/MODEL:generateContent; "
            f"also {known}"
        )
        refusal = Refusal(404, why, "not_found")
        self._tell(reply, refusal, self.surfaces.spoken(request.path), "")


@dataclass(slots=True)
class _Watched:
    """Tells the readers of each attempt, numbered from 1."""

    opening: Opening
    readers: tuple[Reader, ...]
    number: int = 0

    def attempt(self, attempt: Attempt) -> None:
        self.number += 1
        for reader in self.readers:
            reader.attempt(self.opening, attempt, self.number)


def secret_of(request: Request) -> str:
    """The client's key, wherever its SDK puts it (contract G7)."""
    bearer = request.header(b"authorization")
    if bearer[:7].lower() == "bearer ":
        return bearer[7:].strip()
    return (
        request.header(b"x-api-key")
        or request.header(b"x-goog-api-key")
        or request.header(b"api-key")
        or request.parameter("key")
    )


def request_id(request: Request, prefix: str, number: int) -> str:
    """The client's own id if it is a sane one, else ours."""
    given = request.header(b"x-request-id")
    if given and len(given) <= 128 and given.isascii() and given.isprintable():
        return given
    return f"{prefix}-{number:x}"


def _headers(identity: str, attempts: list[Attempt], served: str) -> bytes:
    lines = f"x-request-id: {identity}\r\nx-understudy-attempts: {story(attempts)}\r\n"
    if served:
        lines += f"x-understudy-target: {_plain(served)}\r\n"
    return lines.encode("latin-1", "replace")


def _stream_headers(exchange: Exchange, opening: Opening) -> bytes:
    serving = exchange.serving
    begun = [*exchange.story, Attempt(serving, "ok")]
    kind = b"application/x-ndjson" if opening.surface == "ollama" else b"text/event-stream"
    return (
        b"content-type: %b\r\ncache-control: no-cache\r\nx-accel-buffering: no\r\n" % kind
        + _headers(opening.id, begun, serving)
    )


def _plain(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()


def _status(outcome: str, reply: Reply) -> int:
    return LEFT if outcome == "left" else reply.status
