"""Gateways on real sockets, in the test's own loop. In front of fakes one is a mock server."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from understudy import AVAILABILITY, Cooldown, HttpProvider, Policy, Registry
from understudy.gateway.app import Gateway
from understudy.gateway.house import House
from understudy.gateway.server import Server
from understudy.observe.record import Reader
from understudy.providers.base import Provider
from understudy.providers.http import Settings

# Where each dialect expects its paths below the gateway's address.
BASES = {"openai": "/v1", "responses": "/v1", "anthropic": "", "gemini": "", "ollama": ""}


@asynccontextmanager
async def listening(house: House, *readers: Reader) -> AsyncIterator[str]:
    """The address of a gateway that serves this house."""
    gateway = Gateway(house, readers)
    server = Server(gateway, gateway.refuse, clock=time.monotonic)
    port = await server.listen("127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await server.close()


def house(*providers: Provider, policy: Policy = AVAILABILITY, **aliases: str) -> House:
    # Longer than any test takes: who is benched stays so, however slow the machine is.
    cooldown = Cooldown(probe=True, base=300)
    registry = Registry(env={}, policy=policy, cooldown=cooldown)
    for provider in providers:
        registry.register_provider(provider)
    for name, spec in aliases.items():
        registry.register_alias(name, spec)
    return House(registry)


def provider(
    dialect: str, address: str, name: str = "up", settings: Settings | None = None
) -> HttpProvider:
    """Our own client of a gateway's surface, or of anything that speaks this dialect."""
    return HttpProvider(
        name,
        dialect=dialect,
        base_url=address + BASES[dialect],
        api_key="k-0123456789",
        settings=settings or Settings(),
    )
