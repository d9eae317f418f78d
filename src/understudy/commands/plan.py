"""`understudy plan`: what would happen to a request, here or at a running gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from understudy.commands.remote import Desk, Told
from understudy.commands.screen import Screen, Table
from understudy.commands.story import span
from understudy.core.errors import InvalidRequest
from understudy.core.plan import Line, Plan
from understudy.dialects.json_access import Node
from understudy.dialects.table import dialect_named
from understudy.messages.request import Request

# The field that tells a dialect from the others; chat and messages share theirs.
TELLING = {"contents": ("gemini",), "input": ("responses",), "messages": ("openai", "anthropic")}


def asked(desk: Desk, spec: str) -> Plan:
    """A gateway's own plan: it knows who is benched."""
    return read(asyncio.run(desk.ask("/understudy/api/plan", model=spec)))


def read(told: Told) -> Plan:
    """A plan from its JSON, so that it prints in the same words."""
    targets = told["targets"]
    assert isinstance(targets, list)
    lines = tuple(Line(**{**row, "credentials": tuple(row["credentials"])}) for row in targets)
    worst, bound = int(str(told["worst_attempts"])), int(str(told["bound"]))
    return Plan(lines, str(told["policy"]), worst, bound)


def request_in(body: bytes) -> Request:
    """A request file in any dialect a client may speak; InvalidRequest names what is wrong."""
    found = Node.root(body).obj()
    names = next((TELLING[field] for field in TELLING if field in found), ())
    first: InvalidRequest | None = None
    for name in names:
        try:
            return dialect_named(name).read_request(body, "model").request
        except InvalidRequest as error:
            first = first or error
    known = ", ".join(TELLING)
    raise first or InvalidRequest(f"the request has none of {known}; is it one for a model?")


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


def nonsense(url: str | None, given: Mapping[str, object]) -> str:
    """What cannot be said to a gateway, "" if all can: it plans with its own settings."""
    named = [f"--{name}" for name, value in given.items() if value is not None]
    return f"{' and '.join(named)} cannot be given with --url" if url and named else ""
