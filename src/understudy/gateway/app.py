"""The gateway's application: who asks, for what, over which chain; and what they are told.

Routes are a table. The hot path is short on purpose: find the key, read two fields, walk.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable
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
from understudy.gateway import listing
from understudy.gateway.exchange import Ask, Exchange, peek
from understudy.gateway.house import House
from understudy.gateway.http import Reply, Request
from understudy.gateway.limits import Turned
from understudy.gateway.passthrough import ERRANDS, Errand, Passage
from understudy.gateway.record import Opening, Reader, Record
from understudy.gateway.refusals import Refusal, of_error, story
from understudy.gateway.surfaces import PATHS, Surfaces

Route = Callable[[Request, Reply], Awaitable[None]]
JSON = b"content-type: application/json\r\n"
LEFT = 499  # nginx's number for a client that closed before the answer
WRONG_KEY = Refusal(401, "no such key; give one of the gateway's own", "auth")
SURFACES = (*PATHS, *ERRANDS, "/v1beta/models/MODEL:generateContent")


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

    def __post_init__(self) -> None:
        self.routes = {
            ("GET", "/healthz"): self._healthz,
            ("GET", "/readyz"): self._readyz,
            ("HEAD", "/healthz"): self._healthz,
            ("HEAD", "/readyz"): self._readyz,
            **self.routes,
        }

    async def __call__(self, request: Request, reply: Reply) -> None:
        try:
            route = self.routes.get((request.method, request.path))
            if route is not None:
                await route(request, reply)
            elif request.method == "POST":
                await self._surface(request, reply)
            else:
                self._look_up(request, reply)
        except Exception as error:  # noqa: BLE001 - a bug must not leave its client waiting
            self._bug(request, reply, error)

    def refuse(self, path: str, status: int, why: str) -> bytes:
        """The body for something that never became a request; see `Server`."""
        dialect = self.surfaces.spoken(path)
        opening = Opening(self._new_id(), dialect.name, "", False, "", self.wall())
        body = encode(dialect.write_error(status, why, "invalid_request"))
        self.finished(Record(opening, status, "refused", 0.0, sent=len(body), reason=why))
        return body

    # -- the surfaces -------------------------------------------------------------------------

    async def _surface(self, request: Request, reply: Reply) -> None:
        house = self.house
        began = house.registry.health.clock()
        visit = _Visit(self, request, reply, request_id(request) or self._new_id(), began)
        label = self._label(request)
        if label is None:
            return visit.turn_away(WRONG_KEY)
        visit.label = label
        gate = house.gates.get(label) if house.gates else None
        if gate is not None and (turned := gate.enter()) is not None:
            return visit.turn_away(_too_many(turned))
        house.running += 1
        self.in_flight += 1
        try:
            await visit.serve(house)
        finally:
            self.in_flight -= 1
            house.leave()
            if gate is not None:
                gate.leave()

    def finished(self, record: Record) -> None:
        for reader in self.readers:
            try:
                reader.finished(record)
            except Exception as error:  # noqa: BLE001 - who only reads may not spoil an answer
                self.trouble(error)

    def attempted(self, opening: Opening, attempt: Attempt, number: int) -> None:
        for reader in self.readers:
            try:
                reader.attempt(opening, attempt, number)
            except Exception as error:  # noqa: BLE001 - who only reads may not spoil an answer
                self.trouble(error)

    def trouble(self, error: Exception) -> None:
        if self.mishap is not None:
            self.mishap(error)

    def _new_id(self) -> str:
        return f"{self.prefix}-{next(self._numbers):x}"

    def _label(self, request: Request) -> str | None:
        """Whose request this is; "" where no keys are asked for, None if the key is wrong."""
        if not self.house.keys:
            return ""
        known = self.house.who(secret_of(request))
        return None if known is None else known.label

    # -- the small routes ---------------------------------------------------------------------

    async def _healthz(self, request: Request, reply: Reply) -> None:
        _brief(request, reply, 200, b'{"status":"ok"}')

    async def _readyz(self, request: Request, reply: Reply) -> None:
        status, word = (503, b"draining") if self.draining else (200, b"ready")
        _brief(request, reply, status, b'{"status":"%b"}' % word)

    def _look_up(self, request: Request, reply: Reply) -> None:
        """Everything that is neither a route nor a question to a model: lists, and the unknown."""
        clock = self.house.registry.health.clock
        visit = _Visit(self, request, reply, request_id(request) or self._new_id(), clock())
        asked = listing.place(request.plain_path) if request.method == "GET" else None
        if asked is None:
            return visit.turn_away(lost(request, self.routes))
        shape = listing.reader_of(request)
        visit.dialect = self.surfaces.dialects[shape]
        if self._label(request) is None:
            return visit.turn_away(WRONG_KEY)
        found = listing.names(self.house.registry)
        if asked and asked not in found:
            return visit.turn_away(Refusal(404, f"no model {asked[:200]!r} here", "not_found"))
        told = listing.row(shape, asked) if asked else listing.table(shape, found)
        reply.send(200, JSON + _headers(visit.id, [], ""), encode(told))

    def _bug(self, request: Request, reply: Reply, error: Exception) -> None:
        self.trouble(error)
        if reply.started:
            return reply.abort()
        body = self.surfaces.spoken(request.path).write_error(500, "a fault of ours", "internal")
        reply.send(500, JSON, encode(body))


@dataclass(slots=True)
class _Visit:
    """One request at our door: answered over a chain, or turned away; told of either way."""

    gateway: Gateway
    request: Request
    reply: Reply
    id: str
    began: float  # clock seconds
    label: str = ""
    dialect: Dialect = field(init=False)  # that errors are written in

    def __post_init__(self) -> None:
        self.dialect = self.gateway.surfaces.spoken(self.request.path)

    async def serve(self, house: House) -> None:
        try:
            errand = ERRANDS.get(self.request.path)
            ask = self._ask(errand)
            if ask is None:
                return self.turn_away(lost(self.request, self.gateway.routes))
            cast = house.cast(ask.model, self.request.header(b"x-understudy-policy"))
            deadline = self.began + self._timeout(house)
        except (InvalidRequest, SpecError) as error:
            return self.turn_away(of_error(error, self.dialect.name))
        name = self.dialect.name if errand is None else errand.name
        opening = self._opening(name, ask.model, ask.stream)
        watch = _Watched(opening, self.gateway)
        if errand is None:
            await self._answer(Exchange(ask, cast, deadline, watch.attempt), opening)
        else:
            await self._answer(Passage(errand, ask, cast, deadline, watch.attempt), opening)

    def turn_away(self, refusal: Refusal) -> None:
        """No target is asked."""
        self._tell(refusal, [])
        errand = ERRANDS.get(self.request.path)
        opening = self._opening(self.dialect.name if errand is None else errand.name)
        clock = self.gateway.house.registry.health.clock
        self.gateway.finished(Record(
            opening, refusal.status, "refused", clock() - self.began,
            sent=self.reply.written, reason=refusal.message,
        ))  # fmt: skip

    def _ask(self, errand: Errand | None) -> Ask | None:
        if errand is None:
            return self.gateway.surfaces.read(self.request)
        body = self.request.body
        return Ask(self.dialect, peek(body).model, False, body)

    def _opening(self, surface: str, model: str = "", stream: bool = False) -> Opening:
        gateway = self.gateway
        trace = self.request.header(b"traceparent") if gateway.traced else ""
        return Opening(self.id, surface, model, stream, self.label, gateway.wall(), trace)

    def _timeout(self, house: House) -> float:
        """The house's limit, or the client's if that is tighter."""
        wish = self.request.header(b"x-understudy-timeout")
        ours = house.rules.timeout
        if not wish:
            return ours
        try:
            seconds = float(wish)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds < float("inf"):
            raise InvalidRequest(f"x-understudy-timeout is {wish[:40]!r}; give seconds above 0")
        return min(ours, seconds)

    async def _answer(self, exchange: Exchange | Passage, opening: Opening) -> None:
        refusal: Refusal | None = None
        outcome = "left"
        reply = self.reply
        try:
            if isinstance(exchange, Exchange) and opening.stream:
                refusal = await exchange.streamed(
                    reply, lambda: _stream_headers(exchange, opening)
                )
                outcome = "ok" if refusal is None else "broken"
            else:
                body = await exchange.plain()
                served = exchange.story[-1].target
                reply.send(200, JSON + _headers(self.id, exchange.story, served), body)
                outcome = "ok"
        except (ProviderError, ChainExhausted, InvalidRequest) as error:
            refusal = of_error(error, self.dialect.name)
            outcome = "failed"
            self._tell(refusal, exchange.story)
        finally:
            seconds = exchange.cast.stage.clock() - self.began
            self.gateway.finished(Record(
                opening,
                LEFT if outcome == "left" else reply.status,
                outcome,
                seconds,
                tuple(exchange.story),
                exchange.usage,
                exchange.story[-1].target if outcome in ("ok", "broken") else "",
                reply.written,
                refusal.message if refusal else "",
            ))  # fmt: skip

    def _tell(self, refusal: Refusal, attempts: list[Attempt]) -> None:
        extra = "".join(f"{name}: {value}\r\n" for name, value in refusal.headers.items())
        headers = JSON + _headers(self.id, attempts, "") + extra.encode("latin-1")
        body = b"" if self.request.method == "HEAD" else refusal.written(self.dialect)
        self.reply.send(refusal.status, headers, body)


@dataclass(slots=True)
class _Watched:
    """Tells the readers of each attempt; calls are numbered from 1, skips have their number."""

    opening: Opening
    gateway: Gateway
    number: int = 0

    def attempt(self, attempt: Attempt) -> None:
        if attempt.outcome != "skipped":
            self.number += 1
        self.gateway.attempted(self.opening, attempt, self.number)


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


def request_id(request: Request) -> str:
    """The client's own id if it is a sane one, else ""."""
    given = request.header(b"x-request-id")
    return given if len(given) <= 128 and given.isascii() and given.isprintable() else ""


def lost(request: Request, routes: dict[tuple[str, str], Route]) -> Refusal:
    """What is said where there is nothing: the wrong method, or the wrong path."""
    path = request.path[:200]
    methods = {method for method, known in routes if known == request.path}
    if request.path in PATHS or request.path in ERRANDS:
        methods.add("POST")
    if methods:
        allowed = ", ".join(sorted(methods))
        why = f"{path} takes {allowed}, not {request.method[:20]}"
        return Refusal(405, why, "invalid_request", {"allow": allowed})
    known = ", ".join(sorted({path for _, path in routes if "." not in path} | {*listing.PLACES}))
    why = f"nothing at {request.method[:20]} {path}; surfaces: {', '.join(SURFACES)}; also {known}"
    return Refusal(404, why, "not_found")


def _too_many(turned: Turned) -> Refusal:
    seconds = str(max(1, math.ceil(turned.seconds)))
    why = f"{turned.reason}; ask again in {seconds} s"
    return Refusal(429, why, "rate_limit", {"retry-after": seconds})


def _brief(request: Request, reply: Reply, status: int, body: bytes) -> None:
    reply.send(status, JSON, b"" if request.method == "HEAD" else body)


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
