"""`understudy plan`: what would happen to a request, here or at a running gateway."""

from __future__ import annotations

import asyncio

import msgspec

from understudy.commands.parser import CommandError
from understudy.commands.remote import Desk, Told
from understudy.commands.screen import Screen, Table
from understudy.commands.story import span
from understudy.core.plan import Line, Plan
from understudy.gateway.build import keyless
from understudy.messages.request import Request
from understudy.model import Model


def here(model: Model, request: Request | None, timeout: float | None) -> Plan:
    """The plan of this very process, with what is missing where a call would be in vain."""
    return model.plan(request, timeout=timeout).noted(keyless(model.cast))


def asked(desk: Desk, spec: str, body: bytes | None, timeout: float | None) -> Plan:
    """A gateway's own plan: it knows who is benched. `body` is a request as a client sends it."""
    wanted: Told = {"model": spec}
    if body is not None:
        wanted["request"] = _decoded(body)
    if timeout is not None:
        wanted["timeout"] = timeout
    return read(asyncio.run(desk.order("/understudy/api/plan", wanted, has="targets")))


def _decoded(body: bytes) -> object:
    try:
        found: object = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise CommandError("the request is no JSON") from None
    return found


def read(told: Told) -> Plan:
    """A plan from its JSON, so that it prints in the same words."""
    targets = told["targets"]
    assert isinstance(targets, list)
    lines = tuple(Line(**{**row, "credentials": tuple(row["credentials"])}) for row in targets)
    worst, bound = int(str(told["worst_attempts"])), int(str(told["bound"]))
    return Plan(lines, str(told["policy"]), worst, bound)


def show(plan: Plan, screen: Screen, as_json: bool) -> None:
    if as_json:
        screen.json(plan.to_dict())
    elif screen.out.isatty():
        rows = [_row(number, line) for number, line in enumerate(plan.lines, 1)]
        screen.table(Table(("", "target", "verdict", "reason", "share", "window"), rows, state=2))
        screen.data(str(plan).splitlines()[-1])
    else:
        screen.data(str(plan))


def _row(number: int, line: Line) -> tuple[str, ...]:
    share = "" if line.seconds is None else span(line.seconds)
    window = "" if line.window is None else f"{line.window:,}"
    return (f"{number}.", line.target, line.verdict, line.reason, share, window)
