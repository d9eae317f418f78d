"""`understudy bench` and `unbench`: an operator's word, carried to a gateway."""

from __future__ import annotations

import asyncio

from understudy.commands.remote import Desk, Told


def bench(desk: Desk, key: str, seconds: float, why: str) -> Told:
    body = {"key": key, "seconds": seconds, "why": why}
    return asyncio.run(desk.order("/understudy/api/bench", body, has="key"))


def unbench(desk: Desk, key: str) -> Told:
    return asyncio.run(desk.order("/understudy/api/unbench", {"key": key}, has="key"))


def sentence(told: Told) -> str:
    """What the gateway did, in its own words."""
    key, state = told["key"], told.get("state")
    if isinstance(state, dict):
        return f"{key}: {state['reason']}"
    return f"{key}: " + ("cleared" if told.get("cleared") else "nothing was held against it")
