"""What operators see and order: health, plans, recent requests, benching. JSON, with its own key.

Without an admin key only this very machine may ask, and no page of a foreign site through a
browser on it: a request that came by a proxy or from another origin is refused.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from itertools import islice
from urllib.parse import urlsplit

import msgspec

from understudy.core.errors import InvalidRequest, SpecError, UnknownProvider
from understudy.core.health import Change
from understudy.core.plan import plan
from understudy.core.words import meant
from understudy.dialects.guess import request_in
from understudy.gateway.app import Gateway, Route
from understudy.gateway.build import keyless
from understudy.gateway.house import House
from understudy.gateway.http import JSON, Reply, Request
from understudy.gateway.past import MOST, Past, gently
from understudy.gateway.shapes import Told, When, entry_told, record_told, state_told
from understudy.gateway.siblings import Others, Question, nobody
from understudy.gateway.whole import Entry, ledger_of, records_of, states_of
from understudy.messages.request import Request as Asked
from understudy.model import refusals
from understudy.providers.catalogue import by_name
from understudy.providers.loopback import is_loopback, on_loopback

ENTRIES = 1_000  # lines of the ledger
SHOWN = 100  # of either, unless more are asked for
WHY = 200  # characters of an operator's reason
UNASKED = ("success", "remote")  # by these a key is cleared without anybody's order
TRACKED = 10_000  # benched keys whose clearing is news; clients may name models without end
ENDLESS = 1e12  # seconds; JSON has numbers that no float holds
Answer = Callable[[Request], Told | Awaitable[Told]]


class Wrong(Exception):
    """Input that cannot be used: which field, and what would be right."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{name}: {what}")
        self.name = name


class News:
    """Which changes a ledger has: benches, orders, and the end of what was benched.

    Most keys are cleared of a single failure that nobody was benched for, request by request.
    """

    def __init__(self) -> None:
        self._benched: set[str] = set()

    def has(self, change: Change) -> bool:
        if change.bench is not None:
            if len(self._benched) >= TRACKED:
                self._benched.clear()
            self._benched.add(change.key)
            return True
        known = change.key in self._benched
        self._benched.discard(change.key)
        return known or change.source not in UNASKED


class Board:
    """Tells of the past, and is a listener of health that remembers the last changes."""

    def __init__(self, gateway: Gateway, past: Past) -> None:
        self.past = past
        self._gateway = gateway
        self._ledger: deque[Entry] = deque(maxlen=ENTRIES)
        self._changes = 0
        self._news = News()
        self.others: Others = nobody

    def change(self, change: Change) -> None:
        """A listener of the health tracker."""
        if not self._news.has(change):
            return
        self._ledger.append((self._gateway.wall(), change))
        self._changes += 1

    @property
    def seen(self) -> tuple[int, int]:
        """Requests and changes of health so far."""
        return self.past.so_far, self._changes

    def ledger(self, most: int, since: int = 0) -> list[Entry]:
        """The last changes that came after the first `since`, oldest first."""
        count = min(most, max(0, self._changes - since))
        return list(islice(reversed(self._ledger), count))[::-1]

    def routes(self) -> dict[tuple[str, str], Route]:
        answers: dict[tuple[str, str], Answer] = {
            ("GET", "health"): self._health,
            ("GET", "plan"): self._plan,
            ("POST", "plan"): self._plan_of,
            ("GET", "attempts"): self._attempts,
            ("POST", "bench"): self._bench,
            ("POST", "unbench"): self._unbench,
        }
        return {
            (method, f"/understudy/api/{name}"): self._route(answer, slow=name == "plan")
            for (method, name), answer in answers.items()
        }

    def _route(self, answer: Answer, *, slow: bool) -> Route:
        async def route(request: Request, reply: Reply) -> None:
            if why := barred(request, self._house):
                return shut_out(reply, why)
            try:
                # In a thread: a plan may look up windows, and loading those takes a while.
                told = await asyncio.to_thread(answer, request) if slow else answer(request)
                reply.send(200, JSON, _json(told if isinstance(told, dict) else await told))
            except Wrong as wrong:
                error = {"message": str(wrong), "field": wrong.name}
                reply.send(400, JSON, _json({"error": error}))

        return route

    @property
    def _house(self) -> House:
        return self._gateway.house

    # -- what is asked ------------------------------------------------------------------------

    async def _health(self, request: Request) -> Told:
        limit = _limit(request, ENTRIES)
        others = await self.others(Question(entries=limit))
        registry = self._house.registry
        when = When(registry.health.clock(), self._gateway.wall())
        ledger = ledger_of([self.ledger(limit), *(other.ledger for other in others)])[-limit:]
        every = (registry.health.snapshot(), *(other.states for other in others))
        states = states_of(every, when.clock)
        return {
            "status": "draining" if self._gateway.draining else "ready",
            "at": when.wall,
            "policy": registry.policy.name,
            "in_flight": self._gateway.in_flight + sum(other.in_flight for other in others),
            "keys": {key: state_told(state, when) for key, state in states.items()},
            "ledger": [entry_told(at, change, when) for at, change in reversed(ledger)],
            "aliases": registry.aliases,
        }

    def _plan(self, request: Request) -> Told:
        return self._planned(request.parameter("model"))

    def _plan_of(self, request: Request) -> Told:
        """For one request, within its own time: who cannot take it, and everybody's share."""
        given = _fields(request, "model", "request", "timeout")
        timeout, asked = given.get("timeout"), given.get("request")
        if timeout is not None:
            timeout = _seconds("timeout", timeout)
        try:
            body = None if asked is None else request_in(msgspec.json.encode(asked))
        except InvalidRequest as error:
            raise Wrong("request", str(error)) from None
        return self._planned(given.get("model"), body, timeout)

    def _planned(
        self, model: object, asked: Asked | None = None, timeout: float | None = None
    ) -> Told:
        if not isinstance(model, str) or not model:
            raise Wrong("model", "is missing; give an alias or provider/model")
        house = self._house
        try:
            cast = house.cast(model)
        except SpecError as error:
            raise Wrong("model", str(error)) from None
        most = house.rules.timeout
        refused = {} if asked is None else refusals(cast, asked)
        within = most if timeout is None else min(timeout, most)
        found = plan(cast.chain, cast.stage, timeout=within, refusals=refused)
        return {"model": model, **found.noted(keyless(cast)).to_dict()}

    async def _attempts(self, request: Request) -> Told:
        limit = _limit(request, MOST)
        others = await self.others(Question(records=limit))
        records = records_of([self.past.last(limit), *(other.records for other in others)])
        told = await gently(msgspec.Raw(_json(record_told(record))) for record in records)
        return {
            "remembered": len(self.past) + sum(other.remembered for other in others),
            "requests": told[-limit:][::-1],
        }

    # -- what is ordered ----------------------------------------------------------------------

    def _bench(self, request: Request) -> Told:
        given = _fields(request, "key", "seconds", "why")
        key = self._key(given)
        seconds = _seconds("seconds", given.get("seconds"))
        why = given.get("why", "")
        if not isinstance(why, str):
            raise Wrong("why", "give a text, or leave it out")
        health = self._house.registry.health
        health.bench(key, seconds, why[:WHY])
        when = When(health.clock(), self._gateway.wall())
        state = health.snapshot().get(key)
        return {"key": key, "state": None if state is None else state_told(state, when)}

    async def _unbench(self, request: Request) -> Told:
        key = self._key(_fields(request, "key"))
        # What is held against it may be a count that only one of us has.
        others = await self.others(Question(unbench=key))
        cleared = self._house.registry.health.unbench(key)
        return {"key": key, "cleared": cleared or any(other.cleared for other in others)}

    def _key(self, given: dict[str, object]) -> str:
        """`provider/model`, `provider#credential` or `provider/model#credential`."""
        key = given.get("key")
        if not isinstance(key, str) or not key:
            raise Wrong("key", "give the provider/model to bench, as a text")
        registry = self._house.registry
        target = key.rpartition("#")[0] or key
        if "/" not in target and "#" in key:
            if target not in {*registry.providers, *by_name()}:
                raise Wrong("key", self._stranger(target))
            return key
        try:
            if "/" in target and "," not in target and registry.parse(target).targets == (target,):
                return key
        except UnknownProvider:
            raise Wrong("key", self._stranger(target.partition("/")[0])) from None
        except (SpecError, ValueError) as error:
            raise Wrong("key", str(error)) from None
        raise Wrong("key", f"name one provider/model, not {target[:80]!r}")

    def _stranger(self, provider: str) -> str:
        """Of all vendors only the one that may be meant; else those that are used here."""
        ours = sorted(self._house.registry.providers)
        known = f"known here: {', '.join(ours) or 'nobody'}"
        asked = meant(provider, {*ours, *by_name()}) or known
        return f"unknown provider {provider[:80]!r}; {asked}"


def barred(request: Request, house: House) -> str:
    """Why this request may not use the interface, "" if it may."""
    if house.admin_key:
        return _without_key(request, house)
    if not is_loopback(request.peer):
        return "without an admin_key only this machine may ask"
    if any(request.header(name) for name in (b"x-forwarded-for", b"forwarded", b"via")):
        return "without an admin_key nobody may ask through a proxy"
    host, origin = request.header(b"host"), request.header(b"origin")
    if not on_loopback(host) or (origin and urlsplit(origin).netloc != host):
        return "without an admin_key no foreign page may ask"
    return ""


def shut_out(reply: Reply, why: str) -> None:
    """The answer to whoever is barred."""
    head = JSON + b"www-authenticate: Bearer\r\n"
    reply.send(401, head, _json({"error": {"message": why}}))


def _without_key(request: Request, house: House) -> str:
    scheme, _, secret = request.header(b"authorization").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        return "send the admin key as Authorization: Bearer"
    return "" if house.is_admin(secret.strip()) else "this admin key is not the gateway's"


def _limit(request: Request, most: int) -> int:
    given = request.parameter("limit")
    if not given:
        return SHOWN
    if not (given.isascii() and given.isdigit() and len(given) < 10 and 1 <= int(given) <= most):
        raise Wrong("limit", f"give a whole number from 1 to {most}")
    return int(given)


def _seconds(name: str, given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not given > 0:
        raise Wrong(name, "give a number above 0")
    return float(min(given, ENDLESS))


def _fields(request: Request, *known: str) -> dict[str, object]:
    """The body's fields; nothing unknown among them, so that a misspelt one is not ignored."""
    try:
        given: dict[str, object] = msgspec.json.decode(request.body, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Wrong("$", f"send a JSON object with {', '.join(known)}") from None
    for name in given:
        if name not in known:
            raise Wrong(name[:80], f"unknown field; known: {', '.join(known)}")
    return given


def _json(value: Told) -> bytes:
    return msgspec.json.encode(value)
