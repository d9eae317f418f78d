"""One request at our door: let in and answered over a chain, or turned away; told of either way.

The hot path is short on purpose: find the key, read two fields, walk.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Protocol

from understudy.core.errors import InvalidRequest, SpecError
from understudy.core.faults import Fault
from understudy.core.target import Attempt
from understudy.dialects.base import Dialect
from understudy.dialects.json_access import encode
from understudy.gateway import listing
from understudy.gateway.ask import Ask
from understudy.gateway.errands import ERRANDS
from understudy.gateway.exchange import Exchange
from understudy.gateway.house import House
from understudy.gateway.http import JSON, Reply, Request
from understudy.gateway.limits import Gate, Turned
from understudy.gateway.refusals import Refusal, apologise, of_error, story, whole_seconds
from understudy.gateway.surfaces import PATHS, Surfaces, is_surface
from understudy.gateway.wishes import wishes_of
from understudy.observe.record import Failure, Opening, Record
from understudy.timers import Handle, call_later

Route = Callable[[Request, Reply], Awaitable[None]]
LEFT = 499  # nginx's number for a client that closed before the answer
WRONG_KEY = Refusal(401, "no such key; give one of the gateway's own", "auth")
SURFACES = (*PATHS, *ERRANDS, "/v1beta/models/MODEL:generateContent")


class Desk(Protocol):
    """What a visit needs of the gateway."""

    house: House
    surfaces: Surfaces
    routes: dict[tuple[str, str], Route]
    in_flight: int
    traced: bool

    @property
    def wall(self) -> Callable[[], float]: ...

    def new_id(self) -> str: ...
    def hear(self, news: Record | Failure) -> None: ...
    def trouble(self, error: Exception) -> None: ...


class Visit:
    """From a request to its record. The exchange's `Client`."""

    label = ""  # of the client's key
    _ask: Ask | None = None
    _within: float | None = None  # seconds, if the client set itself a limit
    _gate: Gate | None = None
    _inside = False
    _exchange: Exchange | None = None
    _opening: Opening | None = None
    _number = 0  # calls that failed so far
    _dialect: Dialect | None = None  # of errors, if the path does not tell
    _begun = False  # the client has the first content of a stream
    _sign: Handle | None = None  # the next sign of life to a client that waits for a stream
    _ended: float | None = None  # clock seconds, read before the client is told
    _over = False

    def __init__(self, desk: Desk, request: Request, reply: Reply, began: float) -> None:
        self.reply = reply
        self._desk = desk
        self._house = desk.house  # it may be replaced while we are inside
        self._request = request
        self._wishes = wishes = wishes_of(request)
        self._id = wishes.id or desk.new_id()
        self._began = began  # clock seconds

    def ask(self) -> None:
        """A question to a model."""
        house = self._house
        if not self._known():
            return self._turn_away(WRONG_KEY)
        if house.gates and (turned := self._entered(house)) is not None:
            return self._turn_away(_too_many(turned))
        self._inside = True
        house.running += 1
        self._desk.in_flight += 1
        try:
            ask = self._ask = self._desk.surfaces.read(self._request)
            if ask is None:
                return self._turn_away(lost(self._request, self._desk.routes))
            cast = house.cast(ask.model, self._wishes.policy)
            timeout = self._timeout(house) if self._wishes.timeout else house.rules.timeout
            deadline = self._began + timeout
        except (InvalidRequest, SpecError) as error:
            return self._turn_away(of_error(error, self._spoken.name))
        self._opening = self._opened()
        self._exchange = Exchange(ask, cast, deadline, self)
        self.reply.left = self._left
        if ask.stream and house.rules.keepalive and ask.sse:
            self._sign = call_later(cast.stage.clock, house.rules.keepalive, self._still_here)
        self._exchange.begin()

    def look_up(self) -> None:
        """Everything that is neither a route nor a question to a model: lists, and the unknown."""
        request = self._request
        asked = listing.place(request.plain_path) if request.method == "GET" else None
        if asked is None:
            return self._turn_away(lost(request, self._desk.routes))
        shape = listing.reader_of(request)
        self._dialect = self._desk.surfaces.dialects[shape]
        if not self._known():
            return self._turn_away(WRONG_KEY)
        found = listing.names(self._house.registry)
        if asked and asked not in found:
            return self._turn_away(Refusal(404, f"no model {asked[:200]!r} here", "not_found"))
        told = listing.row(shape, asked) if asked else listing.table(shape, found)
        self.reply.send(200, JSON + _headers(self._id, [], ""), encode(told))
        self.reply.over()

    # -- told by the exchange; see `exchange.Client` ------------------------------------------

    def wall(self) -> float:
        return self._desk.wall()

    def attempt(self, attempt: Attempt) -> None:
        self._number += 1
        assert self._opening is not None
        self._desk.hear(Failure(self._opening, attempt, self._number))

    def begin(self, serving: str, first: bytes) -> None:
        exchange = self._exchange
        assert exchange is not None
        self._begun = True
        if self.reply.started:
            return self.reply.write(first)
        begun = [*exchange.story, Attempt(serving, "ok")]
        self._start(_headers(self._id, begun, serving), first)

    def _start(self, headers: bytes, first: bytes) -> None:
        assert self._ask is not None
        kind = self._ask.stream_type
        head = b"content-type: %b\r\ncache-control: no-cache\r\nx-accel-buffering: no\r\n%b"
        self.reply.start(200, head % (kind, headers), first)

    def _still_here(self) -> None:
        """A comment, so that nobody between us and the client takes the line for dead.

        From the first one on the status is told, and the chain can only fail within the stream.
        """
        exchange = self._exchange
        if self._begun or exchange is None:
            return
        if not self.reply.started:
            self._start(_headers(self._id, exchange.story, ""), b"")
        self.reply.write(b": still waiting\n\n")
        clock, seconds = exchange.cast.stage.clock, self._house.rules.keepalive
        self._sign = call_later(clock, seconds, self._still_here)

    def answered(self, body: bytes) -> None:
        reply, exchange = self.reply, self._exchange
        assert exchange is not None
        self._ended = self._house.registry.health.clock()
        if reply.status:  # a stream's head was sent
            reply.finish(body)
        else:
            story = exchange.story
            reply.send(200, JSON + _headers(self._id, story, story[-1].target), body)
        self._end("ok")

    def failed(self, error: Exception) -> None:
        self._fail(of_error(error, self._spoken.name))

    def _fail(self, refusal: Refusal) -> None:
        exchange = self._exchange
        assert exchange is not None
        self._ended = self._house.registry.health.clock()
        if self.reply.started:
            fresh = exchange.ask.dialect.writer(exchange.ask.model)
            part = exchange.parting if self._begun else fresh.write_error
            last = part(refusal.status, refusal.message, refusal.kind)
            self.reply.finish(last)
            return self._end("broken" if self._begun else "failed", refusal.message)
        self._tell(refusal, exchange.story)
        self._end("failed", refusal.message)

    def broken(self, error: Exception) -> None:
        self._desk.trouble(error)
        if not self._over:
            apologise(self.reply, self._spoken)
            self._end("failed", "a fault of ours")

    def _left(self, why: str = "") -> None:
        """The client is gone; or the gateway stops, and tells it why."""
        assert self._exchange is not None
        self._exchange.leave()
        if why:
            return self._fail(Refusal(503, why, "stopped", {"retry-after": "1"}))
        self._end("left")

    # -- coming in and going out --------------------------------------------------------------

    def _known(self) -> bool:
        """Is this somebody's key? None is asked for where there are none."""
        house = self._house
        if not house.keys:
            return True
        known = house.who(*self._wishes.secrets)
        if known is None:
            return False
        self.label = known.label
        return True

    def _entered(self, house: House) -> Turned | None:
        gate = house.gates.get(self.label)
        turned = None if gate is None else gate.enter()
        if turned is None:
            self._gate = gate
        return turned

    def _turn_away(self, refusal: Refusal) -> None:
        """No target is asked."""
        self._tell(refusal, [])
        self._end("refused", refusal.message)

    def _end(self, outcome: str, reason: str = "") -> None:
        self._over = True
        exchange, reply, house = self._exchange, self.reply, self._house
        story = () if exchange is None else tuple(exchange.story)
        usage = None if exchange is None else exchange.usage
        # Who asks again once it has its answer is later than this, whichever worker it comes to.
        ended = house.registry.health.clock() if self._ended is None else self._ended
        self._desk.hear(Record(
            self._opening or self._opened(),
            LEFT if outcome == "left" else reply.status,
            outcome,
            ended - self._began,
            story,
            usage,
            story[-1].target if outcome in ("ok", "broken") else "",
            reply.written,
            reason,
            self._number,
        ))  # fmt: skip
        if self._inside:
            self._desk.in_flight -= 1
            house.leave()
            if self._gate is not None:
                self._gate.leave(usage)
        if exchange is not None:
            self._exchange = None
            exchange.close()
        if self._sign is not None:
            self._sign.cancel()
        reply.over()

    def _opened(self) -> Opening:
        ask, desk = self._ask, self._desk
        wishes = self._wishes
        errand = ERRANDS.get(self._request.path) if ask is None else ask.errand
        dialect = self._spoken if ask is None else ask.dialect
        return Opening(
            self._id,
            dialect.name if errand is None else errand.name,
            "" if ask is None else ask.model,
            False if ask is None else ask.stream,
            self.label,
            desk.wall(),
            wishes.trace if desk.traced else "",
            self._began,
            wishes.policy == "fail_fast",
            self._within,
        )

    @property
    def _spoken(self) -> Dialect:
        """The dialect of errors."""
        known = self._dialect
        return self._desk.surfaces.spoken(self._request.path) if known is None else known

    def _timeout(self, house: House) -> float:
        """The house's limit, or the client's if that is tighter."""
        wish = self._wishes.timeout
        try:
            seconds = float(wish)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds < float("inf"):
            raise InvalidRequest(f"x-understudy-timeout is {wish[:40]!r}; give seconds above 0")
        self._within = seconds
        return min(house.rules.timeout, seconds)

    def _tell(self, refusal: Refusal, attempts: list[Attempt]) -> None:
        extra = "".join(f"{name}: {value}\r\n" for name, value in refusal.headers.items())
        headers = JSON + _headers(self._id, attempts, "") + extra.encode("latin-1")
        body = b"" if self._request.method == "HEAD" else refusal.written(self._spoken)
        self.reply.send(refusal.status, headers, body)


def lost(request: Request, routes: dict[tuple[str, str], Route]) -> Refusal:
    """What is said where there is nothing: the wrong method, or the wrong path."""
    path = request.path[:200]
    methods = {method for method, known in routes if known == request.path}
    if is_surface(request.path) or request.path in ERRANDS:
        methods.add("POST")
    elif listing.place(request.plain_path) is not None:
        methods.add("GET")
    if methods:
        allowed = ", ".join(sorted(methods))
        why = f"{path} takes {allowed}, not {request.method[:20]}"
        return Refusal(405, why, "invalid_request", {"allow": allowed})
    known = ", ".join(sorted({path for _, path in routes if "." not in path} | {*listing.PLACES}))
    why = f"nothing at {request.method[:20]} {path}; surfaces: {', '.join(SURFACES)}; also {known}"
    return Refusal(404, why, "not_found")


def _too_many(turned: Turned) -> Refusal:
    seconds = whole_seconds(turned.seconds)
    why = f"{turned.reason}; ask again in {seconds} s"
    return Refusal(429, why, "rate_limit", {"retry-after": seconds})


def _headers(identity: str, attempts: list[Attempt], served: str) -> bytes:
    """Who was asked and who answered; header-safe, whatever clients call their models."""
    told = _told(tuple([(a.target, a.outcome, a.fault) for a in attempts]), served)
    return b"x-request-id: %b\r\n%b" % (identity.encode(), told)


@lru_cache(512)
def _told(made: tuple[tuple[str, str, Fault | None], ...], served: str) -> bytes:
    """The same few tales, over and over."""
    tale = story([Attempt(*one) for one in made])
    if not tale.isprintable():
        tale, served = _escaped(tale), _escaped(served)
    target = f"x-understudy-target: {served}\r\n" if served else ""
    return f"x-understudy-attempts: {tale}\r\n{target}".encode("ascii", "backslashreplace")


def _escaped(text: str) -> str:
    return text.encode("unicode_escape").decode("ascii")
